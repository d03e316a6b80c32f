import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PromptList, PromptView } from '../../src/dashboard/views/playground.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from './people.ts';

/** Prompts that an account saves in the playground, with their versions. */
let test: TestApp;
let owner: Someone;
let other: Someone;

beforeAll(async () => {
  test = await startTestApp({ worker: false });
  owner = await ownerOfNew(test);
  other = await ownerOfNew(test, 'Other');
});

afterAll(() => test.stop());

const prompt = { model: 'sandbox/chat', system: 'Be {{tone}}.', text: 'Hello {{name}}', fields: { max_tokens: 5 } };

async function savedBy(who: Someone, name: string, body: object = prompt): Promise<string> {
  return okBody<{ id: string }>(await who.post(`${who.base}/prompts`, { name, prompt: body })).id;
}

const read = async (who: Someone, id: string, query = '') =>
  okBody<PromptView>(await who.get(`${who.base}/prompts/${id}${query}`));

describe('a saved prompt', () => {
  it('is read by everybody in the account, and changed by who may run models', async () => {
    const id = await savedBy(owner, 'Greeting');
    const viewer = await memberOf(test, owner, 'viewer');
    const developer = await memberOf(test, owner, 'developer');
    expect(await read(viewer, id)).toMatchObject({ id, name: 'Greeting', version: 1, latest: 1, body: prompt });
    const { data } = okBody<PromptList>(await viewer.get(`${viewer.base}/prompts`));
    expect(data).toMatchObject([{ id, name: 'Greeting', version: 1 }]);
    const changed = { prompt: { ...prompt, text: 'Good day {{name}}' } };
    expect((await viewer.post(`${viewer.base}/prompts/${id}`, changed)).status).toBe(403);
    expect((await viewer.post(`${viewer.base}/prompts`, { name: 'x', prompt })).status).toBe(403);
    expect((await viewer.post(`${viewer.base}/prompts/${id}/remove`)).status).toBe(403);
    expect(okBody(await developer.post(`${developer.base}/prompts/${id}`, changed))).toEqual({ id, version: 2 });
    expect(okBody(await developer.post(`${developer.base}/prompts/${id}`, changed))).toEqual({ id, version: 2 });
    const now = await read(owner, id);
    expect(now).toMatchObject({ version: 2, latest: 2, body: changed.prompt });
    expect(now.versions.map(({ version, author }) => [version, author])).toEqual([
      [2, 'A developer'],
      [1, expect.any(String)],
    ]);
    expect(await read(owner, id, '?version=1')).toMatchObject({ version: 1, latest: 2, body: prompt });
  });

  it('is not found in another account, whatever somebody tries', async () => {
    const id = await savedBy(owner, 'Secret');
    expect((await other.get(`${other.base}/prompts/${id}`)).status).toBe(404);
    expect((await other.post(`${other.base}/prompts/${id}`, { prompt })).status).toBe(404);
    expect((await other.post(`${other.base}/prompts/${id}/remove`)).status).toBe(200);
    expect((await other.get(`${owner.base}/prompts/${id}`)).status).toBe(404);
    expect(await read(owner, id)).toMatchObject({ version: 1, body: prompt });
    expect((await owner.get(`${owner.base}/prompts/${id}?version=7`)).status).toBe(404);
    expect((await owner.get(`${owner.base}/prompts/nonsense`)).status).toBe(404);
    expect((await owner.get(`${owner.base}/prompts/${id}?version=x`)).status).toBe(400);
  });

  it('has a name that is its own in the account, and may get another one', async () => {
    const id = await savedBy(owner, 'First');
    await savedBy(owner, 'Second');
    await savedBy(other, 'First');
    const again = await owner.post(`${owner.base}/prompts`, { name: 'First', prompt });
    expect([again.status, again.json]).toMatchObject([400, { error: { param: 'name' } }]);
    const taken = await owner.post(`${owner.base}/prompts/${id}`, { name: 'Second' });
    expect([taken.status, taken.json]).toMatchObject([400, { error: { param: 'name' } }]);
    expect(okBody(await owner.post(`${owner.base}/prompts/${id}`, { name: 'Third' }))).toEqual({ id, version: 1 });
    expect((await read(owner, id)).name).toBe('Third');
  });

  it('keeps its last 100 versions', async () => {
    const id = await savedBy(owner, 'Often changed');
    for (let number = 2; number <= 103; number += 1)
      okBody(await owner.post(`${owner.base}/prompts/${id}`, { prompt: { ...prompt, text: `Text ${number}` } }));
    const { version, versions } = await read(owner, id);
    expect([version, versions.length, versions.at(-1)?.version]).toEqual([103, 100, 4]);
    expect((await owner.get(`${owner.base}/prompts/${id}?version=3`)).status).toBe(404);
  });

  it('loses nothing when two change it at once: both are versions', async () => {
    const id = await savedBy(owner, 'Shared');
    const texts = ['a', 'b', 'c', 'd'];
    await Promise.all(texts.map((text) => owner.post(`${owner.base}/prompts/${id}`, { prompt: { ...prompt, text } })));
    const { version, versions } = await read(owner, id);
    expect([version, versions.length]).toEqual([5, 5]);
    const all = await Promise.all(versions.map((each) => read(owner, id, `?version=${each.version}`)));
    expect(all.map(({ body }) => body.text).toSorted()).toEqual(['Hello {{name}}', ...texts].toSorted());
  });

  it.each([
    ['prompt', { name: 'x' }],
    ['prompt', { name: 'x', prompt: 'text' }],
    ['prompt.model', { name: 'x', prompt: { ...prompt, model: 5 } }],
    ['prompt.text', { name: 'x', prompt: { ...prompt, text: ' ' } }],
    ['prompt.text', { name: 'x', prompt: { ...prompt, text: 'x'.repeat(100_001) } }],
    ['prompt.system', { name: 'x', prompt: { ...prompt, system: 'a\u0000b' } }],
    ['prompt.fields', { name: 'x', prompt: { ...prompt, fields: [] } }],
    [
      'prompt',
      { name: 'x', prompt: { ...prompt, text: '\n'.repeat(100) + 'x'.repeat(99_000), system: '\n'.repeat(99_000) } },
    ],
    ['name', { prompt }],
    ['name', { name: 'x'.repeat(81), prompt }],
  ])('needs a sensible %s', async (param, body) => {
    const { status, json } = await owner.post(`${owner.base}/prompts`, body);
    expect([status, json]).toMatchObject([400, { error: { param } }]);
  });

  it('is one of at most 200', async () => {
    const many = await ownerOfNew(test, 'Many');
    for (let number = 0; number < 200; number += 1) await savedBy(many, `prompt ${number}`);
    const one_more = await many.post(`${many.base}/prompts`, { name: 'one more', prompt });
    expect([one_more.status, one_more.json]).toMatchObject([400, { error: { param: 'name' } }]);
  });

  it('goes with a deletion, and with its account; an operator who looks at an account leaves none there', async () => {
    const short_lived = await ownerOfNew(test, 'Short-lived', 0n);
    const id = await savedBy(short_lived, 'x');
    await savedBy(short_lived, 'y');
    await short_lived.post(`${short_lived.base}/prompts/${id}/remove`);
    expect((await short_lived.get(`${short_lived.base}/prompts/${id}`)).status).toBe(404);
    const operator = await ownerOfNew(test, 'Operating');
    await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
    expect((await operator.post(`${owner.base}/prompts`, { name: 'z', prompt })).status).toBe(403);
    expect((await operator.send('DELETE', `/dash/admin/accounts/${short_lived.account_id}`)).status).toBe(200);
    const left = await test.app.db.query('select id from prompts where account_id = $1', [short_lived.account_id]);
    expect(left).toEqual([]);
  });
});
