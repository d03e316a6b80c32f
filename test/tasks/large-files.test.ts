// isolated: it measures its process
import { readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { peakOf } from '../helpers/peak.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { makeMediaTaker, type MediaTaker } from '../helpers/media-taker.ts';
import { wav } from '../storage/samples.ts';

/** Files that are fetched lie on the disk, not in memory, and nothing is left of them. */

const yaml = `
version: 1
${limits()}
files: { file_mb_max: 100 }
providers:
  sings: { adapter: sings, allow_private: true }
models:
  - id: test/sing
    kind: audio
    input_schema:
      type: object
      properties: { clips: { type: array, items: { type: string, x-media: audio } } }
    price: [{ unit: second, amount: "0.0001" }]
    estimate: { second: $media.clips.duration }
    routes: [{ provider: sings, upstream_model: a }]
  - id: test/hum
    kind: audio
    input_schema: { type: object }
    price: [{ unit: request, amount: "0.01" }]
    routes: [{ provider: sings, upstream_model: a }]
`;

const megabyte = 1_000_000;

let service: TestApp;
let client: Client;
const short = wav(1);
let sings: MediaTaker;
let site: { server: Server; url: string };
/** The files at /slow come when it is resolved. */
let slow: PromiseWithResolvers<void>;

beforeAll(async () => {
  sings = makeMediaTaker('link', { bytes: short });
  service = await startTestApp({ yaml, adapters: { sings: sings.adapter }, env: { MEDLEY_ALLOW_PRIVATE: '1' } });
  client = await service.client();
  const server = createServer(async (request, response) => {
    const [, name = '', size = '0'] = /^\/([a-z]+)(\d*)/.exec(request.url ?? '') ?? [];
    if (name === 'slow') await slow.promise;
    if (name === 'slow' || name === 'short') return response.end(short);
    response.writeHead(200, { 'content-length': Number(size) * megabyte });
    for (const chunk of audioBytes(Number(size) * megabyte)) {
      if (name === 'cut' && chunk !== head) return response.destroy();
      if (!response.write(chunk)) await new Promise((drained) => response.once('drain', drained));
    }
    return response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  site = { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
});
afterAll(async () => {
  await service.stop();
  site.server.close();
});
beforeEach(() => {
  slow = Promise.withResolvers();
  sings.answer = () => ({ phase: 'done', files: [{ bytes: short }] });
});
afterEach(async () => {
  await expectExactBooks(service.app);
  const spooled = () => readdir(join(service.app.config.data_dir, 'spool'));
  await vi.waitUntil(async () => (await spooled()).length === 0, { timeout: 120_000 });
});

const silence = Buffer.alloc(250_000);
let head: Buffer;

/** A WAV file of so many bytes, without having them. */
function* audioBytes(size_bytes: number): Generator<Buffer> {
  head = wav(0);
  head.writeUInt32LE(size_bytes - 8, 4);
  head.writeUInt32LE(size_bytes - 44, 40);
  yield head;
  for (let left = size_bytes - 44; left > 0; left -= silence.length) yield silence.subarray(0, left);
}

async function generate(model: string, input: object, wait_s = 120) {
  return client.call('POST', `/v1/generate?wait=${wait_s}`, { model, input });
}

it('eight results of 48 MB at once are never in memory', async () => {
  sings.answer = () => ({ phase: 'done', files: [{ url: `${site.url}/large48` }] });
  const measured = await peakOf(() => Promise.all(Array.from({ length: 8 }, () => generate('test/hum', {}))));
  for (const { json } of measured.result) {
    expect(json).toMatchObject({ status: 'succeeded', output: [{ type: 'audio', size_bytes: 48 * megabyte }] });
  }
  expect(measured.peak_bytes).toBeLessThan(150 * megabyte); // of 384
});

it('six links of 15 MB in one input are never in memory, and all their bytes are stored', async () => {
  const clips = [1, 2, 3, 4, 5, 6].map((n) => `${site.url}/large15?${n}`);
  const measured = await peakOf(() => generate('test/sing', { clips }, 0));
  expect(measured.result.status).toBe(202);
  expect(measured.peak_bytes).toBeLessThan(50 * megabyte); // of 90
  const estimated = await client.call('POST', '/v1/estimate', { model: 'test/sing', input: { clips } });
  expect(estimated.json.estimated_cost.amount).toBe('0.57'); // 90 MB at 16,000 bytes a second, of 0.0001
});

it('links that exceed the size of a file together are refused at the one that exceeds it', async () => {
  const clips = [1, 2, 3].map((n) => `${site.url}/large45?${n}`);
  const { status, json } = await generate('test/sing', { clips });
  expect(status).toBe(422);
  expect(json.error).toMatchObject({
    param: 'input.clips[2]',
    message: 'input.clips[2] and the files before it are larger than 100 MB together.',
  });
  const single = await generate('test/sing', { clips: [`${site.url}/large101`] });
  expect(single.json.error.message).toBe('input.clips[0] is larger than 100 MB.');
});

it('results and links that are cut leave no files behind', async () => {
  const { status, json } = await generate('test/sing', { clips: [`${site.url}/short`, `${site.url}/cut5`] });
  expect(status).toBe(422);
  expect(json.error.message).toMatch(/^input\.clips\[1\] cannot be fetched: /);
});

it('a folder that is deleted while the service runs is created again for links and results', async () => {
  const folder = join(service.app.config.data_dir, 'spool');
  await rm(folder, { recursive: true });
  expect((await generate('test/sing', { clips: [`${site.url}/short`] })).status).toBe(202);
  await rm(folder, { recursive: true });
  sings.answer = () => ({ phase: 'done', files: [{ url: `${site.url}/short` }] });
  expect((await generate('test/hum', {})).json.status).toBe('succeeded');
});

it('a disk that cannot be written is reported as that, and results are fetched again when it can', async () => {
  const folder = join(service.app.config.data_dir, 'spool');
  const logged = vi.spyOn(service.app.log, 'error');
  await rm(folder, { recursive: true });
  await writeFile(folder, 'in the way');
  const { status, json } = await generate('test/sing', { clips: [`${site.url}/short`] });
  expect(status).toBe(503);
  expect(json.error.message).toBe('The service cannot store files at the moment. Try again later.');
  expect(logged.mock.calls).toContainEqual([
    expect.objectContaining({ err: expect.objectContaining({ cause: expect.objectContaining({ code: 'ENOTDIR' }) }) }),
    expect.anything(),
  ]);
  sings.answer = () => ({ phase: 'done', files: [{ url: `${site.url}/short` }] });
  const result = generate('test/hum', {});
  const messages = () => logged.mock.calls.map(([, message]) => message);
  await expect.poll(messages).toContain('output could not be stored, will try again');
  await rm(folder);
  expect((await result).json.status).toBe('succeeded');
});

async function upload(): Promise<number> {
  const body = new FormData();
  body.set('file', new Blob([new Uint8Array(short)]), 'short.wav');
  const headers = { authorization: `Bearer ${client.key}` };
  return (await fetch(`${service.url}/v1/files`, { method: 'POST', headers, body })).status;
}

it('a burst of requests with links waits for its eight slots, and an upload meanwhile is refused', async () => {
  const clips = (n: number) => [`${site.url}/short?${n}`, `${site.url}/slow?${n}`];
  const answers = Array.from({ length: 20 }, (_, n) => generate('test/sing', { clips: clips(n) }, 0));
  await vi.waitUntil(async () => (await upload()) === 429, { timeout: 120_000 });
  slow.resolve();
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(statuses).toEqual(Array.from({ length: 20 }, () => 202));
  await expect.poll(upload).toBe(200);
});

it('callers who disconnect while they wait for their links release their slots', async () => {
  const leaving = new AbortController();
  const body = JSON.stringify({ model: 'test/sing', input: { clips: [`${site.url}/slow`] } });
  const headers = { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' };
  const generateAndLeave = () =>
    fetch(`${service.url}/v1/generate`, { method: 'POST', headers, body, signal: leaving.signal }).catch(() => 'left');
  const fetching = [1, 2].map((n) => generate('test/sing', { clips: [`${site.url}/slow?${n}`] }, 0));
  const waiting = Array.from({ length: 6 }, generateAndLeave);
  await vi.waitUntil(async () => (await upload()) === 429, { timeout: 120_000 });
  leaving.abort();
  await vi.waitUntil(async () => (await upload()) === 200, { timeout: 120_000 });
  slow.resolve();
  expect((await Promise.all(fetching)).map(({ status }) => status)).toEqual([202, 202]);
  expect(await Promise.all(waiting)).toEqual(Array.from({ length: 6 }, () => 'left'));
});
