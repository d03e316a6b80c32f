import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool, type Dispatcher } from 'undici';
import { afterEach, expect, it } from 'vitest';
import { ask } from '../../../src/providers/http/answer-body.ts';
import { readBytes } from '../../../src/lib/read-bytes.ts';
import { untilStill } from '../../helpers/still.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

async function upstream(answer: (response: ServerResponse) => void, connections = 4): Promise<Pool> {
  const server: Server = createServer((request, response) => {
    request.resume().on('end', () => answer(response));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  stops.push(() => {
    server.closeAllConnections();
    return new Promise((closed) => server.close(closed));
  });
  const pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { connections });
  stops.push(() => pool.destroy());
  return pool;
}

const get = { path: '/', method: 'GET' } as const;
const never = () => new AbortController().signal;

it('a response body yields its head, and its bytes in their order', async () => {
  const pool = await upstream((response) => {
    response.writeHead(201, { 'retry-after': '3' });
    response.write('one ');
    setImmediate(() => response.end('two'));
  });
  const { status, headers, body } = await ask(pool, get, never());
  expect([status, headers['retry-after'], String(await readBytes(body, 100))]).toEqual([201, '3', 'one two']);
  expect(await body.next(), 'the end stays the end').toEqual({ value: undefined, done: true });
});

it('a response body is read whole, up to the largest size', async () => {
  const pool = await upstream((response) => response.end('all of it'));
  const first = await ask(pool, get, never());
  expect(String(await readBytes(first.body, 9))).toBe('all of it');
  expect(await first.body.next(), 'the end stays the end').toEqual({ value: undefined, done: true });
  const second = await ask(pool, get, never());
  await expect(readBytes(second.body, 8)).rejects.toThrow('larger than 8 bytes');
});

it('a response body that ends with an error is not taken as whole', async () => {
  const sent = Promise.withResolvers<void>();
  const pool = await upstream((response) => {
    response.writeHead(200, { 'content-length': '9' });
    response.write('half');
    void sent.promise.then(() => response.destroy());
  });
  const { body } = await ask(pool, get, never());
  sent.resolve();
  await expect(readBytes(body, 100)).rejects.toThrow(/closed|terminated|aborted/);
});

it('a response body after an interim response is waited for', async () => {
  const pool = await upstream((response) => {
    response.writeProcessing();
    response.end('here');
  });
  const { status, body } = await ask(pool, get, never());
  expect([status, String(await readBytes(body, 100))]).toEqual([200, 'here']);
});

it('a response body yields all bytes since the last piece at once, and reports a cut only after them', async () => {
  const sent = Promise.withResolvers<void>();
  const pool = await upstream((response) => {
    response.write('a');
    setTimeout(() => response.write('b'), 5);
    setTimeout(() => response.destroy(), 20);
    response.once('close', () => setTimeout(() => sent.resolve(), 20));
  });
  const { body } = await ask(pool, get, never());
  await sent.promise;
  expect(String((await body.next()).value)).toBe('ab');
  await expect(body.next()).rejects.toThrow('other side closed');
  await expect(body.next()).rejects.toThrow('other side closed');
});

it('a response body buffers little while nobody reads, and is complete in the end', async () => {
  const [pieces, size] = [40, 40_000_000];
  let sent = 0;
  const pool = await upstream((response) => {
    for (let n = 1; n <= pieces; n++) response.write(Buffer.alloc(size / pieces, 7), () => (sent += 1));
    response.end();
  });
  const { body } = await ask(pool, get, never());
  expect(await untilStill(() => sent), 'the upstream has to wait').toBeLessThan(pieces);
  const bytes = await readBytes(body, size);
  expect([bytes.length, bytes.every((byte) => byte === 7)]).toEqual([size, true]);
});

it('a reader that stops early closes the connection of its response body', async () => {
  const closed = Promise.withResolvers<void>();
  const pool = await upstream((response) => {
    response.once('close', () => closed.resolve());
    response.write('first');
  });
  const { body } = await ask(pool, get, never());
  for await (const piece of body) {
    expect(String(piece)).toBe('first');
    break;
  }
  await closed.promise;
});

it('a response body ends at once when its signal fires: before the call, during the wait for a connection, and in the middle', async () => {
  const closed = Promise.withResolvers<void>();
  const pool = await upstream((response) => {
    response.once('close', () => closed.resolve());
    response.write('first');
  }, 1);
  const gone = new Error('gone');
  await expect(ask(pool, get, AbortSignal.abort(gone))).rejects.toBe(gone);
  const first = new AbortController();
  const { body } = await ask(pool, get, first.signal);
  expect(String((await body.next()).value)).toBe('first');
  const second = new AbortController();
  const waiting = ask(pool, get, second.signal);
  second.abort(gone);
  await expect(waiting).rejects.toBe(gone);
  const next = body.next();
  first.abort(gone);
  await expect(next).rejects.toBe(gone);
  await closed.promise;
});

it('a failed request is reported with its reason', async () => {
  const pool = new Pool('http://127.0.0.1:1');
  stops.push(() => pool.destroy());
  await expect(ask(pool, get, never())).rejects.toThrow('ECONNREFUSED');
});

it('a request that is cancelled while it waits for a connection releases its body, and those after it are answered', async () => {
  const answers: ServerResponse[] = [];
  const pool = await upstream((response) => void answers.push(response), 1);
  const first = ask(pool, get, never());
  await expect.poll(() => answers.length).toBe(1);
  const waiting: Dispatcher.DispatchOptions = {
    path: '/',
    method: 'POST',
    headers: { 'content-length': '3' },
    body: Buffer.from('abc'),
  };
  const stop = new AbortController();
  const given_up = ask(pool, waiting, stop.signal);
  const behind = ask(pool, get, never());
  stop.abort(new Error('the caller is gone'));
  await expect(given_up).rejects.toThrow('the caller is gone');
  expect(waiting.body).toBeNull();
  answers[0]?.end('first');
  expect(String(await readBytes((await first).body, 10))).toBe('first');
  await expect.poll(() => answers.length).toBe(2);
  answers[1]?.end('behind');
  expect(String(await readBytes((await behind).body, 10))).toBe('behind');
});
