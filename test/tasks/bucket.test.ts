import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai-7';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { listAttempts } from '../../src/tasks/task.ts';
import { removeAllOld } from '../../src/worker.ts';
import {
  expectExactBooks,
  startTestApp,
  type Answered,
  type Client,
  type TestApp,
  type TestAppOptions,
} from '../helpers/app.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';
import { makePuppet } from '../helpers/puppet.ts';
import { partsOf } from '../providers/imitations/multipart.ts';
import { startStudio } from '../providers/imitations/forms.ts';
import type { Imitation } from '../providers/imitations/imitation.ts';
import { sampleImage } from '../storage/samples.ts';
import { S3Imitation } from '../storage/s3/imitation.ts';
import { storageYaml } from '../storage/s3/subject.ts';

const puppet = makePuppet();

const models = `
providers:
  puppet: { adapter: puppet }
  editor: { adapter: http-queue, base_url: "EDITOR", api_key: env:TEST_BUCKET_KEY, allow_private: true }
models:${mediaModel({ id: 'test/slow', routes: ['{ provider: puppet, poll: { first: 20ms, max: 50ms } }'] })}${mediaModel(
  {
    id: 'test/streamed',
    schema: '{ type: object, properties: { image: { type: string, x-media: image }, prompt: { type: string } } }',
    routes: [
      '{ provider: editor, output: { files: $.image, form: base64 }, options: { submit: { path: /v2/edit-3/edit, body_as: multipart } } }',
    ],
  },
)}
`;

let imitation: S3Imitation;
let studio: Imitation;
let folder: string;
let service: TestApp;
let client: Client;
let png: Buffer;

async function optionsOf(more: object = {}): Promise<TestAppOptions> {
  const storage = await storageYaml(imitation, folder, { prefix: 'prod', ...more });
  const yaml = `version: 1\n${limits()}\n${storage}\n${models.replace('EDITOR', studio.url)}`;
  return { yaml, adapters: { puppet: puppet.adapter } };
}

const start = async (more?: object): Promise<TestApp> => startTestApp(await optionsOf(more));

beforeAll(async () => {
  png = await sampleImage('png', 40, 30);
  folder = await mkdtemp(join(tmpdir(), 'medley-bucket-'));
  imitation = await S3Imitation.start();
  studio = await startStudio();
  process.env['TEST_BUCKET_KEY'] = 'sk-upstream';
  service = await start();
});
afterAll(async () => {
  await service.stop();
  await imitation.stop();
  await studio.stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  client = await service.client();
});
afterEach(async () => {
  imitation.fault = () => undefined;
  await expectExactBooks(service.app);
});

const goAway = () => (imitation.fault = () => 'reset');
const comeBack = () => (imitation.fault = () => undefined);

const create = (model: string, input: object = {}) => client.call('POST', '/v1/generate', { model, input });
const taskOf = async (id: string) => (await client.call('GET', `/v1/tasks/${id}`)).json;
const money = async () => {
  const { json } = await client.call('GET', '/v1/balance');
  return { balance: json.balance.amount, held: json.held.amount };
};
const final = (id: string) => expect.poll(async () => (await taskOf(id)).status).toBe('succeeded');

/** The names of the objects below the files of one account. */
const objects = () => [...imitation.objects.keys()].filter((key) => key.startsWith(`prod/${client.account_id}/`));

async function upload(bytes: Buffer): Promise<Answered> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)]), 'a.png');
  const response = await fetch(`${service.url}/v1/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}` },
    body: form,
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}

describe('files in a bucket', () => {
  test('are there when their task has ended, go through the service behind their links, and leave with the output', async () => {
    const { json } = await client.call('POST', '/v1/generate?wait=120', {
      model: 'sandbox/image',
      input: { prompt: 'a' },
    });
    expect(json.status).toBe('succeeded');
    const url = json.output[0]?.url ?? '';
    expect(objects()).toEqual([`prod/${client.account_id}/${json.id}/0.png`]);
    const whole = await fetch(url);
    const bytes = Buffer.from(await whole.arrayBuffer());
    expect(whole.status).toBe(200);
    expect(bytes.equals(imitation.objects.get(objects()[0] ?? '')?.bytes ?? Buffer.alloc(0))).toBe(true);
    expect(whole.headers.get('content-security-policy')).toContain('sandbox');
    const etag = whole.headers.get('etag') ?? '';
    expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).toBe(304);
    const part = await fetch(url, { headers: { range: 'bytes=-10' } });
    expect([part.status, Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(-10))]).toEqual([206, true]);
    expect((await fetch(url, { headers: { range: `bytes=${bytes.length}-` } })).status).toBe(416);
    expect((await fetch(url, { method: 'HEAD' })).headers.get('content-length')).toBe(String(bytes.length));
    expect((await client.call('DELETE', `/v1/tasks/${json.id}/output`)).status).toBeLessThan(300);
    expect(objects()).toEqual([]);
    expect((await fetch(url)).status).toBe(404);
  });

  test('are uploaded by callers, given to a model, and removed', async () => {
    const { json: file } = await upload(png);
    expect(objects()).toEqual([`prod/${client.account_id}/${file.id}/0.png`]);
    const input = { prompt: 'at night', images: [file.id] };
    const { json } = await client.call('POST', '/v1/generate?wait=120', { model: 'sandbox/edit', input });
    expect(json.status).toBe('succeeded');
    const content = await client.call('GET', `/v1/files/${file.id}/content`, undefined, { range: 'bytes=1-3' });
    expect([content.status, content.text]).toEqual([206, 'PNG']);
    await client.call('DELETE', `/v1/files/${file.id}`);
    expect((await objects()).some((key) => key.includes(file.id))).toBe(false);
  });
});

