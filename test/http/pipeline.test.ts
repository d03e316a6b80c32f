import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Answer, Call, Endpoint } from '../../src/http/endpoint.ts';
import { ApiError } from '../../src/errors.ts';
import { isId } from '../../src/lib/ids.ts';
import { authenticate, type Harness, parseRaw, startHarness, type TestApp, until } from '../api/harness.ts';
import { completions_errors } from '../../src/styles/completions/errors.ts';
import { messages_errors } from '../../src/styles/messages/errors.ts';

const docs = { tag: 'Test', summary: 'Test', responses: { 200: { description: 'ok' } } };
const with_body = { ...docs, body: { schema: { type: 'object' } } };

const echo = (_app: TestApp, call: Call): Answer => ({
  status: 200,
  body: {
    caller: call.caller,
    params: call.params,
    query: Object.fromEntries(call.query),
    body: call.body ?? null,
    body_bytes: call.body_bytes.length,
    path: call.path,
    request_id: call.request_id,
  },
});

/** The next answer of the endpoint at /v1/scripted. */
let script: (call: Call) => Promise<Answer> | Answer = () => ({ status: 200 });
let calls = 0;

const endpoints: Endpoint<TestApp>[] = [
  {
    method: 'POST',
    path: '/v1/generate',
    window: 'generate',
    body_limit_bytes: 20_000_000,
    docs: { ...with_body, query: { wait: { description: 'wait', schema: { type: 'integer' } } } },
    handle: (app, call) => {
      calls += 1;
      return echo(app, call);
    },
  },
  {
    method: 'GET',
    path: '/v1/tasks',
    docs: {
      ...docs,
      query: {
        limit: { description: 'limit', schema: { type: 'integer' } },
        metadata: { description: 'metadata', schema: { type: 'object' } },
      },
    },
    handle: echo,
  },
  { method: 'GET', path: '/v1/tasks/{id}', docs, handle: echo },
  { method: 'POST', path: '/v1/tasks/{id}/cancel', docs, handle: echo },
  { method: 'DELETE', path: '/v1/tasks/{id}/output', docs, handle: () => ({ status: 204 }) },
  { method: 'GET', path: '/v1/models/{+id}', docs, handle: echo },
  { method: 'POST', path: '/v1/estimate', docs: with_body, handle: echo },
  {
    method: 'POST',
    path: '/v1/chat/completions',
    window: 'chat',
    format: completions_errors,
    body_limit_bytes: 32_000_000,
    lenient_query: true,
    docs: with_body,
    handle: echo,
  },
  {
    method: 'POST',
    path: '/v1/messages',
    window: 'chat',
    format: messages_errors,
    body_limit_bytes: 32_000_000,
    lenient_query: true,
    docs: with_body,
    handle: echo,
  },
  { method: 'POST', path: '/v1/scripted', docs, handle: (_app, call) => script(call) },
  { method: 'GET', path: '/v1/scripted', docs, handle: (_app, call) => script(call) },
  {
    method: 'GET',
    path: '/open',
    public: true,
    docs,
    handle: () => ({ status: 200, body: { open: true } }),
  },
  {
    method: 'GET',
    path: '/models/{+rest}',
    public: true,
    docs: { ...docs, tag: 'Dashboard', hidden: true },
    handle: () => ({ status: 200, body: 'a page' }),
  },
  { method: 'GET', path: '/open.json', public: true, docs, handle: () => ({ status: 200, body: {} }) },
];

/** Objects whose members all have different names. */
function withMembers(objects: number, members: number): string {
  const object = (at: number) => `{${Array.from({ length: members }, (_, i) => `"k${at}_${i}":1`).join(',')}}`;
  return `{"a":[${Array.from({ length: objects }, (_, at) => object(at)).join(',')}]}`;
}

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness(endpoints);
});
afterAll(() => harness.close());

const send: Harness['send'] = (method, path, options) => harness.send(method, path, options);
const sendRaw: Harness['sendRaw'] = (...parts) => harness.sendRaw(...parts);

/** The words of the official APIs for some types. */
const codes = new Map([
  ['authentication_error', 'invalid_api_key'],
  ['insufficient_balance', 'insufficient_quota'],
  ['rate_limit', 'rate_limit_exceeded'],
  ['rate_limit_error', 'rate_limit_exceeded'],
]);
const with_code = (code: string | undefined) => (code === undefined ? {} : { code });

const service_error = (type: string, code = codes.get(type)) => ({
  error: { type, message: expect.any(String), ...with_code(code), request_id: expect.stringMatching(/^req_/) },
});
const completions_error = (type: string) => {
  const code = codes.get(type) ?? null;
  return {
    error: { message: expect.any(String), type, param: null, code, request_id: expect.stringMatching(/^req_/) },
  };
};
const messages_error = (type: string) => ({
  type: 'error',
  error: { type, message: expect.any(String), ...with_code(codes.get(type)) },
  request_id: expect.stringMatching(/^req_/),
});

describe('every response', () => {
  test('carries a request id of ours, the one that the endpoint saw', async () => {
    const answer = await send('GET', '/v1/tasks', { headers: { 'x-request-id': 'theirs' } });
    expect(answer.status).toBe(200);
    const id = String(answer.headers['x-request-id']);
    expect(isId('req', id)).toBe(true);
    expect(answer.json()['request_id']).toBe(id);
  });

  test.each([
    ['GET', '/v1/tasks', 'key_1', 200],
    ['GET', '/v1/tasks', null, 401],
    ['GET', '/v1/nothing', 'key_1', 404],
    ['PUT', '/v1/tasks', 'key_1', 405],
    ['GET', '/v1/tasks/%zz', 'key_1', 400],
    ['GET', '/open', null, 200],
    ['GET', '/nothing', null, 404],
  ])('to %s %s with key %s has a request id and nosniff', async (method, path, key, status) => {
    const answer = await send(method, path, { key });
    expect(answer.status).toBe(status);
    expect(answer.headers['x-request-id']).toMatch(/^req_/);
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
    expect(answer.headers['request-id']).toBeUndefined();
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  });

  test('of /v1/messages has the request id as request-id, too, also when refused', async () => {
    for (const key of ['key_1', null]) {
      const answer = await send('POST', '/v1/messages', { json: {}, key });
      expect(answer.headers['request-id']).toMatch(/^req_/);
      expect(answer.headers['request-id']).toBe(answer.headers['x-request-id']);
    }
    expect((await send('GET', '/v1/messages/unknown')).headers['request-id']).toMatch(/^req_/);
  });

  test('echoes a valid x-client-request-id and no other', async () => {
    const echoed = async (id: string) =>
      (await send('GET', '/v1/tasks', { headers: { 'x-client-request-id': id } })).headers['x-client-request-id'];
    expect(await echoed('my-id 42')).toBe('my-id 42');
    expect(await echoed('x'.repeat(513))).toBeUndefined();
    expect(await echoed('caf\u00e9')).toBeUndefined();
  });

  test('of a string or bytes is sent unchanged', async () => {
    const text = '{"amount": 0.10,   "z":1,"a":"\\u00e9"}';
    script = () => ({ status: 202, body: text });
    const answer = await send('GET', '/v1/scripted');
    expect([answer.status, answer.text]).toEqual([202, text]);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    script = () => ({ status: 200, body: Buffer.from(text), headers: { 'content-type': 'application/json' } });
    expect((await send('GET', '/v1/scripted')).text).toBe(text);
    const head = await send('HEAD', '/v1/scripted');
    expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', String(text.length)]);
  });

  test('can be a stream', async () => {
    script = () => ({ status: 200, body: Readable.from(['a', 'b']), headers: { 'content-type': 'text/plain' } });
    const answer = await send('GET', '/v1/scripted');
    expect([answer.text, answer.headers['content-type']]).toEqual(['ab', 'text/plain']);
  });

  test('to HEAD has the headers of GET and no body', async () => {
    const answer = await send('HEAD', '/open');
    expect([answer.status, answer.text, answer.headers['content-length']]).toEqual([200, '', '13']);
    script = () => ({ status: 200, headers: { 'content-length': '12345', 'content-type': 'image/png' } });
    expect((await send('HEAD', '/v1/scripted')).headers['content-length']).toBe('12345');
  });

  test('of 204 has no body', async () => {
    const answer = await send('DELETE', '/v1/tasks/task_1/output');
    expect([answer.status, answer.text]).toEqual([204, '']);
  });
});

