import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { Semaphore } from '../../src/concurrency/semaphore.ts';
import type { Answer, Call, Endpoint } from '../../src/http/endpoint.ts';
import { type Harness, type SendOptions, startHarness, type TestApp } from './harness.ts';
import { completions_errors } from '../../src/styles/completions/errors.ts';

// Of 10 MB for all large bodies one account has what is left: half of it, if it is alone.
const bodies_bytes_max = 10_000_000;
const body_memory_ms = 400;

/** Calls that have been read and are not answered yet. */
let open: { call: Call; answer: () => void }[] = [];

const endpoints: Endpoint<TestApp>[] = [
  {
    method: 'POST',
    path: '/v1/chat/completions',
    format: completions_errors,
    body_limit_bytes: 4_000_000,
    docs: { tag: 'Test', summary: 'Test', body: { schema: { type: 'object' } }, responses: {} },
    handle: (_app, call) =>
      new Promise<Answer>((resolve) => {
        open.push({ call, answer: () => resolve({ status: 200 }) });
      }),
  },
];

let harness: Harness;
afterEach(async () => {
  await harness.close();
  open = [];
});

async function start(options: { body_memory_ms?: number } = {}): Promise<void> {
  harness = await startHarness(endpoints, {
    body_memory: new Semaphore({ name: 'x', bound: bodies_bytes_max, key_bound: 'fair' }),
    timeouts: { body_memory_ms, ...options },
  });
}

function send(megabytes: number, options: SendOptions = {}): ReturnType<Harness['send']> {
  const body = JSON.stringify({ text: 'x'.repeat(megabytes * 1_000_000 - 11) });
  return harness.send('POST', '/v1/chat/completions', { body, ...options });
}

const untilOpen = (count: number) => vi.waitUntil(() => open.length === count, { timeout: 120_000, interval: 5 });

function end(at: number): void {
  open[at]?.answer();
}

test('a large body waits for others of its account, and those of another account do not', async () => {
  await start({ body_memory_ms: 60_000 });
  const held = [send(2.5), send(2.5)];
  await untilOpen(2);
  const third = send(2.5);
  const other = send(4, { key: 'key_2' });
  await untilOpen(3);
  expect(open[2]?.call.caller.account.id).toBe('acct_2');
  end(2);
  expect((await other).status).toBe(200);
  expect(open).toHaveLength(3);
  end(0);
  await untilOpen(4);
  for (const at of [1, 3]) end(at);
  expect((await Promise.all([...held, third])).map(({ status }) => status)).toEqual([200, 200, 200]);
});

test('a large body that waits too long is refused in the style of its path, and small ones go on', async () => {
  await start();
  const held = [send(2.5), send(2.5)];
  await untilOpen(2);
  const refused = await send(2.5);
  expect(refused.status).toBe(429);
  expect(refused.headers['retry-after']).toBe('2');
  expect(refused.error()).toMatchObject({ type: 'rate_limit', param: null });
  const small = harness.send('POST', '/v1/chat/completions', { json: { text: 'small' } });
  await untilOpen(3);
  for (const at of [0, 1, 2]) end(at);
  expect((await Promise.all([...held, small])).map(({ status }) => status)).toEqual([200, 200, 200]);
});

test('the memory of a body is free when nobody reads it any more, although its response goes on', async () => {
  await start();
  const held = [send(2.5), send(2.5)];
  await untilOpen(2);
  open[0]?.call.releaseBody();
  expect(open[0]?.call.body_bytes).toHaveLength(0); // so that it is true
  const third = send(2.5);
  await untilOpen(3);
  for (const at of [0, 1, 2]) end(at);
  expect((await Promise.all([...held, third])).map(({ status }) => status)).toEqual([200, 200, 200]);
});

function sendChunked(body: string): Socket {
  const socket = connect(harness.port, '127.0.0.1').on('error', () => {});
  const head =
    'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\n' +
    'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
  socket.write(`${head}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
  return socket;
}

test('a body without a declared length counts its actual length', async () => {
  await start();
  const body = JSON.stringify({ text: 'x'.repeat(100_000) });
  const sockets: Socket[] = [];
  for (let count = 1; count <= 4; count++) {
    sockets.push(sendChunked(body));
    await untilOpen(count); // each had four of the five megabytes while it was read
  }
  expect(open.map(({ call }) => call.body_bytes.length)).toEqual([body.length, body.length, body.length, body.length]);
  for (const socket of sockets) socket.destroy();
});

test('a body without a length that is small waits for nothing, and a large one waits', async () => {
  await start();
  const held = [send(2.5), send(2.5)];
  await untilOpen(2);
  const small = sendChunked('{}');
  await untilOpen(3);
  const large = sendChunked(JSON.stringify({ text: 'x'.repeat(100_000) }));
  const [answer]: Buffer[] = await once(large, 'data');
  expect(answer?.toString()).toContain('HTTP/1.1 429');
  for (const at of [0, 1]) end(at);
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200]);
  for (const socket of [small, large]) socket.destroy();
});

test('memory stays reserved while the endpoint goes on, also without its caller', async () => {
  await start({ body_memory_ms: 60_000 });
  const leaving = new AbortController();
  const held = [1, 2].map(() =>
    fetch(`http://127.0.0.1:${harness.port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer key_1', 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'x'.repeat(2_400_000) }),
      signal: leaving.signal,
    }).catch(() => 'left'),
  );
  await untilOpen(2);
  leaving.abort();
  expect(await Promise.all(held)).toEqual(['left', 'left']);
  await vi.waitUntil(() => harness.log.filter(({ fields }) => fields['aborted'] === true).length === 2, {
    timeout: 120_000,
  });
  const next = send(2.5);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(open).toHaveLength(2);
  end(0);
  await untilOpen(3);
  end(2);
  expect((await next).status).toBe(200);
});

test.each([
  ['while it waits', 2],
  ['while it is sent', 0],
  ['while it is answered', 1],
])('a sender who disconnects %s leaves no memory reserved', async (_, before) => {
  await start({ body_memory_ms: 60_000 });
  const held = Array.from({ length: before }, () => send(2.5));
  await untilOpen(before);
  const socket = connect(harness.port, '127.0.0.1').on('error', () => {});
  const is_whole = before === 1;
  const body = Buffer.alloc(2_500_000, 0x20);
  body.write('{', 0);
  body.write('}', body.length - 1);
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
  );
  socket.write(is_whole ? body : body.subarray(0, 1_000));
  if (is_whole) await untilOpen(2);
  else await vi.waitUntil(() => harness.authenticated() === before + 1, { timeout: 120_000 });
  socket.destroy();
  await vi.waitUntil(() => harness.log.some(({ fields }) => fields['aborted'] === true), { timeout: 120_000 });
  const seen = open.length;
  for (let at = 0; at < seen; at += 1) end(at);
  await Promise.all(held);
  const again = [send(2.5), send(2.5)];
  await untilOpen(seen + 2);
  for (const at of [0, 1]) end(seen + at);
  expect((await Promise.all(again)).map(({ status }) => status)).toEqual([200, 200]);
});
