import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { Credentials } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { formStream } from '../../../src/providers/http/multipart-stream.ts';
import { openUpstream } from '../../../src/providers/http/http.ts';
import { startTestApp } from '../../helpers/app.ts';
import { testClock } from '../../helpers/clock.ts';
import { never } from '../upstreams.ts';

/** Clouds that look at the signature of what has arrived, as a media provider calls them. */
type Received = { method: string; path: string; headers: IncomingHttpHeaders; body: Buffer };

const sha = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();

/** The signature that a cloud computes from what it has got. */
function expectedSignature({ method, path, headers, body }: Received, is_tencent: boolean): string {
  const { pathname, search } = new URL(path, 'http://h');
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '')?.[1] ?? '';
  const lines = names.split(';').map((name) => {
    const value = String(headers[name]).trim();
    return `${name}:${is_tencent ? value.toLowerCase() : value}\n`;
  });
  const canonical = [method, pathname, search.slice(1), lines.join(''), names, sha(body)].join('\n');
  const time = String(headers[is_tencent ? 'x-tc-timestamp' : 'x-date']);
  const scope = /Credential=[^/]+\/([^,]+)/.exec(headers.authorization ?? '')?.[1] ?? '';
  const text = [is_tencent ? 'TC3-HMAC-SHA256' : 'HMAC-SHA256', time, scope, sha(canonical)].join('\n');
  const first = is_tencent ? 'TC3shh' : 'shh';
  const key = scope.split('/').reduce<string | Buffer>((so_far, step) => mac(so_far, step), first);
  return createHmac('sha256', key).update(text).digest('hex');
}

const received: Received[] = [];
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => {
      const { method = '', url = '', headers } = request;
      received.push({ method, path: url, headers, body: Buffer.concat(chunks) });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
});
let origin = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const tencent: Credentials = {
  kind: 'tencent',
  secret_id: 'AKID',
  secret_key: 'shh',
  service: 'aiart',
  version: '2022-12-29',
};
const volcengine: Credentials = {
  kind: 'volcengine',
  access_key_id: 'AKLT',
  secret_access_key: 'shh',
  region: 'cn-north-1',
  service: 'cv',
};

it.each([
  ['tencent', tencent, true],
  ['volcengine', volcengine, false],
])(
  'a cloud that checks the signature of %s takes submits with a body and polls without one',
  async (_, credentials, is_tencent) => {
    const config = { name: 'p', adapter: 'a', base_url: origin, allow_private: true, credentials };
    const upstream = openUpstream(config, { guard: openGuard() });
    const headers = { 'X-TC-Action': 'SubmitTextToImageJob' };
    const query = { Action: 'CVProcess', Version: '2022-08-31' };
    await upstream.call({
      method: 'POST',
      path: '/',
      headers,
      query,
      json: { Prompt: 'Ein Rad, 自行车' },
      signal: never,
    });
    await upstream.call({ method: 'GET', path: '/jobs/1', signal: never });
    for (const request of received.splice(0)) {
      const signature = /Signature=([0-9a-f]{64})$/.exec(request.headers.authorization ?? '')?.[1];
      expect(signature).toBe(expectedSignature(request, is_tencent));
      expect(request.headers.authorization).not.toContain('shh');
    }
    await upstream.close();
  },
);

const hmac: Credentials = {
  kind: 'hmac',
  secret: Buffer.from('shh, łódź').toString('base64'),
  secret_encoding: 'base64',
  key_id: 'key-1',
  algorithm: 'sha512',
  encoding: 'base64url',
  timestamp: 'milliseconds',
  text: '$method\n$host\n$path\n$query\n$timestamp\n$nonce\nł\n$body',
  headers: { 'X-Signature': 'v1=$signature', 'X-Time': '$timestamp', 'X-Key': '$key_id' },
  query: { nonce: '$nonce', sig: '$signature' },
};

