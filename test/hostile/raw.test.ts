// isolated: it measures its process
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { formatProblem } from './judge.ts';
import { speak } from './speak.ts';
import type { Reply } from './wire.ts';

let service: TestApp;
let client: Client;
let port: number;
let head: (line: string, ...lines: string[]) => string;

beforeAll(async () => {
  service = await startTestApp({
    yaml: `version: 1\n${limits()}\n`,
  });
  client = await service.client();
  port = Number(new URL(service.url).port);
  head = (line, ...lines) =>
    `${[line, 'host: a', `authorization: Bearer ${client.key}`, ...lines].join('\r\n')}\r\n\r\n`;
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

const json = 'content-type: application/json';
const close = 'connection: close';

/** Fails unless it is a 400 in the format of the service, after which the connection ended. */
function expectRefused(replies: Reply[], format: 'service' | 'completions' | 'messages' = 'service'): void {
  expect(replies.map(({ status }) => status)).toEqual([400]);
  const [reply] = replies;
  expect(formatProblem(JSON.parse(String(reply?.body)), format)).toBeUndefined();
  expect(reply?.headers.get('x-request-id')).toMatch(/^req_/);
  expect(reply?.headers.get('connection')).toBe('close');
}

describe('what two servers could understand differently is refused, and nothing behind it is run', () => {
  /** Were the head read in the other way, this would be the next request. */
  const smuggled = 'GET /livez HTTP/1.1\r\nhost: a\r\n\r\n';

  test.each([
    ['chunked, and a length', ['content-length: 5', 'transfer-encoding: chunked']],
    ['chunked, and a length of nothing', ['transfer-encoding: chunked', 'content-length: 0']],
    ['a space before the colon of Transfer-Encoding', ['transfer-encoding : chunked']],
    ['a space before the colon of Content-Length', ['content-length : 5']],
    ['a coding after chunked', ['transfer-encoding: chunked, identity']],
    ['a coding like chunked', ['transfer-encoding: xchunked']],
    ['chunked in quotes', ['transfer-encoding: "chunked"']],
    ['chunked behind a tab that is none', ['transfer-encoding: \x0bchunked']],
    ['a coding before chunked', ['transfer-encoding: gzip, chunked']],
    ['a coding that does nothing before chunked', ['transfer-encoding: identity, chunked']],
    ['an unknown coding before chunked', ['transfer-encoding: xchunked, chunked']],
    ['nothing before chunked', ['transfer-encoding: ,chunked']],
    ['nothing and a space before chunked', ['transfer-encoding: , chunked']],
    ['nothing behind chunked', ['transfer-encoding: chunked,']],
    ['chunked twice', ['transfer-encoding: chunked, chunked']],
    ['chunked in two headers', ['transfer-encoding: chunked', 'transfer-encoding: chunked']],
    ['a coding in a header before that of chunked', ['transfer-encoding: gzip', 'transfer-encoding: chunked']],
    ['a coding in a header behind that of chunked', ['transfer-encoding: chunked', 'transfer-encoding: identity']],
    ['chunked with a parameter', ['transfer-encoding: chunked;q=1']],
    ['chunked in capitals', ['transfer-encoding: CHUNKED']],
    ['identity alone', ['transfer-encoding: identity']],
    ['gzip alone', ['transfer-encoding: gzip']],
    ['an empty coding', ['transfer-encoding:']],
    ['a folded header', ['transfer-encoding:', ' chunked']],
    ['a bare CR that hides a header', ['x: a\rtransfer-encoding: chunked']],
    ['a bare LF after a header', ['x: a\ncontent-length: 5']],
    ['NUL in a header', ['x: a\0b']],
    ['NUL in a name', ['x\0y: a']],
    ['no name', [': a']],
    ['a length with a sign', ['content-length: +5']],
    ['a length in hex', ['content-length: 0x5']],
    ['a length with a comma', ['content-length: 5, 5']],
    ['a length with a space in it', ['content-length: 5 5']],
    ['two lengths', ['content-length: 5', 'content-length: 6']],
    ['the same length twice', ['content-length: 5', 'content-length: 5']],
    ['an endless length', ['content-length: 99999999999999999999999']],
  ])('%s', async (_name, lines) => {
    const start = head('POST /v1/estimate HTTP/1.1', json, ...lines);
    const { replies, text } = await speak(port, [`${start}0\r\n\r\n${smuggled}`]);
    expectRefused(replies);
    expect(text).toContain('not valid HTTP'); // so by the parser, before anything was run
  });

  test('chunked in HTTP/1.0, and spaces around chunked', async () => {
    const old = head('POST /v1/estimate HTTP/1.0', json, 'transfer-encoding: chunked');
    expectRefused((await speak(port, [`${old}2\r\n{}\r\n0\r\n\r\n${smuggled}`])).replies);
    const spaced = head('POST /v1/estimate HTTP/1.1', json, close, 'transfer-encoding:   chunked  ');
    const { replies } = await speak(port, [`${spaced}2\r\n{}\r\n0\r\n\r\n`]);
    expect(replies.map(({ body }) => JSON.parse(String(body)).error.param)).toEqual(['model']);
  });

  test('a request behind one with another coding is not run', async () => {
    const before = (await client.call('GET', '/v1/tasks')).json.data.length;
    const body = JSON.stringify({ model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } });
    const create = head('POST /v1/generate HTTP/1.1', json, `content-length: ${body.length}`) + body;
    const start = head('POST /v1/estimate HTTP/1.1', json, 'transfer-encoding: gzip, chunked');
    expectRefused((await speak(port, [`${start}0\r\n\r\n${create}`])).replies);
    expect((await client.call('GET', '/v1/tasks')).json.data.length).toBe(before);
  });

  test.each([
    ['two hosts', ['host: a', 'Host: b']],
    ['the same host twice', ['host: a', 'host: a']],
    ['a host with a path', ['host: a/v1']],
    ['a host with a user', ['host: a@b']],
    ['a host with a space', ['host: a b']],
    ['no host', []],
  ])('%s', async (_name, lines) => {
    const all = ['GET /v1/balance HTTP/1.1', ...lines, `authorization: Bearer ${client.key}`, close];
    const { replies, text } = await speak(port, [`${all.join('\r\n')}\r\n\r\n`]);
    expectRefused(replies);
    expect(text).toContain('Host header');
  });

  test.each([
    ['a size that is none', 'z\r\n\r\n'],
    ['a negative size', '-1\r\n\r\n'],
    ['a size beyond all numbers', 'fffffffffffffffff\r\n\r\n'],
    ['a size in the form of C', '0x2\r\n{}\r\n0\r\n\r\n'],
    ['LF alone behind the size', '2\n{}\r\n0\r\n\r\n'],
    ['LF alone in an extension', '2;a=b\nGET\r\n{}\r\n0\r\n\r\n'],
    ['a chunk longer than it says', '2\r\n{}}}}\r\n0\r\n\r\n'],
    ['extensions of 20 kB', `2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`],
  ])('chunks: %s', async (name, body) => {
    const start = head('POST /v1/estimate HTTP/1.1', json, 'transfer-encoding: chunked');
    const { replies } = await speak(port, [start + body + smuggled]);
    expect(replies).toHaveLength(1);
    expect(replies[0]?.status).toBe(name.startsWith('extensions') ? 413 : 400);
  });

  test.each([
    ['lower case', 'get /v1/messages HTTP/1.1'],
    ['a method that nobody has', 'FOO /v1/messages HTTP/1.1'],
    ['HTTP/1.2', 'GET /v1/messages HTTP/1.2'],
    ['a tab', 'GET\t/v1/messages HTTP/1.1'],
    ['a path without a slash', 'GET v1/messages HTTP/1.1'],
    ['a fragment', 'GET /v1/messages#a HTTP/1.1 x'],
    ['the greeting of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM'],
  ])('the request line: %s', async (_name, line) => {
    const { replies } = await speak(port, [`${line}\r\nhost: a\r\n\r\n`]);
    expect(replies.map(({ status }) => status)).toEqual([400]);
  });

  test.each(['POST', 'M-SEARCH', 'FOO'])('nonsense by %s has the format of its path', async (method) => {
    const { replies } = await speak(port, [`${method} /v1/messages HTTP/1.1\r\nhost: a\r\nx: \0\r\n\r\n`]);
    expectRefused(replies, 'messages');
  });

  test('the greeting of TLS', async () => {
    const { replies } = await speak(port, [Buffer.from('16030100ba010000b603034d', 'hex')]);
    expectRefused(replies);
  });
});

describe('several requests on one connection', () => {
  test('fifty at once are answered in order', async () => {
    const requests = Array.from({ length: 50 }, (_, number) =>
      head('GET /v1/balance HTTP/1.1', `x-client-request-id: ${number}`),
    );
    const { replies } = await speak(port, [requests.join('')], { enough: 50 });
    expect(replies.map(({ headers }) => Number(headers.get('x-client-request-id')))).toEqual(
      Array.from({ length: 50 }, (_, number) => number),
    );
  });

  test('one that is nonsense does not take the answer of the one before it', async () => {
    const body = JSON.stringify({ model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } });
    const create = head('POST /v1/generate?wait=20 HTTP/1.1', json, `content-length: ${body.length}`) + body;
    const { replies } = await speak(port, [`${create}POST /v1/messages HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n`]);
    expect(replies.map(({ status }) => status)).toEqual([202, 400]);
    expect(formatProblem(JSON.parse(String(replies[1]?.body)), 'messages')).toBeUndefined();
  });

  test.each(['    ', '{"a":"GET /v1/tasks"}', 'x: GET /v1/tasks HTTP/1.1\r\n'])(
    'one that is nonsense has the format of its own path, behind the body %j',
    async (body) => {
      const first = head('GET /v1/balance HTTP/1.1', `content-length: ${body.length}`) + body;
      const second = 'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nx: GET /v1/tasks\r\na\0: b\r\n\r\n';
      const { replies } = await speak(port, [first + second]);
      expect(replies.map(({ status }) => status)).toEqual([200, 400]);
      expect(formatProblem(JSON.parse(String(replies[1]?.body)), 'completions')).toBeUndefined();
    },
  );

  test('one that is refused before its body leaves the next one whole', async () => {
    const refused = `POST /v1/estimate HTTP/1.1\r\nhost: a\r\ncontent-length: 30\r\n\r\n${'GET /livez HTTP/1.1\r\nhost: a\r\n\r\n'.slice(0, 30)}`;
    const { replies } = await speak(port, [refused + head('GET /v1/balance HTTP/1.1', close)]);
    expect(replies.map(({ status }) => status)).toEqual([401, 200]);
  });

  test('a GET with a body is answered, and its body is no request', async () => {
    const body = 'GET /livez HTTP/1.1\r\nhost: a\r\n\r\n';
    const first = head('GET /v1/balance HTTP/1.1', `content-length: ${body.length}`) + body;
    const { replies } = await speak(port, [first + head('GET /v1/key HTTP/1.1', close)]);
    expect(replies.map(({ body: text }) => JSON.parse(String(text)).object)).toEqual(['balance', 'api_key']);
  });
});

