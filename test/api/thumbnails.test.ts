import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TaskView } from '../../src/dashboard/views/activity.ts';
import { ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';

let test: TestApp;
let owner: Someone;
let client: Client;
beforeAll(async () => {
  test = await startTestApp();
  owner = await ownerOfNew(test);
  client = await test.client({ account_id: owner.account_id });
});
afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

type MadeImage = { id: string; url: string };

async function make(model: string, input: object): Promise<MadeImage> {
  const { json } = await client.call('POST', '/v1/generate?wait=60', { model, input });
  expect(json.status).toBe('succeeded');
  return { id: json.id, url: json.output[0]?.url ?? '' };
}

const image = () => make('sandbox/image', { prompt: 'A red bicycle', width: 512, height: 256 });

async function sidesOf(answer: Response): Promise<string> {
  const { format, width, height } = await sharp(Buffer.from(await answer.arrayBuffer())).metadata();
  return `${format} ${width} × ${height}`;
}

describe('the signed link of a file', () => {
  it.each([
    ['sandbox/image', { prompt: 'A red bicycle', width: 512, height: 256 }, 'webp 128 × 64', 'webp 512 × 256'],
    ['sandbox/audio', { prompt: 'Good morning' }, 'webp 128 × 64', 'webp 640 × 320'],
    ['sandbox/video', { prompt: 'A bicycle', resolution: '480p', duration: 1 }, 'webp 114 × 64', 'webp 569 × 320'],
  ])('answers a small WebP with `thumbnail`: %s', async (model, input, small, large) => {
    const { url } = await make(model, input);
    expect(await sidesOf(await fetch(`${url}&thumbnail=64`))).toBe(small);
    const answer = await fetch(`${url}&thumbnail=320`);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'image/webp',
      'cache-control': expect.stringMatching(/^private, max-age=\d+$/),
      'content-disposition': expect.stringMatching(/^inline; filename="task_\w+-0-320\.webp"$/),
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringContaining('sandbox'),
    });
    const headers = { 'if-none-match': answer.headers.get('etag') ?? '' };
    expect(await sidesOf(answer)).toBe(large);
    expect((await fetch(`${url}&thumbnail=320`, { headers })).status).toBe(304);
  });

  it('is the whole authorisation for its thumbnail, too', async () => {
    const { url } = await image();
    const forged = url.replace(/sig=.{4}/, 'sig=AAAA');
    expect((await fetch(`${forged}&thumbnail=64`)).status).toBe(404);
    const own = new URL(url);
    own.pathname = own.pathname.replace('.png', '-64.webp');
    expect((await fetch(own)).status).toBe(404); // the signature is that of the file
  });

  it('has two sizes, and names them', async () => {
    const { url } = await image();
    const answer = await fetch(`${url}&thumbnail=100`);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { type: 'invalid_request', message: 'thumbnail must be 64 or 320.', param: 'thumbnail' },
    });
  });

  it('of a text has none', async () => {
    const audio = await make('sandbox/audio', { prompt: 'Good morning' });
    const bytes = Buffer.from(await (await fetch(audio.url)).arrayBuffer());
    const { json } = await client.call('POST', '/v1/generate?wait=60', {
      model: 'sandbox/transcript',
      input: { audio: `data:audio/wav;base64,${bytes.toString('base64')}` },
    });
    expect(json.output[0]?.type).toBe('text');
    const answer = await fetch(`${json.output[0]?.url}&thumbnail=64`);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ error: { message: 'There is no thumbnail of this file.' } });
  });

  it('has no thumbnail any more when the files of the task are removed', async () => {
    const { id, url } = await image();
    expect((await fetch(`${url}&thumbnail=64`)).status).toBe(200);
    const stored = () => test.app.storage.list(owner.account_id, id);
    expect(await stored()).toHaveLength(3);
    await client.call('DELETE', `/v1/tasks/${id}/output`);
    expect(await stored()).toEqual([]);
    expect((await fetch(`${url}&thumbnail=64`)).status).toBe(404);
  });
});

describe('the dashboard', () => {
  it('names thumbnails beside files, opens them by the session alone, and lets the browser keep them', async () => {
    const { id } = await image();
    const { files } = okBody<TaskView>(await owner.get(`${owner.base}/tasks/${id}`));
    const { url = '', thumbnails } = files[0] ?? {};
    expect(thumbnails).toEqual({ small: `${url}?thumbnail=64`, large: `${url}?thumbnail=320` });
    const { status, headers } = await owner.get(thumbnails?.small ?? '');
    expect({ status, type: headers.get('content-type'), cache: headers.get('cache-control') }).toEqual({
      status: 200,
      type: 'image/webp',
      cache: 'private, max-age=3600',
    });
    expect((await owner.get(`${url}?thumbnail=65`)).status).toBe(400);
    expect((await fetch(`${test.url}${thumbnails?.small}`)).status).toBe(401);
  });
});