describe('a request is accepted', () => {
  test('and the endpoint gets its caller, path, query and body', async () => {
    const answer = await send('POST', '/v1/generate?wait=5', { json: { model: 'm', input: { a: [1] } }, key: 'key_7' });
    expect(answer.json()).toMatchObject({
      caller: { account: { id: 'acct_7' }, key: { id: 'key_7' } },
      query: { wait: '5' },
      body: { model: 'm', input: { a: [1] } },
      body_bytes: 31,
      path: '/v1/generate',
    });
  });

  test.each([
    ['/v1/models/acme/picture-1', 'acme/picture-1'],
    ['/v1/models/acme%2Fpicture-1', 'acme/picture-1'],
    ['/v1/models/acme%2fa%20b', 'acme/a b'],
    ['/v1/models/plain', 'plain'],
  ])('with the path %s for the model %s', async (path, id) => {
    expect((await send('GET', path)).json()['params']).toEqual({ id });
  });

  test('with an encoded path as the same path', async () => {
    expect((await send('GET', '/v1/t%61sks')).status).toBe(200);
    expect((await send('GET', '/v1/t%61sks', { key: null })).status).toBe(401);
    expect((await send('GET', '/%76%31/tasks', { key: null })).status).toBe(401);
  });

  test('with a whole URL in its request line as a request for the path', async () => {
    const ask = async (url: string, key = 'Bearer key_1') =>
      parseRaw(await sendRaw(`GET ${url} HTTP/1.1\r\nhost: a\r\nauthorization: ${key}\r\nconnection: close\r\n\r\n`));
    expect((await ask('http://a/v1/tasks?limit=5')).json()).toMatchObject({ path: '/v1/tasks', query: { limit: '5' } });
    expect((await ask('http://evil/v1/nothing', 'none')).status).toBe(401);
    expect((await ask('HTTPS://evil/v1/messages')).json()).toEqual(messages_error('invalid_request'));
  });

  test('with its query parameters decoded and the keys of object parameters unchanged', async () => {
    const answer = await send('GET', '/v1/tasks?limit=5&metadata[na%20me]=a+b%26c&metadata%5Bx%5D=');
    expect(answer.json()['query']).toEqual({ limit: '5', 'metadata[na me]': 'a b&c', 'metadata[x]': '' });
  });

  test('with any query on chat paths, because SDKs add their own', async () => {
    const answer = await send('POST', '/v1/messages?beta=true&beta=true&api-version=1', { json: {} });
    expect(answer.status).toBe(200);
  });

  test('with no body, an empty one or JSON when the POST declares no body', async () => {
    expect((await send('POST', '/v1/tasks/task_1/cancel')).json()['body']).toBe(null);
    const empty = await send('POST', '/v1/tasks/task_1/cancel', { headers: { 'content-type': 'application/json' } });
    expect(empty.status).toBe(200);
    expect((await send('POST', '/v1/tasks/task_1/cancel', { json: { a: 1 } })).json()['body']).toEqual({ a: 1 });
    expect((await send('POST', '/v1/tasks/task_1/cancel', { body: '{' })).status).toBe(400);
  });

  test.each([
    'application/json',
    'Application/JSON',
    ' application/json ; charset=UTF-8',
    'application/json;charset="utf-8"',
  ])('with the content type %j as JSON', async (type) => {
    const answer = await send('POST', '/v1/generate', { body: '{"a":1}', headers: { 'content-type': type } });
    expect(answer.json()['body']).toEqual({ a: 1 });
  });

  test('with keys that name the prototype as ordinary keys', async () => {
    const body = '{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"a":1}';
    const answer = await send('POST', '/v1/generate', { body });
    expect(answer.status).toBe(200);
    expect(JSON.stringify(answer.json()['body'])).toBe(body);
    expect('admin' in {}).toBe(false);
  });

  test('with NUL, lone surrogates, duplicate keys and a byte order mark', async () => {
    const bytes = Buffer.from('\ufeff{"nul":"a\\u0000b","half":"\\ud800","twice":1,"twice":2}');
    const answer = await send('POST', '/v1/generate', { body: bytes });
    expect(answer.json()['body']).toEqual({ nul: 'a\0b', half: '\ud800', twice: 2 });
  });

  test('with 10,000 members in an object and 100,000 in all, and with long texts and many values', async () => {
    expect((await send('POST', '/v1/generate', { body: withMembers(9, 10_000) })).status).toBe(200);
    const text = '{":,[\\'.repeat(300_000);
    expect((await send('POST', '/v1/generate', { json: { text, list: Array(500_000).fill(1) } })).status).toBe(200);
  });

  test('with 64 levels, not counting quotes and braces in strings', async () => {
    const deep = '{"a":'.repeat(63) + '[]' + '}'.repeat(63);
    expect((await send('POST', '/v1/generate', { body: deep })).status).toBe(200);
    const text = JSON.stringify({ a: '[{"\\'.repeat(1_000), b: '\\', c: '\\"[' });
    expect((await send('POST', '/v1/generate', { body: text })).status).toBe(200);
  });

  test('with a body of exactly the limit, in one piece or in chunks', async () => {
    const body = JSON.stringify({ a: 'x'.repeat(999_992) });
    expect(body.length).toBe(1_000_000);
    expect((await send('POST', '/v1/estimate', { body })).json()['body_bytes']).toBe(1_000_000);
    const chunked = `POST /v1/estimate HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n${(1_000_000).toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    expect(parseRaw(await sendRaw(chunked)).status).toBe(200);
  });

  test('with the same body together with its head, after it or in pieces, and the connection goes on', async () => {
    const head = (rest = '') =>
      `POST /v1/estimate HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-type: application/json\r\n${rest}content-length: 7\r\n\r\n`;
    const socket = connect(harness.port, '127.0.0.1');
    let received = '';
    socket.setNoDelay(true).on('data', (chunk) => (received += String(chunk)));
    const answers = () => [...received.matchAll(/"body":(\{[^}]*\})/g)].map((match) => match[1]);
    const ways = [[head() + '{"a":1}'], [head(), '{"a":2}'], [head() + '{"a"', ':3}'], [head() + '{"a":4}']];
    for (const [i, parts] of ways.entries()) {
      for (const part of parts) {
        socket.write(part);
        await new Promise((resolve) => setTimeout(resolve, 20)); // a packet of its own
      }
      await until(() => answers().length === i + 1);
    }
    socket.write(head() + '{"a":5}' + head('connection: close\r\n') + '{"a":6}');
    await new Promise((resolve) => socket.once('close', resolve));
    expect(answers()).toEqual([1, 2, 3, 4, 5, 6].map((a) => `{"a":${a}}`));
  });

  test('with a body of any size that arrived in several pieces before it is read', async () => {
    const slow = await startHarness(endpoints, {
      authenticate: async (headers) => {
        await new Promise((resolve) => setTimeout(resolve, 30)); // meanwhile all pieces come that Node takes
        return authenticate(headers);
      },
    });
    for (const size of [1, 60_000, 65_536, 70_000, 100_000, 131_000, 300_000]) {
      const text = 'x'.repeat(size);
      const answer = await slow.send('POST', '/v1/estimate', { json: { text } });
      expect([answer.status, answer.json()['body']]).toEqual([200, { text }]);
    }
    await slow.close();
  });

  test('with Expect: 100-continue, which gets its continue only when the body is read', async () => {
    const head = (key: string) =>
      `POST /v1/estimate HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 7\r\nexpect: 100-continue\r\n\r\n`;
    const expected = await sendRaw(head('key_1'), '{"a":1}');
    expect(expected).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK/);
    const refused = await sendRaw(head('wrong'));
    expect(refused).toMatch(/^HTTP\/1.1 401/);
    expect(refused).toMatch(/connection: close/i);
  });

  test('with an unknown Expect, which is ignored', async () => {
    const text = await sendRaw('GET /open HTTP/1.1\r\nhost: a\r\nexpect: tea\r\nconnection: close\r\n\r\n');
    expect(parseRaw(text).status).toBe(200);
  });

  test('with an Accept-Version header, which does not change the route', async () => {
    expect((await send('GET', '/v1/tasks', { headers: { 'accept-version': '9.9.9' } })).status).toBe(200);
  });

  test('and the signal of its call fires only when its client disconnects', async () => {
    const seen: AbortSignal[] = [];
    let release = () => {};
    script = async (call) => {
      seen.push(call.gone);
      await new Promise<void>((resolve) => (release = resolve));
      return { status: 200, body: {} };
    };
    const answered = send('POST', '/v1/scripted', { json: {} });
    await until(() => seen.length === 1);
    release();
    expect((await answered).status).toBe(200);
    const socket = connect(harness.port, '127.0.0.1');
    socket.write('POST /v1/scripted HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-length: 0\r\n\r\n');
    await until(() => seen.length === 2);
    expect(seen.map(({ aborted }) => aborted)).toEqual([false, false]);
    socket.destroy();
    await until(() => seen[1]?.aborted === true);
    release();
    expect(seen[0]?.aborted).toBe(false);
  });
});

describe('a request gets 400', () => {
  test.each([
    ['broken JSON', '{"a":', /not valid JSON/],
    ['an array', '[]', /must be a JSON object \(got an array\)/],
    ['null', 'null', /got null/],
    ['a string', '"a"', /got a string/],
    ['nothing but spaces', '  ', /not valid JSON/],
    ['65 levels', '{"a":'.repeat(64) + '[]' + '}'.repeat(64), /deeper than 64/],
    ['a million open brackets', '{"a":' + '['.repeat(1_000_000), /deeper than 64/],
    ['two million values', `{"a":[${'[],'.repeat(2_000_000)}[]]}`, /more than 1000000 values/],
    ['10,001 members in one object', withMembers(1, 10_001), /an object with more than 10000 members/],
    ['98,000 members in one object', withMembers(1, 98_000), /an object with more than 10000 members/],
    ['950,000 members in many objects', withMembers(9_500, 100), /more than 100000 members in all/],
    [
      '300,001 strings',
      `{"a":[${Array.from({ length: 300_000 }, (_, i) => `"s${i}"`).join(',')}]}`,
      /more than 300000 strings/,
    ],
    [
      'ten thousand numbers of 900 digits',
      `{"a":[${Array.from({ length: 10_000 }, () => '9'.repeat(900)).join(',')}]}`,
      /numbers of more than 40 characters/,
    ],
    ['a number of a million digits', `{"a":${'1'.repeat(1_000_000)}}`, /a number of more than 1000 characters/],
    ['broken UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), /not valid UTF-8/],
    ['a surrogate written as UTF-8', Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]), /UTF-8/],
    ['UTF-16', Buffer.from('{"a":1}', 'utf16le'), /not valid JSON/],
  ])('for %s', async (_name, body, message) => {
    const answer = await send('POST', '/v1/generate', { body });
    expect(answer.status).toBe(400);
    expect(answer.error()).toMatchObject({ type: 'invalid_request', message: expect.stringMatching(message) });
  });

  test('without a body when one is needed', async () => {
    const answer = await send('POST', '/v1/generate');
    expect(answer.status).toBe(400);
    expect(answer.json()).toEqual(service_error('invalid_request'));
  });

  test.each([
    ['/v1/tasks?limt=5', 'limt', /Did you mean "limit"/],
    ['/v1/tasks?limit=5&limit=6', 'limit', /twice/],
    ['/v1/tasks?limit[a]=5', 'limit[a]', /not a known query parameter/],
    ['/v1/tasks?metadata=5', 'metadata', /not a known query parameter/],
    ['/v1/tasks?__proto__=5', '__proto__', /not a known query parameter/],
    ['/v1/tasks?toString=5', 'toString', /not a known query parameter/],
    ['/v1/tasks/task_1?limit=5', 'limit', /not a known query parameter/],
  ])('for %s and names %s', async (path, param, message) => {
    const answer = await send('GET', path);
    expect(answer.status).toBe(400);
    expect(answer.error()).toMatchObject({ type: 'invalid_request', param, message: expect.stringMatching(message) });
  });

  test('with a query or a path that cannot be decoded', async () => {
    expect((await send('GET', '/v1/tasks?limit=%zz')).error()).toMatchObject({ type: 'invalid_request' });
    expect((await send('GET', '/v1/tasks?limit=%ff')).status).toBe(400);
    const path = await send('GET', '/v1/tasks/%ff');
    expect(path.status).toBe(400);
    expect(path.json()).toEqual(service_error('invalid_request'));
    expect((await send('GET', '/v1/messages/%zz')).json()).toEqual(messages_error('invalid_request'));
  });

  test('for a path that differs from one with a dot by another character', async () => {
    expect((await send('POST', '/open.json')).status).toBe(405);
    expect((await send('POST', '/openxjson')).status).toBe(404);
  });

  test('with a URL of 2,049 characters, and not with 2,048', async () => {
    const id = 'x'.repeat(2_048 - '/v1/tasks/'.length);
    expect((await send('GET', `/v1/tasks/${id}`)).status).toBe(200);
    const answer = await send('GET', `/v1/tasks/${id}x`);
    expect([answer.status, answer.error()['type']]).toEqual([400, 'invalid_request']);
    expect((await send('GET', `/v1/tasks/${'x'.repeat(5_000)}`)).status).toBe(400);
    expect((await send('GET', `/nothing/${'x'.repeat(5_000)}`, { key: null })).status).toBe(400);
  });

  test.each([
    ['no HTTP at all', 'hello there\r\n\r\n'],
    ['a broken header', 'GET /open HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n'],
    ['a bare CR in a header', 'GET /open HTTP/1.1\r\nhost: a\r\nx: a\rb\r\n\r\n'],
    ['a space before the colon', 'POST /open HTTP/1.1\r\nhost: a\r\ncontent-length : 3\r\n\r\nabc'],
    [
      'both lengths',
      'POST /v1/generate HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    [
      'both lengths, turned round',
      'POST /v1/generate HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n',
    ],
    [
      'two different lengths',
      'POST /v1/generate HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd',
    ],
    ['a negative length', 'POST /v1/generate HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n'],
    ['an unknown transfer coding', 'POST /v1/generate HTTP/1.1\r\nhost: a\r\ntransfer-encoding: tea\r\n\r\n'],
    ['an unknown version', 'GET /open HTTP/9.1\r\nhost: a\r\n\r\n'],
    ['no Host header', 'GET /open HTTP/1.1\r\n\r\n'],
  ])('on the socket for %s', async (_name, bytes) => {
    const answer = parseRaw(await sendRaw(bytes));
    expect(answer.status).toBe(400);
    expect(answer.json()).toEqual(service_error('invalid_request'));
    expect(answer.headers['x-request-id']).toMatch(/^req_/);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
  });

  test('that its client can read although it goes on sending nonsense', async () => {
    // The server takes nonsense for a second: a process that stood still for so long begins again.
    let sent = await sendNonsense();
    while (sent.took_ms >= 1_000 && sent.failure) sent = await sendNonsense();
    expect(sent.failure).toBeUndefined();
    expect(parseRaw(sent.text).status).toBe(400);
  });

  async function sendNonsense(): Promise<{ text: string; failure: Error | undefined; took_ms: number }> {
    const begun_ms = performance.now();
    const socket = connect({ port: harness.port, host: '127.0.0.1', allowHalfOpen: true });
    const chunks: Buffer[] = [];
    let failure: Error | undefined;
    socket.on('error', (error) => (failure = error));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write('hello there\r\n\r\n');
    socket.pause();
    for (let i = 0; i < 20; i++) {
      socket.write(Buffer.alloc(10_000));
      await new Promise((resolve) => setTimeout(resolve, 5)); // a chunk each, not one large write
    }
    socket.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
    socket.on('end', () => socket.end());
    socket.resume();
    await closed;
    return { text: Buffer.concat(chunks).toString(), failure, took_ms: performance.now() - begun_ms };
  }

  test('for malformed HTTP in the format of its path if the path can be read', async () => {
    const broken = (path: string) => `POST ${path} HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n`;
    const messages = parseRaw(await sendRaw(broken('/v1/messages?beta=true')));
    expect(messages.json()).toEqual(messages_error('invalid_request'));
    expect(messages.headers['request-id']).toBe(messages.headers['x-request-id']);
    for (const path of ['/v1/chat/completions', 'http://a.example/v1/chat/completions?x', '/v1/chat%2Fcompletions']) {
      const completions = parseRaw(await sendRaw(broken(path)));
      expect(completions.json()).toEqual(completions_error('invalid_request'));
    }
    for (const path of ['/v1/messages\u00ff', '/v1/tasks?a=/v1/messages', '/v1/messagesx']) {
      const other = parseRaw(await sendRaw(Buffer.from(broken(path), 'latin1')));
      expect(other.json()).toEqual(service_error('invalid_request'));
    }
  });

  test('for a broken chunk in the middle of a body', async () => {
    const text = await sendRaw(
      'POST /v1/messages HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"a":\r\nzz\r\n',
    );
    expect(text.match(/HTTP\/1.1/g)).toHaveLength(1);
    expect(parseRaw(text).json()).toEqual(messages_error('invalid_request'));
  });

  test('after a response that is being sent, which is sent to its end first', async () => {
    const { promise: garbage_sent, resolve: sent } = Promise.withResolvers<void>();
    script = () => ({
      status: 200,
      headers: { 'content-type': 'text/plain' },
      body: Readable.from(
        (async function* () {
          yield 'first';
          await garbage_sent;
          yield 'second';
        })(),
      ),
    });
    const socket = connect(harness.port, '127.0.0.1');
    let text = '';
    socket.on('error', () => {});
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write('GET /v1/scripted HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\n\r\n');
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (text.endsWith('first\r\n')) socket.write('garbage\r\n\r\n', () => setTimeout(sent, 100));
    });
    await closed;
    expect(text.match(/HTTP\/1.1/g)).toHaveLength(2);
    expect(text).toMatch(/first[^]*second[^]*0\r\n\r\nHTTP\/1.1 400 /);
  });

  test('for a body that stops before its end, which harms nobody', async () => {
    const before = harness.log.filter((line) => line.level === 'error').length;
    const looked_up = harness.authenticated();
    const socket = connect(harness.port, '127.0.0.1');
    socket.write(
      'POST /v1/generate HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"a"',
    );
    const ended = harness.log.length;
    await until(() => harness.authenticated() > looked_up);
    socket.destroy();
    await until(() => harness.log.slice(ended).some((line) => line.fields['aborted'] === true));
    expect(harness.log.filter((line) => line.level === 'error')).toHaveLength(before);
    expect((await send('GET', '/open')).status).toBe(200);
  });
});

describe('a request gets 401', () => {
  test.each([
    ['no key', {}],
    ['another scheme', { authorization: 'Basic key_1' }],
    ['an unknown key', { authorization: 'Bearer wrong' }],
    ['an empty key', { authorization: 'Bearer ' }],
    ['an unknown x-api-key', { 'x-api-key': 'wrong' }],
    ['a wrong Authorization beside a right x-api-key', { authorization: 'Bearer wrong', 'x-api-key': 'key_1' }],
  ])('for %s', async (_name, headers) => {
    const answer = await send('GET', '/v1/tasks', { key: null, headers });
    expect(answer.status).toBe(401);
    expect(answer.json()).toEqual(service_error('authentication_error'));
    expect(answer.headers['x-ratelimit-limit-requests']).toBeUndefined();
  });

  test('but not with its key in x-api-key', async () => {
    expect((await send('GET', '/v1/tasks', { key: null, headers: { 'x-api-key': 'key_3' } })).status).toBe(200);
  });

  test('in the format of each path, also of unknown paths and methods', async () => {
    const refused = async (method: string, path: string) => {
      const answer = await send(method, path, { key: null });
      expect(answer.status).toBe(401);
      return answer.json();
    };
    expect(await refused('POST', '/v1/generate')).toEqual(service_error('authentication_error'));
    expect(await refused('GET', '/v1')).toEqual(service_error('authentication_error'));
    expect(await refused('GET', '/v1/nothing')).toEqual(service_error('authentication_error'));
    expect(await refused('PUT', '/v1/tasks')).toEqual(service_error('authentication_error'));
    expect(await refused('GET', '/v1/tasks/%zz')).toEqual(service_error('authentication_error'));
    expect(await refused('POST', '/v1/chat/completions')).toEqual(completions_error('authentication_error'));
    expect(await refused('GET', '/v1/chat/completions/x')).toEqual(completions_error('authentication_error'));
    expect(await refused('POST', '/v1/messages')).toEqual(messages_error('authentication_error'));
    expect(await refused('POST', '/v1/messages/count_tokens')).toEqual(messages_error('authentication_error'));
    expect(await refused('POST', '/v1/%6dessages')).toEqual(messages_error('authentication_error'));
  });

  test('before its body is read, whatever the body is', async () => {
    const text = await sendRaw(
      'POST /v1/generate HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\ncontent-length: 999999999\r\nconnection: close\r\n\r\n{',
    );
    expect(parseRaw(text).json()).toEqual(service_error('authentication_error'));
  });

  test('that can be read after a large upload without a key', async () => {
    const answer = await send('POST', '/v1/generate', { key: null, body: Buffer.alloc(15_000_000, 0x20) });
    expect(answer.status).toBe(401);
  });
});

test.each([
  ['/v1/generate', 'key_1', 426],
  ['/v1/nothing', 'key_1', 426],
  ['/v1/generate', 'nobody', 401],
])('a request for a WebSocket at %s by %s gets %d, with which Codex goes on by HTTP', async (path, key, status) => {
  const head = `GET ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\nconnection: upgrade\r\n`;
  const text = await sendRaw(`${head}upgrade: WebSocket\r\nsec-websocket-version: 13\r\n\r\n`);
  const answer = parseRaw(text.slice(0, text.lastIndexOf('}') + 1));
  expect([answer.status, answer.headers['upgrade']]).toEqual([status, status === 426 ? 'HTTP/1.1' : undefined]);
  expect(answer.json()).toMatchObject({ error: { type: status === 426 ? 'invalid_request' : 'authentication_error' } });
});

describe('a request gets 404', () => {
  test.each([
    '/v1/nothing',
    '/v1',
    '/v1/',
    '/v1/chat',
    '/v1/messagesx',
    '/v1/tasks/',
    '/v1/tasks//cancel',
    '/v1/models/',
    '/v1/tasks%2Fx',
    '/v1%2Ftasks',
  ])('for %s', async (path) => {
    const answer = await send('GET', path);
    expect(answer.status).toBe(404);
    expect(answer.json()).toEqual(service_error('not_found'));
    expect(answer.headers['x-ratelimit-limit-requests']).toBe('600');
  });

  test('in the formats of the chat paths', async () => {
    expect((await send('POST', '/v1/messages/batches', { json: {} })).json()).toEqual(messages_error('not_found'));
    expect((await send('GET', '/v1/chat/completions/1')).json()).toEqual(completions_error('not_found'));
  });

  test('without a key outside of /v1', async () => {
    const answer = await send('GET', '/nothing', { key: null });
    expect([answer.status, answer.error()['type']]).toEqual([404, 'not_found']);
  });

  test('with an invalid content type, and with a body', async () => {
    const answer = await send('POST', '/v1/nothing', { body: 'x', headers: { 'content-type': 'none' } });
    expect(answer.status).toBe(404);
  });

  test.each([
    ['POST', '/generate', '/v1/generate', null],
    ['POST', '/chat/completions', '/v1/chat/completions', null],
    ['GET', '/v1/tasks/', '/v1/tasks', 'key_1'],
  ])('for %s %s that asks whether %s was meant', async (method, path, meant, key) => {
    const answer = await send(method, path, { key });
    expect(answer.status).toBe(404);
    expect(answer.error()['message']).toContain(`Did you mean ${meant}?`);
  });
});

describe('a base URL that lacks /v1, or has it twice, is read as it is meant from whoever has a key', () => {
  test.each([
    ['GET', '/tasks?limit=3', '/v1/tasks', { limit: '3' }],
    ['GET', '/v1/v1/tasks', '/v1/tasks', {}],
    ['GET', '/tasks/task_1', '/v1/tasks/task_1', {}],
    ['GET', '/models/a/b', '/v1/models/a/b', {}], // which is a page of the dashboard, too
    ['POST', '/chat/completions', '/v1/chat/completions', {}],
    ['POST', '/messages?beta=true', '/v1/messages', { beta: 'true' }],
    ['POST', '/v1/v1/messages', '/v1/messages', {}],
  ])('%s %s', async (method, path, meant, query) => {
    for (const headers of [
      { authorization: 'Bearer key_1' },
      { 'x-api-key': 'key_1' },
      { 'api-key': 'key_1' },
      { 'x-goog-api-key': 'key_1' },
    ]) {
      const body = method === 'POST' ? { json: { a: 1 } } : {};
      const answer = await send(method, path, { key: null, headers, ...body });
      expect(answer.status).toBe(200);
      expect(answer.json()['path']).toBe(meant);
      expect(answer.json()['query']).toEqual(query);
    }
  });

  test('but not where there is a path of that name, or nothing', async () => {
    expect((await send('GET', '/open')).json()).toEqual({ open: true });
    expect((await send('GET', '/models/a')).status).toBe(200);
    for (const accept of ['application/json', 'application/json, text/event-stream', '*/*', '']) {
      const keyless = await send('GET', '/models/a', { key: null, headers: { accept } });
      expect([keyless.status, keyless.json()]).toEqual([401, service_error('authentication_error')]);
    }
    const browser = { accept: 'text/html,application/xhtml+xml,application/json;q=0.9' };
    expect((await send('GET', '/models/a', { key: null, headers: browser })).text).toBe('a page');
    expect((await send('GET', '/nothing')).status).toBe(404);
    expect((await send('GET', '/v1/v1')).status).toBe(404);
  });

  test('and a wrong key is refused in the format of the path', async () => {
    const answer = await send('POST', '/chat/completions', { key: 'wrong', json: {} });
    expect(answer.status).toBe(401);
    expect(answer.json()).toEqual(completions_error('authentication_error'));
  });
});

describe('a body in an encoding', () => {
  const text = JSON.stringify({ text: 'ü'.repeat(200_000) });
  const encodings = {
    gzip: gzipSync,
    'x-gzip': gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
  };
  const post = (encoding: string, body: Buffer, path = '/v1/chat/completions') =>
    send('POST', path, { body, headers: { 'content-encoding': encoding } });

  test.each(Object.entries(encodings))('is read: %s', async (encoding, encode) => {
    for (const body of ['{"a":1}', text]) {
      const answer = await post(encoding, encode(body));
      expect(answer.status).toBe(200);
      expect(answer.json()['body']).toEqual(JSON.parse(body));
    }
  });

  test('that is not what it says, or cut, gets 400', async () => {
    const bodies = [
      Buffer.from('{"a":1}'),
      gzipSync(text).subarray(0, 60),
      Buffer.concat([gzipSync('{'), gzipSync('}x')]),
    ];
    for (const [i, body] of bodies.entries()) {
      const answer = await post('gzip', body);
      expect([i, answer.status]).toEqual([i, 400]);
    }
  });

  test('with something behind it gets 400, and the connection goes on', async () => {
    for (const [encoding, encode] of Object.entries(encodings)) {
      const answer = await post(encoding, Buffer.concat([encode('{"a":1}'), Buffer.alloc(3_000_000, 1)]));
      expect([encoding, answer.status]).toEqual([encoding, 400]);
      expect((await post(encoding, encode('{"a":1}'))).status).toBe(200);
    }
  });

  test('that becomes larger than the limit gets 413, and takes no memory for long', async () => {
    const zeros = Buffer.alloc(200_000_000, 32);
    // However slow the machine is: each waits for its turn in the memory.
    const patient = await startHarness(endpoints, { timeouts: { body_memory_ms: 600_000, body_idle_ms: 600_000 } });
    const postPatiently = (encoding: string, body: Buffer) =>
      patient.send('POST', '/v1/chat/completions', { body, headers: { 'content-encoding': encoding } });
    for (const [encoding, encode] of Object.entries(encodings)) {
      if (encoding === 'br') continue; // 2 s of a core to make one
      const bomb = encode(zeros);
      const answers = await Promise.all(Array.from({ length: 10 }, () => postPatiently(encoding, bomb)));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([413]));
    }
    expect((await postPatiently('gzip', gzipSync('{"a":1}'))).status).toBe(200);
    await patient.close();
  });
});

describe('a request gets 405', () => {
  test.each([
    ['GET', '/v1/generate', 'POST'],
    ['DELETE', '/v1/tasks', 'GET, HEAD'],
    ['OPTIONS', '/v1/tasks', 'GET, HEAD'],
    ['PATCH', '/v1/scripted', 'POST, GET, HEAD'],
    ['POST', '/v1/models/a/b', 'GET, HEAD'],
    ['POST', '/v1/models/a%0D%0Ab', 'GET, HEAD'],
  ])('for %s %s, which allows %s', async (method, path, allow) => {
    const answer = await send(method, path);
    expect(answer.status).toBe(405);
    expect(answer.headers['allow']).toBe(allow);
    expect(answer.json()).toEqual(service_error('invalid_request'));
  });

  test('in the formats of the chat paths', async () => {
    expect((await send('GET', '/v1/messages')).json()).toEqual(messages_error('invalid_request'));
    expect((await send('GET', '/v1/chat/completions')).json()).toEqual(completions_error('invalid_request'));
  });

  test('on public paths without a key', async () => {
    expect((await send('POST', '/open', { key: null, json: {} })).status).toBe(405);
  });

  test.each(['TRACE', 'PROPFIND', 'PURGE', 'QUERY'])('for %s, which the service never accepts', async (method) => {
    const text = await sendRaw(
      `${method} /v1/tasks HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\nconnection: close\r\n\r\n`,
    );
    const answer = parseRaw(text);
    expect([answer.status, answer.headers['allow']]).toEqual([405, 'GET, HEAD']);
  });

  test('for CONNECT', async () => {
    const answer = parseRaw(await sendRaw('CONNECT example.com:443 HTTP/1.1\r\nhost: a\r\n\r\n'));
    expect(answer.status).toBe(405);
    expect(answer.json()).toEqual(service_error('invalid_request'));
  });

  test('but not for an Upgrade, which counts as an ordinary request', async () => {
    const text = await sendRaw(
      'GET /open HTTP/1.1\r\nhost: a\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n',
    );
    expect(parseRaw(text).status).toBe(200);
  });
});

describe('a request gets 413', () => {
  test('for a length beyond the limit before its body comes', async () => {
    const text = await sendRaw(
      'POST /v1/generate HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-type: application/json\r\ncontent-length: 20000001\r\nconnection: close\r\n\r\n',
    );
    const answer = parseRaw(text);
    expect(answer.status).toBe(413);
    expect(answer.error()).toMatchObject({ type: 'invalid_request', message: expect.stringContaining('20 MB') });
  });

  test('for a chunked body as soon as it is too large', async () => {
    const piece = `${(500_000).toString(16)}\r\n${'x'.repeat(500_000)}\r\n`;
    const text = await sendRaw(
      'POST /v1/estimate HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n',
      piece,
      piece,
      piece,
    );
    expect(parseRaw(text).status).toBe(413);
  });

  test('that its client can read although it sends everything first', async () => {
    const answer = await send('POST', '/v1/generate', { body: Buffer.alloc(25_000_000, 0x20) });
    expect(answer.status).toBe(413);
    expect(answer.json()).toEqual(service_error('invalid_request', 'request_too_large'));
  });

  test('rather than 415 when both apply', async () => {
    const answer = await send('POST', '/v1/estimate', {
      body: 'x'.repeat(1_000_001),
      headers: { 'content-type': 'text/plain' },
    });
    expect(answer.status).toBe(413);
  });
});

describe('a request gets 415', () => {
  test.each([
    ['text', { 'content-type': 'text/plain' }],
    ['what curl sends by itself', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['another character set', { 'content-type': 'application/json; charset=latin1' }],
    ['a type that begins like JSON', { 'content-type': 'application/jsonx' }],
    ['a list', { 'content-type': 'application/json, text/plain' }],
    ['no type', { 'content-type': '' }],
    ['nonsense', { 'content-type': 'json' }],
    ['an unknown encoding', { 'content-encoding': 'compress' }],
    ['two encodings', { 'content-encoding': 'gzip, br' }],
  ])('for %s', async (_name, headers) => {
    const answer = await send('POST', '/v1/generate', { body: '{"a":1}', headers });
    expect(answer.status).toBe(415);
    expect(answer.json()).toEqual(service_error('invalid_request'));
  });

  test('but not for the encoding identity', async () => {
    const answer = await send('POST', '/v1/generate', { body: '{"a":1}', headers: { 'content-encoding': 'identity' } });
    expect(answer.status).toBe(200);
  });
});

describe('a request with headers', () => {
  const head = 'GET /v1/messages HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\n';

  test('of more than 64 KiB is refused', async () => {
    const answer = parseRaw(await sendRaw(`${head}x-long: ${'x'.repeat(70_000)}\r\n\r\n`));
    expect(answer.status).toBe(400);
    expect(answer.error()['type']).toBe('invalid_request');
    expect(answer.headers['x-request-id']).toMatch(/^req_/);
  });

  test('of less than 64 KiB is accepted', async () => {
    const text = await sendRaw(`${head}x-long: ${'x'.repeat(60_000)}\r\nconnection: close\r\n\r\n`);
    expect(parseRaw(text).status).toBe(405);
  });
});

describe('a request gets 429', () => {
  test('as the 61st of a minute in the specified form, and refused ones do not count', async () => {
    let now_ms = 1_000_000;
    const limited = await startHarness(endpoints, { elapsed_ms: () => now_ms });
    try {
      for (let i = 1; i <= 60; i++) {
        const answer = await limited.send('POST', '/v1/generate', { json: { i } });
        expect(answer.status).toBe(200);
        expect(answer.headers).toMatchObject({
          'x-ratelimit-limit-requests': '60',
          'x-ratelimit-remaining-requests': String(60 - i),
        });
        now_ms += 100;
      }
      const before = calls;
      const answer = await limited.send('POST', '/v1/generate', { json: {} });
      expect(calls).toBe(before);
      expect(answer.status).toBe(429);
      expect(answer.json()).toEqual(service_error('rate_limit'));
      expect(answer.headers).toMatchObject({
        'retry-after': '55',
        'x-ratelimit-limit-requests': '60',
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '55s',
      });
      expect(answer.headers['x-should-retry']).toBeUndefined();
      expect((await limited.send('POST', '/v1/generate', { json: {}, key: 'key_2' })).status).toBe(200);
      expect((await limited.send('GET', '/v1/tasks')).headers['x-ratelimit-remaining-requests']).toBe('599');
      now_ms += 54_002;
      expect((await limited.send('POST', '/v1/generate', { json: {} })).status).toBe(200);
      expect((await limited.send('POST', '/v1/generate', { json: {} })).status).toBe(429);
    } finally {
      await limited.close();
    }
  });

  test('before its body is read and its contents are checked', async () => {
    const limited = await startHarness(endpoints, { limits: () => ({ generate: 0, chat: 0, other: 0 }) });
    try {
      const body = Buffer.alloc(25_000_000);
      const answer = await limited.send('POST', '/v1/generate', { body, headers: { 'content-type': 'text/plain' } });
      expect(answer.status).toBe(429);
      expect((await limited.send('POST', '/v1/messages')).json()).toEqual(messages_error('rate_limit'));
      expect((await limited.send('POST', '/v1/chat/completions')).json()).toEqual(completions_error('rate_limit'));
      expect((await limited.send('GET', '/v1/nothing')).status).toBe(429);
      expect((await limited.send('GET', '/v1/messages')).status).toBe(429);
      expect((await limited.send('GET', '/open', { key: null })).status).toBe(200);
      expect((await limited.send('POST', '/v1/generate', { key: null })).status).toBe(401);
    } finally {
      await limited.close();
    }
  });

  test('after accepted requests that failed, too, and both chat paths share a rate limit', async () => {
    const limited = await startHarness(endpoints, {
      limits: () => ({ generate: 2, chat: 3, other: 9 }),
      elapsed_ms: () => 1_000_000,
    });
    try {
      const statuses: number[] = [];
      for (const body of ['{', '{}', '{}'])
        statuses.push((await limited.send('POST', '/v1/generate', { body })).status);
      for (const path of ['/v1/messages', '/v1/chat/completions', '/v1/messages', '/v1/messages']) {
        statuses.push((await limited.send('POST', path, { json: {} })).status);
      }
      expect(statuses).toEqual([400, 200, 429, 200, 200, 200, 429]);
    } finally {
      await limited.close();
    }
  });

  test('unless it is one of exactly 60 out of 200 at once over many connections', async () => {
    const limited = await startHarness(endpoints, { elapsed_ms: () => 1_000_000 });
    try {
      const all = await Promise.all(
        Array.from({ length: 200 }, () => limited.send('POST', '/v1/generate', { json: {} })),
      );
      expect(all.filter((answer) => answer.status === 200)).toHaveLength(60);
      expect(all.filter((answer) => answer.status === 429)).toHaveLength(140);
    } finally {
      await limited.close();
    }
  });

  test('for the pause after failures with a header that tells SDKs not to retry', async () => {
    script = () => {
      throw new ApiError('failures_pause', 'Paused.', { headers: { 'retry-after': '3600' } });
    };
    const answer = await send('POST', '/v1/scripted');
    expect(answer.status).toBe(429);
    expect(answer.json()).toEqual(service_error('rate_limit_error'));
    expect(answer.headers).toMatchObject({ 'retry-after': '3600', 'x-should-retry': 'false' });
  });
});

describe('a request gets 402 or 403', () => {
  test.each([
    ['insufficient_balance', 402, 'insufficient_balance'],
    ['key_limit', 403, 'permission_error'],
    ['account_blocked', 403, 'permission_error'],
  ] as const)('for %s with a header that tells SDKs not to retry', async (kind, status, type) => {
    script = () => {
      throw new ApiError(kind, 'No.');
    };
    const answer = await send('POST', '/v1/scripted');
    expect(answer.status).toBe(status);
    expect(answer.json()).toEqual(service_error(type));
    expect(answer.headers['x-should-retry']).toBe('false');
  });
});

describe('a request gets 422', () => {
  test('with code, param and details inside the error object', async () => {
    const details = [
      { field: 'input.a', rule: 'required', message: 'input.a is required.' },
      { field: 'input.b', rule: 'type', message: 'input.b must be a string.' },
    ];
    script = () => {
      throw new ApiError('invalid_input', 'input.a is required.', { param: 'input.a', details });
    };
    const answer = await send('POST', '/v1/scripted');
    expect(answer.status).toBe(422);
    expect(answer.error()).toMatchObject({ type: 'invalid_request', param: 'input.a', details });
    expect(Object.keys(answer.json())).toEqual(['error']);
    expect(answer.headers['x-should-retry']).toBeUndefined();
  });
});

describe('a request gets 500', () => {
  test('for an unexpected error that is in the log and not in the response', async () => {
    for (const fail of [
      () => {
        throw new TypeError('secret detail');
      },
      () => Promise.reject(new Error('secret detail')),
      () => ({ status: 200, body: { big: 1n } }),
    ]) {
      script = fail;
      const answer = await send('POST', '/v1/scripted');
      expect(answer.status).toBe(500);
      expect(answer.json()).toEqual(service_error('internal_error'));
      expect(answer.text).not.toContain('secret');
      const line = harness.log.find(
        (one) => one.level === 'error' && one.fields['request_id'] === answer.error()['request_id'],
      );
      expect(line?.fields['err']).toBeInstanceOf(Error);
    }
  });

  test('for a thrown value that is not an error', async () => {
    script = () => Promise.reject('text');
    expect((await send('POST', '/v1/scripted')).json()).toEqual(service_error('internal_error'));
  });

  test('that cannot even be sent, which ends the connection and not the service', async () => {
    script = () => {
      throw new ApiError('conflict', 'No.', { headers: { 'x-bad': 'a\nb' } });
    };
    await expect(send('POST', '/v1/scripted')).rejects.toThrow(/closed|ECONNRESET/);
    for (const body of [{}, Buffer.from('{}')]) {
      script = () => ({ status: 200, body, headers: { 'x-good': 'a', 'x-bad': 'a\nb' } });
      const answer = await send('POST', '/v1/scripted');
      expect([answer.status, answer.headers['x-good']]).toEqual([500, undefined]);
    }
    expect(harness.log.filter((line) => line.message === 'an error could not be sent')).toHaveLength(1);
    expect((await send('GET', '/open')).status).toBe(200);
  });

  test('for a failed look-up of its key, in the format of the path', async () => {
    const broken = await startHarness(endpoints, {
      authenticate: () => Promise.reject(new Error('the database is gone')),
    });
    try {
      const answer = await broken.send('POST', '/v1/messages', { json: {} });
      expect(answer.status).toBe(500);
      expect(answer.json()).toEqual(messages_error('internal_error'));
    } finally {
      await broken.close();
    }
  });

  test('for a stream that fails before its first byte, and after it the connection is cut', async () => {
    const failing = (first: string) =>
      Readable.from(
        (async function* () {
          if (first) yield first;
          await new Promise((resolve) => setImmediate(resolve));
          throw new Error('disk gone');
        })(),
      );
    script = () => ({
      status: 200,
      body: failing(''),
      headers: { 'content-type': 'image/png', 'content-length': '99', etag: '"1"' },
    });
    const answer = await send('GET', '/v1/scripted');
    expect(answer.status).toBe(500);
    expect(answer.json()).toEqual(service_error('internal_error'));
    expect(answer.headers['etag']).toBeUndefined();
    script = () => ({
      status: 200,
      body: failing('abc'),
      headers: { 'content-type': 'image/png', 'content-length': '99' },
    });
    await expect(send('GET', '/v1/scripted')).rejects.toThrow(/terminated|other side closed|aborted/);
  });
});

describe('the log', () => {
  test('has one line per request with only listed fields', async () => {
    const answer = await send('POST', '/v1/generate?wait=0', {
      json: { prompt: 'canary-prompt' },
      headers: { 'x-canary': 'canary-header' },
      key: 'key_9',
    });
    const id = answer.headers['x-request-id'];
    await until(() => harness.log.some((line) => line.fields['request_id'] === id));
    const lines = harness.log.filter((line) => line.fields['request_id'] === id);
    expect(lines).toEqual([
      {
        level: 'info',
        message: 'request',
        fields: {
          request_id: id,
          method: 'POST',
          route: '/v1/generate',
          account_id: 'acct_9',
          key_id: 'key_9',
          body_bytes: 26,
          status: 200,
          ms: expect.any(Number),
        },
      },
    ]);
    expect(JSON.stringify(harness.log)).not.toMatch(/canary|wait=0/);
  });
});

describe('a slow client', () => {
  const timeouts = { check_every_ms: 50, discard_ms: 200 };

  test('whose headers never end gets a response and is cut', async () => {
    const slow = await startHarness(endpoints, { timeouts: { ...timeouts, headers_ms: 300, request_ms: 600 } });
    try {
      const answer = parseRaw(await slow.sendRaw('GET /v1/messages HTTP/1.1\r\nhost: a\r\n'));
      expect(answer.status).toBe(400);
      expect(answer.error()['message']).toMatch(/too slowly/);
    } finally {
      await slow.close();
    }
  });

  test('whose body stalls gets a response and is cut soon', async () => {
    const slow = await startHarness(endpoints, { timeouts: { ...timeouts, body_idle_ms: 200 } });
    try {
      const text = await slow.sendRaw(
        'POST /v1/messages HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{',
      );
      expect(parseRaw(text).json()).toEqual(messages_error('invalid_request'));
      expect(parseRaw(text).error()['message']).toMatch(/too slowly/);
    } finally {
      await slow.close();
    }
  });

  test('on whose connection nothing moves is cut', async () => {
    const slow = await startHarness(endpoints, { timeouts: { ...timeouts, silence_ms: 100 } });
    try {
      script = () => new Promise(() => {});
      await expect(slow.send('POST', '/v1/scripted')).rejects.toThrow(/closed|ECONNRESET/);
    } finally {
      await slow.close();
    }
  });

  test('whose body is slow but never stalls is accepted', async () => {
    const slow = await startHarness(endpoints, { timeouts: { ...timeouts, body_idle_ms: idle_ms } });
    // Where this process stood still, the body did stall: then once more.
    let sent = await sendSlowly(slow.port);
    while (sent.status !== 200 && sent.longest_pause_ms > idle_ms / 2) sent = await sendSlowly(slow.port);
    expect(sent.status).toBe(200);
    await slow.close();
  });

  const idle_ms = 800;

  /** A byte every 100 ms, for longer than a body may stall. Returns also the longest time between two bytes. */
  async function sendSlowly(port: number): Promise<{ status: number; longest_pause_ms: number }> {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    const answered = new Promise<Buffer>((resolve) => {
      socket.once('data', resolve).once('close', () => resolve(Buffer.alloc(0)));
    });
    let [last_ms, longest_pause_ms] = [performance.now(), 0];
    const move = () => {
      longest_pause_ms = Math.max(longest_pause_ms, performance.now() - last_ms);
      last_ms = performance.now();
    };
    socket.write(
      'POST /v1/generate HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-type: application/json\r\ncontent-length: 12\r\n\r\n',
    );
    for (const byte of '{"a": "bcd"}') {
      socket.write(byte);
      await new Promise((resolve) => setTimeout(resolve, 100)); // slowness is what is tested
      move();
    }
    const { status } = parseRaw((await answered).toString());
    move();
    socket.destroy();
    return { status, longest_pause_ms };
  }

  test('whose upload was refused may go on for a while, not for ever', async () => {
    const slow = await startHarness(endpoints, { timeouts: { ...timeouts, request_ms: 60_000 } });
    const socket = connect(slow.port, '127.0.0.1');
    socket.on('error', () => {});
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write('POST /v1/generate HTTP/1.1\r\nhost: a\r\ncontent-length: 100000000\r\n\r\n');
    const drip = setInterval(() => socket.write('x'.repeat(100)), 20);
    const [first] = await Promise.all([new Promise<Buffer>((resolve) => socket.once('data', resolve)), closed]);
    clearInterval(drip);
    expect(parseRaw(first.toString()).status).toBe(401);
    await slow.close();
  });
});

describe('CORS', () => {
  const headers = { origin: 'https://app.example' };
  const preflight = {
    ...headers,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization, x-a',
  };

  test('is off by default', async () => {
    expect((await send('GET', '/v1/tasks', { headers })).headers['access-control-allow-origin']).toBeUndefined();
    expect((await send('OPTIONS', '/v1/generate', { headers: preflight, key: null })).status).toBe(401);
  });

  test('is on for the named origins, also for refusals and without a key for preflights', async () => {
    const open = await startHarness(endpoints, { cors_origins: () => ['https://app.example'] });
    try {
      const answer = await open.send('GET', '/v1/tasks', { headers });
      expect(answer.headers).toMatchObject({ 'access-control-allow-origin': 'https://app.example', vary: 'origin' });
      expect(answer.headers['access-control-expose-headers']).toContain('x-request-id');
      const refused = await open.send('GET', '/v1/tasks', { headers, key: null });
      expect(refused.headers['access-control-allow-origin']).toBe('https://app.example');
      const before = await open.send('OPTIONS', '/v1/generate', { headers: preflight, key: null });
      expect(before.status).toBe(204);
      expect(before.headers).toMatchObject({
        'access-control-allow-origin': 'https://app.example',
        'access-control-allow-headers': 'authorization, x-a',
      });
      expect(before.headers['access-control-allow-credentials']).toBeUndefined();
      const other = { ...preflight, origin: 'https://evil.example' };
      const stranger = await open.send('OPTIONS', '/v1/generate', { headers: other, key: null });
      expect(stranger.status).toBe(401);
      expect(stranger.headers['access-control-allow-origin']).toBeUndefined();
    } finally {
      await open.close();
    }
  });
});

describe('closing the service', () => {
  /** Whoever waited for the end of this time would end after the limit of a test. */
  const longer_than_the_test_ms = 3_600_000;

  test('completes the calls in flight, informs those that wait, then ends', async () => {
    const closing = await startHarness(endpoints, { authenticate });
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    script = async (call) => {
      enter();
      await new Promise<void>((resolve) => call.draining.addEventListener('abort', () => resolve()));
      return { status: 200, body: { told: true } };
    };
    const waiting = closing.send('POST', '/v1/scripted');
    await entered;
    const closed = closing.pipeline.close({ announce_ms: 0, grace_ms: longer_than_the_test_ms });
    const answer = await waiting;
    expect(answer.json()).toEqual({ told: true });
    expect(answer.headers['connection']).toBe('close');
    await closed;
    expect(closing.pipeline.draining.aborted).toBe(true);
    await expect(closing.send('GET', '/open')).rejects.toThrow(/ECONNREFUSED|closed/);
  });

  test('does not wait for clients that keep an idle connection', async () => {
    const closing = await startHarness(endpoints);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    script = () => ({
      status: 200,
      headers: { 'content-type': 'text/plain' },
      body: Readable.from(
        (async function* () {
          yield 'first';
          await released;
          yield 'last';
        })(),
      ),
    });
    const socket = connect(closing.port, '127.0.0.1');
    socket.write('GET /v1/scripted HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
    const closed = closing.pipeline.close({ announce_ms: 0, grace_ms: longer_than_the_test_ms });
    release();
    await expect(closed).resolves.toBeUndefined();
  });

  test('cuts calls that do not end in time', async () => {
    const closing = await startHarness(endpoints);
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    script = () => {
      enter();
      return new Promise(() => {});
    };
    const outcome = closing.send('POST', '/v1/scripted').catch((error: unknown) => error);
    await entered;
    await closing.pipeline.close({ announce_ms: 0, grace_ms: 200 });
    expect(await outcome).toBeInstanceOf(Error);
  });
});