describe('unusual, and served', () => {
  test('a client that closes its half is gone: nothing waits for it, and its task is whole', async () => {
    const body = JSON.stringify({ model: 'sandbox/image', input: { prompt: '[[delay 8s]]', width: 16, height: 16 } });
    const create = head('POST /v1/generate?wait=60 HTTP/1.1', json, `content-length: ${body.length}`) + body;
    const { replies } = await speak(port, [create], { half_closed: true });
    expect(replies).toEqual([]); // whoever waited would get the task
  });

  test('a request without a version is one without a key', async () => {
    const { replies } = await speak(port, ['GET /v1/balance\r\n\r\n']);
    expect(replies.map(({ status }) => status)).toEqual([401]);
  });

  test('HTTP/1.0 without Host, and the connection ends', async () => {
    const { replies } = await speak(port, [`GET /v1/balance HTTP/1.0\r\nauthorization: Bearer ${client.key}\r\n\r\n`]);
    expect(replies.map(({ status }) => status)).toEqual([200]);
  });

  test.each([
    ['GET http://elsewhere.example/v1/balance HTTP/1.1', 200],
    ['GET http://elsewhere.example HTTP/1.1', 200],
    ['GET http://elsewhere.example?a=b HTTP/1.1', 200],
    ['OPTIONS * HTTP/1.1', 404],
    ['GET //v1/balance HTTP/1.1', 404],
    ['GET /v1/balance/ HTTP/1.1', 404],
    ['GET /V1/balance HTTP/1.1', 404],
    ['GET /v1/../v1/balance HTTP/1.1', 404],
  ])('%s is answered %i', async (line, status) => {
    const { replies } = await speak(port, [head(line, close)]);
    expect(replies.map((reply) => reply.status)).toEqual([status]);
  });

  test('a wrong Host is served, and stands in no answer', async () => {
    const body = JSON.stringify({ model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } });
    const lines = ['host: evil.example', `authorization: Bearer ${client.key}`, 'x-forwarded-host: evil.example'];
    const start = `POST /v1/generate?wait=60 HTTP/1.1\r\n${lines.join('\r\n')}\r\n${json}\r\n${close}\r\n`;
    const { replies, text } = await speak(port, [`${start}content-length: ${body.length}\r\n\r\n${body}`]);
    expect(replies.map(({ status }) => status)).toEqual([202]);
    expect(text).toContain(`"url":"${service.url}/files/`);
    expect(text).not.toContain('evil');
    const links = await speak(port, [`GET /openapi.json HTTP/1.1\r\nhost: evil.example\r\n${close}\r\n\r\n`]);
    expect(links.text).not.toContain('evil');
  });

  test.each([
    [1_000, 200],
    [1_001, 400],
  ])('%i headers, the key in the last of them: %i', async (count, status) => {
    const many = Array.from({ length: count - 3 }, (_, number) => `x${number}: `);
    const lines = ['host: a', close, ...many, `authorization: Bearer ${client.key}`];
    const { replies } = await speak(port, [`GET /v1/balance HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`]);
    expect(replies.map((reply) => reply.status)).toEqual([status]);
  });

  test('headers that would choose another method, path or address choose nothing', async () => {
    const lines = ['x-http-method-override: DELETE', 'x-original-url: /livez', 'x-rewrite-url: /livez', close];
    const { replies } = await speak(port, [head('GET /v1/balance HTTP/1.1', ...lines)]);
    expect(JSON.parse(String(replies[0]?.body))).toMatchObject({ object: 'balance' });
  });
});

