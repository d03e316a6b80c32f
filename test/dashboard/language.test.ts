import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Me } from '../../src/dashboard/views/common.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { memberOf, okBody, ownerOfNew, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;

beforeAll(async () => {
  test = await startTestApp({ worker: false });
  owner = await ownerOfNew(test);
});

afterAll(() => test.stop());

const choose = (who: Someone, language: unknown) => who.send('PUT', '/dash/me/language', { language });
const languageOf = async (who: Someone) => okBody<Me>(await who.get('/dash/me')).user.language;

describe('the language of a person', () => {
  it('follows the browser until they choose one, and again when they give it back', async () => {
    expect(await languageOf(owner)).toBeNull();
    okBody(await choose(owner, 'pl'));
    expect(await languageOf(owner)).toBe('pl');
    okBody(await choose(owner, null));
    expect(await languageOf(owner)).toBeNull();
  });

  it('is their own: others of the account keep theirs', async () => {
    const viewer = await memberOf(test, owner, 'viewer');
    okBody(await choose(viewer, 'pl'));
    expect(await languageOf(owner)).toBeNull();
    expect(await languageOf(viewer)).toBe('pl');
  });

  it.each(['xx', 'PL', '', 7, undefined, ['pl'], '../pl'])('cannot be %j, and stays as it is', async (language) => {
    okBody(await choose(owner, 'en'));
    const answer = await choose(owner, language);
    expect(answer).toMatchObject({ status: 400, json: { error: { param: 'language' } } });
    expect(await languageOf(owner)).toBe('en');
  });
});

describe('a page of the dashboard', () => {
  it.each([
    [{}, 'en'],
    [{ 'accept-language': 'pl-PL,pl;q=0.9,en;q=0.8' }, 'pl'],
    [{ 'accept-language': 'fr' }, 'en'],
    [{ 'accept-language': 'pl', cookie: 'medley_language=en' }, 'en'],
    [{ cookie: 'medley_language=pl' }, 'pl'],
    [{ cookie: 'medley_language=..%2Fpl' }, 'en'],
  ])('asked for with %j is in %s', async (headers, language) => {
    const { statusCode, body } = await request(`${test.url}/keys`, { headers });
    expect(statusCode).toBe(200);
    expect(await body.text()).toContain(`<html lang="${language}">`);
  });
});