describe('while the bucket is away', () => {
  test('a task whose run is over waits with its money held, and ends once, at its price, when the bucket is back', async () => {
    const before = await money();
    const { json } = await create('test/slow');
    (await puppet.next('start')).answer({ phase: 'running', ref: 'r', poll_after_ms: 20 });
    goAway();
    const poll = await puppet.next('poll');
    const refused = imitation.operations.length;
    poll.answer({ phase: 'done', files: [{ bytes: png }] });
    await expect.poll(() => imitation.operations.length).toBeGreaterThanOrEqual(refused + 3); // the tries of the SDK
    expect((await taskOf(json.id)).status).toBe('running');
    expect(await money()).toEqual({ balance: before.balance, held: '0.03' });
    comeBack();
    (await puppet.next('poll')).answer({ phase: 'done', files: [{ bytes: png }] });
    await final(json.id);
    expect(await money()).toEqual({ balance: '99.97', held: '0.00' });
    expect(objects()).toHaveLength(1);
    expect(puppet.count('start', json.id)).toBe(1);
  });

  test('a result that its upstream gives only once is kept until the bucket is back', async () => {
    const { json } = await create('test/slow');
    const call = await puppet.next('start');
    goAway();
    const refused = imitation.operations.length;
    call.answer({ phase: 'done', files: [{ bytes: png }] });
    await expect.poll(() => imitation.operations.length).toBeGreaterThan(refused);
    comeBack();
    await final(json.id);
    expect(puppet.count('start', json.id)).toBe(1);
  });

  test('no run begins whose result could not be kept', async () => {
    goAway();
    expect((await upload(png)).status).toBe(503);
    const { status, json } = await create('test/slow');
    expect(status).toBe(202);
    const refused = imitation.operations.length;
    await expect.poll(() => imitation.operations.length).toBeGreaterThan(refused);
    expect(puppet.count('start', json.id)).toBe(0);
    expect(await listAttempts(service.app.db, { account_id: client.account_id, task_id: json.id })).toEqual([]);
    comeBack();
    (await puppet.next('start')).answer({ phase: 'done', files: [{ bytes: png }] });
    await final(json.id);
  });

  test('a task whose input is sent while it is read waits, too, and is submitted once', async () => {
    const { json: file } = await upload(png);
    imitation.fault = (operation) => (operation === 'GetObject' ? 'reset' : undefined);
    const refused = imitation.operations.length;
    const { json } = await create('test/streamed', { prompt: 'at night', image: file.id });
    const tries = () => imitation.operations.slice(refused).filter((operation) => operation === 'GetObject').length;
    await expect.poll(tries).toBeGreaterThan(3); // more than the SDK makes by itself
    expect((await taskOf(json.id)).status).toBe('queued');
    expect(studio.requests).toEqual([]);
    comeBack();
    await final(json.id);
    expect(studio.requestsFor('submit')).toHaveLength(1);
    const sent = partsOf(studio.requestsFor('submit')[0] ?? { headers: {}, body: Buffer.alloc(0) });
    expect(sent.find(({ name }) => name === 'image')?.bytes).toEqual(png);
  });

  test('a task whose input cannot be read waits, too', async () => {
    const { json: file } = await upload(png);
    imitation.fault = (operation) => (operation === 'GetObject' ? 'reset' : undefined);
    const refused = imitation.operations.length;
    const { json } = await create('sandbox/edit', { prompt: 'at night', images: [file.id] });
    await expect.poll(() => imitation.operations.slice(refused)).toContain('GetObject');
    expect((await taskOf(json.id)).status).toBe('queued');
    comeBack();
    await final(json.id);
  });

  test('readers and senders of files get a 503 that says when to come again, and nothing is held', async () => {
    const { json } = await client.call('POST', '/v1/generate?wait=120', {
      model: 'sandbox/image',
      input: { prompt: 'a' },
    });
    const { json: file } = await upload(png);
    const before = await money();
    goAway();
    const images = [`data:image/png;base64,${png.toString('base64')}`];
    const answers = [
      await fetch(json.output[0]?.url ?? ''),
      await client.call('GET', `/v1/files/${file.id}/content`),
      await client.call('DELETE', `/v1/tasks/${json.id}/output`),
      await upload(png),
      await create('sandbox/edit', { prompt: 'at night', images }),
    ];
    for (const { status, headers } of answers) expect([status, headers.get('retry-after')]).toEqual([503, '5']);
    expect(await money()).toEqual(before);
    comeBack();
    expect((await fetch(json.output[0]?.url ?? '')).status).toBe(200);
  });
});