describe('large and slow', () => {
  test('a compressed body is read no further than its limit: a bomb stays a bomb', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const lines = [json, 'content-encoding: gzip', `content-length: ${bomb.length}`, close];
    const { replies } = await speak(port, [head('POST /v1/generate HTTP/1.1', ...lines), bomb]);
    expect(replies.map(({ status }) => status)).toEqual([413]);
  });

  test.each([
    ['/v1/generate', 20_000_000, 'service'],
    ['/v1/chat/completions', 32_000_000, 'completions'],
    ['/v1/messages', 32_000_000, 'messages'],
  ] as const)('413 of %s in its format at once, before the body comes', async (path, limit, format) => {
    const lines = [json, `content-length: ${limit + 1}`, close];
    // The body never comes: whoever waited for it would answer 400.
    const { replies } = await speak(port, [head(`POST ${path} HTTP/1.1`, ...lines)], { enough: 1 });
    expect(replies.map(({ status }) => status)).toEqual([413]);
    expect(formatProblem(JSON.parse(String(replies[0]?.body)), format)).toBeUndefined();
  });

  test('200 MB in chunks: refused at 20 MB, and never more than twice as much is held', async () => {
    const piece = Buffer.alloc(1_000_000, 0x20);
    const chunk = Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    let answer = '';
    socket.on('data', (data) => (answer += data.toString()));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const before = heldBytes();
    let most = 0;
    socket.write(head('POST /v1/generate HTTP/1.1', json, 'transfer-encoding: chunked'));
    for (let sent = 0; sent < 200 && !socket.destroyed; sent++) {
      await new Promise((resolve) => socket.write(chunk, resolve));
      if (sent % 5 === 0) most = Math.max(most, heldBytes() - before);
    }
    await closed;
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    expect(most).toBeLessThan(40_000_000);
  });

  test('1,000 idle connections and 100 that begin a request keep nobody else from being served', async () => {
    const idle = await Promise.all(Array.from({ length: 1_100 }, () => opened(port)));
    for (const socket of idle.slice(0, 100)) socket.write('POST /v1/generate HTTP/1.1\r\nhost: a\r\n');
    expect((await client.call('GET', '/v1/balance')).status).toBe(200);
    expect(idle.filter((socket) => socket.destroyed)).toEqual([]);
    for (const socket of idle) socket.destroy();
  });
});

/** Of buffers that somebody still holds: what waits for the collector depends on how busy the machine is. */
function heldBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().arrayBuffers;
}

async function opened(to: number): Promise<Socket> {
  const socket = connect(to, '127.0.0.1');
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', resolve));
  return socket;
}

describe('clients that go away', () => {
  test('at every byte of a creation: a task is there in whole or not at all', async () => {
    const body = JSON.stringify({ model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } });
    const request = head('POST /v1/generate?wait=5 HTTP/1.1', json, `content-length: ${body.length}`) + body;
    for (let length = 1; length <= request.length; length += 3) {
      const socket = await opened(port);
      await new Promise((resolve) => socket.write(request.slice(0, length), resolve));
      if (length % 2 === 0) socket.destroy();
      else socket.resetAndDestroy();
    }
    await vi.waitFor(
      async () => {
        const { data } = (await client.call('GET', '/v1/tasks?limit=100')).json;
        expect(data.every(({ status }) => status === 'succeeded')).toBe(true);
      },
      { timeout: 120_000, interval: 100 },
    );
    await expectExactBooks(service.app);
    expect((await fetch(`${service.url}/livez`)).status).toBe(200);
  });
});