it.each<[string, { json?: { prompt: string }; body?: Buffer }]>([
  ['JSON', { json: { prompt: 'Ein Rad, 自行车' } }],
  ['bytes that are no text', { body: Buffer.from([0, 255, 128, 10, 36, 36]) }],
  ['nothing', {}],
])('an upstream that checks a signature by HMAC over all of a request takes one with %s', async (_, body) => {
  const config = { name: 'p', adapter: 'a', base_url: `${origin}/v1`, allow_private: true, credentials: hmac };
  const upstream = openUpstream(config, { guard: openGuard() });
  await upstream.call({ method: 'POST', path: '/runs/a%20b', query: { z: 'ł', a: '1' }, signal: never, ...body });
  await upstream.call({ method: 'POST', path: '/runs/a%20b', query: { z: 'ł', a: '1' }, signal: never, ...body });
  const seen = received.splice(0).map((request) => {
    const { pathname, searchParams } = new URL(request.path, 'http://h');
    const [nonce, in_query] = [searchParams.get('nonce') ?? '', searchParams.get('sig')];
    const time = String(request.headers['x-time']);
    const head = `${request.method}\n${request.headers.host}\n${pathname}\na=1&z=%C5%82\n${time}\n${nonce}\nł\n`;
    const signed = Buffer.concat([Buffer.from(head), request.body]);
    const expected = createHmac('sha512', 'shh, łódź').update(signed).digest('base64url');
    expect([in_query, request.headers['x-signature']]).toEqual([expected, `v1=${expected}`]);
    expect(request.headers['x-key']).toBe('key-1');
    expect(Math.abs(Date.now() - Number(time))).toBeLessThan(60_000);
    expect(nonce).toMatch(/^[A-Za-z0-9]{24}$/);
    return nonce;
  });
  expect(new Set(seen).size).toBe(2);
  await upstream.close();
});

const aws: Credentials = {
  kind: 'aws',
  region: 'eu-central-1',
  service: 'bedrock',
  access_key_id: 'AKID',
  secret_access_key: 'shh',
};

it.each<[string, Credentials, string, string]>([
  ['tencent', tencent, 'x-tc-timestamp', '1815646367'],
  ['volcengine', volcengine, 'x-date', '20270715T101247Z'],
  ['hmac', hmac, 'x-time', '1815646367890'],
  ['aws', aws, 'x-amz-date', '20270715T101247Z'],
])('a request with credentials of %s is signed with the time of the service, not of its machine', async (...row) => {
  const [, credentials, header, time] = row;
  const config = { name: 'p', adapter: 'a', base_url: origin, allow_private: true, credentials };
  const clock = { now: () => Date.parse('2027-07-15T10:12:47.890Z') };
  const upstream = openUpstream(config, { guard: openGuard(), clock });
  await upstream.call({ method: 'POST', path: '/runs', json: {}, signal: never });
  const [request] = received.splice(0);
  expect(request?.headers[header]).toBe(time);
  await upstream.close();
});

it('a service signs with its own clock', async () => {
  vi.stubEnv('TEST_SIGNING_SECRET', 'shh');
  const signing =
    'hmac: { secret: "env:TEST_SIGNING_SECRET", text: $body, timestamp: iso, headers: { x-time: $timestamp, x-s: $signature } }';
  const clock = testClock();
  clock.stop('2027-07-15T10:12:47.890Z');
  const service = await startTestApp({
    clock,
    worker: false,
    yaml: `version: 1
providers: { signed: { adapter: openai, base_url: "${origin}", allow_private: true, credentials: { ${signing} } } }
models:
  - { id: test/signed, kind: chat, price: [{ unit: input_token, amount: "0" }], routes: [{ provider: signed }] }
`,
  });
  try {
    const client = await service.client();
    const messages = [{ role: 'user', content: 'Hi' }];
    await client.call('POST', '/v1/chat/completions', { model: 'test/signed', messages });
    expect(received.splice(0).map(({ headers }) => headers['x-time'])).toEqual(['2027-07-15T10:12:47.890Z']);
  } finally {
    await service.stop();
    vi.unstubAllEnvs();
  }
});

it('a form is signed with its whole body', async () => {
  const signing: Credentials = { ...hmac, text: '$body_sha256', query: {}, headers: { 'x-signature': '$signature' } };
  const config = { name: 'p', adapter: 'a', base_url: origin, allow_private: true, credentials: signing };
  const upstream = openUpstream(config, { guard: openGuard() });
  const stream = formStream([{ name: 'prompt', text: 'A bay' }]);
  await upstream.call({ method: 'POST', path: '/runs', stream, signal: never });
  const [request] = received.splice(0);
  const expected = createHmac('sha512', 'shh, łódź')
    .update(sha(request?.body ?? ''))
    .digest('base64url');
  expect(request?.headers['x-signature']).toBe(expected);
  expect(request?.headers['content-type']).toBe(stream.content_type);
  expect(request?.body).toHaveLength(stream.size_bytes);
  await upstream.close();
});
