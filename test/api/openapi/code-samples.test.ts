import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sampleOf } from '../../../src/api/openapi/code-samples.ts';
import { buildOpenApi } from '../../../src/api/openapi/document.ts';
import type { SampleRequest } from '../../../src/api/openapi/sample-languages.ts';
import { isObject } from '../../../src/catalog/model.ts';
import { listEndpoints } from '../../../src/server.ts';
import { assert } from '../../../src/lib/assert.ts';
import { startTestApp, type TestApp } from '../../helpers/app.ts';
import { asObject } from '../harness.ts';
import { readPython } from './python-sample.ts';

const run = promisify(execFile);
const curl = fileURLToPath(new URL('../../docs/curl.mjs', import.meta.url));

/** A request as a server receives it. */
type Received = { method: string; path: string; key: string | undefined; headers: string[]; body: unknown };

let server: Server;
let base_url: string;
let folder: string;
const received: Received[] = [];

const file_names = ['image.png', 'morning.wav', 'file.pdf', 'part-1'];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'medley-samples-'));
  for (const name of file_names) await writeFile(join(folder, name), `bytes of ${name}`);
  server = createServer((request, response) => {
    void keep(request).then(() => response.setHeader('content-type', 'application/json').end('{}'));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  assert(typeof address === 'object' && address !== null, 'the server listens on a port');
  base_url = `http://127.0.0.1:${address.port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

async function keep(request: IncomingMessage): Promise<void> {
  const { method = '', url = '', headers } = request;
  const bytes = Buffer.concat(await request.toArray());
  received.push({
    method,
    path: url,
    key: headers.authorization,
    headers: shownHeaders(Object.entries(headers).map(([name, value]) => [name, `${value}`])),
    body: await readBody(bytes, headers['content-type'] ?? ''),
  });
}

/** Headers that an operation has of its own. */
function shownHeaders(all: readonly (readonly [string, string])[]): string[] {
  const own = all.filter(
    ([name, value]) => name.startsWith('x-goog') || (name === 'accept' && value.includes('event')),
  );
  return own.map(([name, value]) => `${name}: ${value}`).toSorted();
}

async function readBody(bytes: Buffer, type: string): Promise<unknown> {
  if (type.startsWith('application/json')) return JSON.parse(bytes.toString());
  if (type.startsWith('application/x-www-form-urlencoded'))
    return Object.fromEntries(new URLSearchParams(bytes.toString()));
  if (!type.startsWith('multipart/form-data')) return bytes.length === 0 ? undefined : bytes.toString();
  const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData();
  const fields = [...form].map(async ([name, value]) => [name, typeof value === 'string' ? value : await value.text()]);
  return Object.fromEntries(await Promise.all(fields));
}

/** The same of the request that the sample was made from. */
function expected({ method, url, has_key, headers, body }: SampleRequest): Received {
  return {
    method,
    path: url.slice(base_url.length),
    key: has_key ? 'Bearer mdl_test' : undefined,
    headers: shownHeaders(headers),
    body: bodyAsSent(body),
  };
}

function bodyAsSent(body: SampleRequest['body']): unknown {
  if (body === undefined) return undefined;
  if (body.kind === 'json') return body.value;
  if (body.kind === 'bytes') return `bytes of ${body.file}`;
  return Object.fromEntries(
    body.fields.map(([name, value]) => [name, typeof value === 'string' ? value : `bytes of ${value.file}`]),
  );
}

/** The request that curl makes of its words: -sS -X -H -d -F --data-binary --data-urlencode -o and one address. */
function readCurl(words: string[]): Received {
  const [silent, url = '', ...rest] = words;
  expect(silent).toBe('-sS');
  const options = rest.flatMap((word, index) => (index % 2 === 0 ? [[word, rest[index + 1] ?? ''] as const] : []));
  const valuesOf = (name: string) => options.filter(([word]) => word === name).map(([, value]) => value);
  const headers = valuesOf('-H')
    .map((line) => line.split(': ', 2))
    .map(([name = '', value = '']) => [name, value] as const);
  const [json] = valuesOf('-d');
  const [bytes] = valuesOf('--data-binary');
  const fields = [...valuesOf('-F'), ...valuesOf('--data-urlencode')].map((field) => field.split('=', 2));
  const form = Object.fromEntries(fields.map(([name, value = '']) => [name, value.replace(/^@/, 'bytes of ')]));
  const types = headers.filter(([name]) => name === 'Content-Type').map(([, value]) => value);
  expect(types).toEqual(json === undefined ? [] : ['application/json']);
  const curl_options = new Set(['-X', '-H', '-d', '-F', '-o', '--data-binary', '--data-urlencode']);
  expect(options.filter(([word]) => !curl_options.has(word))).toEqual([]);
  return {
    method: valuesOf('-X')[0] ?? (json === undefined && bytes === undefined && fields.length === 0 ? 'GET' : 'POST'),
    path: url.slice(base_url.length),
    key: headers.find(([name]) => name === 'Authorization')?.[1],
    headers: shownHeaders(headers),
    body:
      json === undefined
        ? (bytes?.replace(/^@/, 'bytes of ') ?? (fields.length > 0 ? form : undefined))
        : JSON.parse(json),
  };
}

const endpoints = () => listEndpoints().filter(({ docs }) => !docs.hidden);

/** Samples of each operation by their label, in the order of the endpoints. */
function samplesBelow(url: string): { title: string; request: SampleRequest; sources: Record<string, string> }[] {
  const document = buildOpenApi(listEndpoints(), { base_url: url, models: [] });
  return endpoints().map((endpoint) => {
    const path = endpoint.path.replace('{+', '{');
    const operation = asObject(asObject(asObject(document['paths'])[path])[endpoint.method.toLowerCase()]);
    const samples = Array.isArray(operation['x-codeSamples']) ? operation['x-codeSamples'].filter(isObject) : [];
    const sources = Object.fromEntries(samples.map(({ label, source }) => [`${label}`, `${source}`]));
    return { title: `${endpoint.method} ${path}`, request: sampleOf(endpoint, url), sources };
  });
}

describe('the code samples of openapi.json', () => {
  test('are in curl, TypeScript and Python for every operation, with every body that is needed', () => {
    for (const { title, sources } of samplesBelow(base_url))
      expect(Object.keys(sources), title).toEqual(['curl', 'TypeScript', 'Python']);
    const without = endpoints().filter(
      (endpoint) => endpoint.docs.body?.required !== false && endpoint.docs.body && !sampleOf(endpoint, base_url).body,
    );
    expect(without.map(({ path }) => path)).toEqual([]);
  });

  test('name in each form the fields that it requires', () => {
    for (const { method, path, docs } of endpoints().filter((each) => each.docs.body?.content_type !== undefined)) {
      const schema = asObject(docs.body?.schema);
      const [example] = Object.values(docs.body?.examples ?? {});
      expect(Object.keys(asObject(example)), `${method} ${path}`).toEqual(
        expect.arrayContaining(Array.isArray(schema['required']) ? schema['required'] : []),
      );
    }
  });

  test('have the request of the example in curl', async () => {
    const samples = samplesBelow(base_url);
    const words = 'curl() { printf "%s\\0" "$@"; printf "\\1"; }';
    const script = ['set -e', words, ...samples.map(({ sources }) => sources['curl'])].join('\n');
    const { stdout } = await run('sh', ['-c', script], { cwd: folder, env: { ...process.env, KEY: 'mdl_test' } });
    const calls = stdout.split('\u0001').slice(0, -1);
    expect(calls.map((call) => readCurl(call.split('\0').slice(0, -1)))).toEqual(
      samples.map(({ request }) => expected(request)),
    );
  });

  test('send the request of the example by TypeScript', async () => {
    const samples = samplesBelow(base_url);
    const from = received.length;
    for (const [index, { sources }] of samples.entries())
      await writeFile(join(folder, `sample-${index}.mts`), sources['TypeScript'] ?? '');
    const lines = samples.map((_sample, index) => `await import('./sample-${index}.mts');\n`);
    await writeFile(join(folder, 'all.mts'), lines.join(''));
    await run(process.execPath, ['all.mts'], { cwd: folder, env: { ...process.env, KEY: 'mdl_test' } });
    expect(received.slice(from)).toEqual(samples.map(({ request }) => expected(request)));
    expect(await readFile(join(folder, 'output.mp4'), 'utf8')).toBe('{}');
  });

  test('have the request of the example in Python', () => {
    for (const { title, request, sources } of samplesBelow(base_url)) {
      const { headers, ...call } = readPython(sources['Python'] ?? '', { KEY: 'mdl_test' });
      expect(
        {
          ...call,
          path: call.url.slice(base_url.length),
          key: headers.find(([name]) => name === 'Authorization')?.[1],
          headers: shownHeaders(headers),
        },
        title,
      ).toMatchObject(expected(request));
    }
  });
});

describe('the code samples of a service', () => {
  let service: TestApp;
  beforeAll(async () => {
    service = await startTestApp();
  });
  afterAll(async () => {
    await service?.stop();
  });

  test('run against it', async () => {
    const { key } = await service.client();
    const document = asObject(await (await fetch(`${service.url}/openapi.json`)).json());
    const source = (path: string, method: string, label: string) => {
      const samples = asObject(asObject(asObject(document['paths'])[path])[method])['x-codeSamples'];
      const sample = Array.isArray(samples) ? samples.filter(isObject).find((each) => each['label'] === label) : {};
      return `${sample?.['source']}`;
    };
    const env = { ...process.env, KEY: key, NODE: process.execPath, CURL: curl };
    const shell = async (path: string, method: string) => {
      const script = `curl() { "$NODE" "$CURL" "$@"; }\n${source(path, method, 'curl')}`;
      const { stdout } = await run('sh', ['-c', script], { cwd: folder, env });
      return asObject(JSON.parse(stdout));
    };
    expect(await shell('/v1/generate', 'post')).toMatchObject({ status: 'succeeded', model: 'sandbox/image' });
    expect(await shell('/v1/messages', 'post')).toMatchObject({ type: 'message', role: 'assistant' });
    expect(await shell('/v1beta/models/{name}', 'post')).toMatchObject({ candidates: [{ finishReason: 'STOP' }] });
    expect(await shell('/v1/files', 'post')).toMatchObject({ object: 'file', filename: 'file.pdf' });

    await writeFile(join(folder, 'chat.mts'), source('/v1/chat/completions', 'post', 'TypeScript'));
    const { stdout } = await run(process.execPath, ['chat.mts'], { cwd: folder, env });
    expect(stdout).toMatch(/finish_reason: 'stop'/);
  });
});
