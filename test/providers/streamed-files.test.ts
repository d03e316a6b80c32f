// isolated: it measures its process
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, rm, truncate } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { writeDataUrl } from '../../src/lib/data-url.ts';
import { peakOf } from '../helpers/peak.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { wav } from '../storage/samples.ts';

/** Files of callers go from the storage to a provider without code while they are read, and are never in memory. */

const megabyte = 1_000_000;
const schema = `input_schema: { type: object, properties: { audio: { type: string, x-media: audio }, note: { type: string } } }
    price: [{ unit: request, amount: "0.01" }]`;

const yamlOf = (url: string) => `
version: 1
${limits()}
files: { file_mb_max: 100 }
providers:
  hears: { adapter: http-queue, base_url: "${url}/v1", api_key: env:TEST_HEARS_KEY, allow_private: true }
models:
  - id: hear
    kind: audio
    output_types: [text]
    ${schema}
    routes:
      - { provider: hears, output: { files: $.text }, options: { submit: { path: /hear, body_as: file, body: $input.audio } } }
      - { provider: hears, output: { files: $.text }, options: { submit: { path: /second, body: { note: $input.note } } } }
  - id: form
    kind: audio
    output_types: [text]
    ${schema}
    routes: [{ provider: hears, output: { files: $.text }, options: { submit: { path: /form, body_as: multipart } } }]
`;

/** A request as it arrived: what was announced and what came, without its bytes. */
type Arrived = { path: string; announced: number; size_bytes: number; sha256: string };

let site: { server: Server; url: string };
let arrived: Arrived[] = [];
let service: TestApp;
let client: Client;

async function read(request: IncomingMessage): Promise<Arrived> {
  const hash = createHash('sha256');
  let size_bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    hash.update(chunk);
    size_bytes += chunk.length;
  }
  const announced = Number(request.headers['content-length']);
  return { path: request.url ?? '', announced, size_bytes, sha256: hash.digest('hex') };
}

beforeAll(async () => {
  const server = createServer((request, response) => {
    if (request.method === 'GET') return void response.end(short);
    read(request).then(
      (one) => {
        arrived.push(one);
        response.setHeader('content-type', 'application/json').end(JSON.stringify({ text: `heard ${one.size_bytes}` }));
      },
      () => undefined,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  site = { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  process.env['TEST_HEARS_KEY'] = 'sk-upstream';
  service = await startTestApp({ yaml: yamlOf(site.url), env: { MEDLEY_ALLOW_PRIVATE: '1' } });
  client = await service.client();
});
beforeEach(() => {
  arrived = [];
});
afterEach(() => expectExactBooks(service.app));
afterAll(async () => {
  await service.stop();
  site.server.close();
});

const short = wav(1);

/** A WAV file with this many bytes of silence. */
function silence(size_bytes: number): Buffer {
  const file = Buffer.alloc(size_bytes);
  wav(0).copy(file);
  file.writeUInt32LE(size_bytes - 8, 4);
  file.writeUInt32LE(size_bytes - 44, 40);
  return file;
}

async function upload(bytes: Buffer): Promise<string> {
  const body = new FormData();
  body.set('file', new Blob([new Uint8Array(bytes)]), 'sound.wav');
  const headers = { authorization: `Bearer ${client.key}` };
  const response = await fetch(`${service.url}/v1/files`, { method: 'POST', headers, body });
  const { id } = (await response.json()) as { id: string };
  return id;
}

/** The path of a caller's file on the disk. */
async function pathOf(id: string): Promise<string> {
  const folder = join(service.app.config.data_dir, 'files');
  const name = (await readdir(folder, { recursive: true })).find((each) => each.endsWith(`${id}/0.wav`));
  if (name === undefined) throw new Error('it is not there');
  return join(folder, name);
}

async function generate(model: string, input: object) {
  const created = await client.call('POST', '/v1/generate?wait=240', { model, input });
  expect(created.status, created.text).toBe(202);
  return created.json;
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

it('six files of 60 MB at once, more than goes inline, arrive whole and are never in memory', async () => {
  const size_bytes = 60 * megabyte;
  const id = await upload(silence(size_bytes));
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(await pathOf(id)) as AsyncIterable<Buffer>) hash.update(chunk);
  const { peak_bytes, result: tasks } = await peakOf(() =>
    Promise.all(Array.from({ length: 6 }, () => generate('hear', { audio: id }))),
  );
  for (const task of tasks) expect(task).toMatchObject({ status: 'succeeded', cost: { exact: '0.010000' } });
  const whole = { path: '/v1/hear', announced: size_bytes, size_bytes, sha256: hash.digest('hex') };
  expect(arrived).toEqual(Array.from({ length: 6 }, () => whole));
  expect(peak_bytes).toBeLessThan(180 * megabyte); // of 360; what is sent and received waits to be collected
});

it('a data URL, a link and an upload arrive with the same bytes', async () => {
  const data_url = writeDataUrl({ content_type: 'audio/wav', bytes: short });
  for (const audio of [data_url, `${site.url}/sound.wav`, await upload(short)]) {
    expect(await generate('hear', { audio })).toMatchObject({ status: 'succeeded', output: [{ type: 'text' }] });
    expect(await generate('form', { audio, note: 'x' })).toMatchObject({ status: 'succeeded' });
  }
  const files = arrived.filter(({ path }) => path === '/v1/hear');
  expect(files.map(({ sha256: digest }) => digest)).toEqual(Array.from({ length: 3 }, () => sha256(short)));
  const forms = arrived.filter(({ path }) => path === '/v1/form');
  expect(forms.map(({ announced }) => announced > short.length)).toEqual([true, true, true]);
  expect(forms.every(({ announced, size_bytes }) => announced === size_bytes)).toBe(true);
});

it('a file that was damaged in the storage starts nothing, and the next route is tried', async () => {
  const id = await upload(short);
  await truncate(await pathOf(id), 100);
  const task = await generate('hear', { audio: id, note: 'second' });
  expect(task).toMatchObject({ status: 'succeeded', cost: { exact: '0.010000' } });
  expect(await statesOf(task.id)).toEqual(['not_started', 'done']);
  expect(arrived.map(({ path }) => path)).toEqual(['/v1/second']);
});

it('a file that is gone starts nothing on any route and costs nothing', async () => {
  const id = await upload(short);
  await rm(await pathOf(id));
  const task = await generate('hear', { audio: id });
  expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { exact: '0.000000' } });
  expect(await statesOf(task.id)).toEqual(['not_started', 'not_started']);
  expect(arrived).toEqual([]);
});

async function statesOf(task: string): Promise<string[]> {
  const rows = await service.app.db.query<{ state: string }>(
    'select state from attempts where task_id = $1 order by number',
    [task],
  );
  return rows.map(({ state }) => state);
}