describe('links that lead on to the bucket', () => {
  test('are those of the service, and every one has an address of the bucket behind it that ends with the link', async () => {
    const presigning = await start({ links: 'presigned' });
    const { call } = await presigning.client();
    const { json } = await call('POST', '/v1/generate?wait=120', { model: 'sandbox/image', input: { prompt: 'a' } });
    const url = json.output[0]?.url ?? '';
    expect(url.startsWith(presigning.url)).toBe(true);
    const led = await fetch(url, { redirect: 'manual' });
    const location = new URL(led.headers.get('location') ?? '');
    expect([led.status, location.origin]).toEqual([302, imitation.endpoint]);
    const left_s = Number(new URL(url).searchParams.get('exp')) - Date.now() / 1000;
    expect(Math.abs(Number(location.searchParams.get('X-Amz-Expires')) - left_s)).toBeLessThan(30);
    const followed = await fetch(url);
    expect([followed.status, followed.headers.get('content-type')]).toEqual([200, 'image/png']);
    expect(followed.headers.get('content-disposition')).toContain(json.id);
    const ours = await fetch(url, { headers: { 'sec-fetch-site': 'same-origin' }, redirect: 'manual' });
    expect(ours.status).toBe(200);
    expect((await fetch(`${url}0`, { redirect: 'manual' })).status).toBe(404);
    await call('DELETE', `/v1/tasks/${json.id}/output`);
    expect((await fetch(url, { redirect: 'manual' })).status).toBe(404);
    await presigning.stop();
  });
});

describe('an upload in parts', () => {
  const bytes = Buffer.from('Grüße an Łódź, '.repeat(1_000));
  const half = 9_000;
  const sdkAt = ({ url }: TestApp) => new OpenAI({ apiKey: client.key, baseURL: `${url}/v1`, maxRetries: 0 });
  const add = (sdk: OpenAI, upload_id: string, part: Buffer) =>
    sdk.uploads.parts.create(upload_id, { data: new File([new Uint8Array(part)], 'part') });
  const begin = (sdk: OpenAI) =>
    sdk.uploads.create({ bytes: bytes.length, filename: 'a.txt', mime_type: 'text/plain', purpose: 'user_data' });

  test('goes to the bucket by one node and is completed by another, which has no disk of the first', async () => {
    const other = await service.beside({ ...(await optionsOf()), env: { MEDLEY_DATA: join(folder, 'other') } });
    try {
      const begun = await begin(sdkAt(service));
      const first = await add(sdkAt(service), begun.id, bytes.subarray(0, half));
      const rest = await add(sdkAt(other), begun.id, bytes.subarray(half));
      const done = await sdkAt(other).uploads.complete(begun.id, { part_ids: [first.id, rest.id] });
      expect(await (await sdkAt(service).files.content(done.file?.id ?? '')).text()).toBe(bytes.toString());
      expect(await service.app.storage.list(client.account_id, begun.id)).toEqual([]);
    } finally {
      await other.stop();
    }
  });

  test('gets 503 while the bucket is away, and goes on when it is back', async () => {
    const sdk = sdkAt(service);
    const begun = await begin(sdk);
    const first = await add(sdk, begun.id, bytes.subarray(0, half));
    goAway();
    await expect(add(sdk, begun.id, bytes.subarray(half))).rejects.toMatchObject({ status: 503 });
    comeBack();
    const rest = await add(sdk, begun.id, bytes.subarray(half));
    goAway();
    const part_ids = [first.id, rest.id];
    await expect(sdk.uploads.complete(begun.id, { part_ids })).rejects.toMatchObject({ status: 503 });
    comeBack();
    expect((await sdk.uploads.complete(begun.id, { part_ids })).file?.bytes).toBe(bytes.length);
  });
});

test('a bucket that refuses one call keeps nothing else that is old', async () => {
  imitation.fault = (operation) => (operation === 'ListMultipartUploads' ? 'denied' : undefined);
  const { db } = service.app;
  await db.query(`insert into sign_in_tries (name, count, last_at) values ('old', 1, now() - interval '2 hours')`);
  await expect(removeAllOld(service.app, new AbortController().signal)).rejects.toThrow('could be removed');
  expect(await db.query(`select from sign_in_tries where name = 'old'`)).toEqual([]);
});
