import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { readBytes } from '../../../src/lib/read-bytes.ts';
import { ask } from '../../../src/providers/http/answer-body.ts';
import { Pool } from '../../../src/providers/http/undici-pool.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

type Waiting = { port: number; answer: () => void };

/** A server that answers when it is told to, and a pool to it. `refused`: connections that cannot be made first. */
async function start({ connections = 64, refused = 0 } = {}) {
  const waiting: Waiting[] = [];
  const server = createServer((request, response: ServerResponse) => {
    const port = request.socket.remotePort ?? 0;
    waiting.push({ port, answer: () => response.end(String(port)) });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  stops.push(() => {
    server.closeAllConnections();
    return new Promise((closed) => server.close(closed));
  });
  const { port } = server.address() as AddressInfo;
  let left = refused;
  const pool = new Pool(`http://127.0.0.1:${port}`, {
    connections,
    connect: (_, callback) => {
      if (left-- > 0) return callback(new Error('refused'), null);
      const socket = connect(port, '127.0.0.1', () => callback(null, socket));
    },
  });
  stops.push(() => pool.destroy());
  return { pool, waiting };
}

async function portOf(pool: Pool): Promise<number> {
  const { body } = await ask(pool, { path: '/', method: 'GET' }, new AbortController().signal);
  return Number(String(await readBytes(body, 100)));
}

/** Asks so often at once; answered in the order of `order`, one after the other. */
async function burst({ pool, waiting }: Awaited<ReturnType<typeof start>>, count: number, order: readonly number[]) {
  const answers = Array.from({ length: count }, () => portOf(pool));
  await expect.poll(() => waiting.length).toBe(count);
  const asked = waiting.splice(0);
  for (const index of order) {
    asked[index]?.answer();
    await answers[index];
    await setImmediate();
  }
  const ports = await Promise.all(answers);
  await setImmediate(); // undici looks at a connection once more before it is free
  return ports;
}

it('the connection pool uses the connection that was last free', async () => {
  const place = await start();
  const [, second, third] = await burst(place, 3, [2, 0, 1]);
  expect(await burst(place, 1, [0])).toEqual([second]);
  expect(await burst(place, 1, [0])).toEqual([second]);
  const ports = await burst(place, 3, [0, 1, 2]);
  expect(new Set(ports).size).toBe(3);
  expect(ports[0]).toBe(second);
  expect(ports[2]).toBe(third);
});

it('the connection pool opens only the permitted connections and answers every request that waits', async () => {
  const { pool, waiting } = await start({ connections: 2 });
  const answers = Array.from({ length: 20 }, () => portOf(pool));
  for (let answered = 0; answered < 20; answered++) {
    await expect.poll(() => waiting.length).toBeGreaterThan(0);
    expect(waiting.length).toBeLessThanOrEqual(2);
    waiting.shift()?.answer();
  }
  expect(new Set(await Promise.all(answers)).size).toBe(2);
});

it('the connection pool does not repeat a request that could not connect', async () => {
  const place = await start({ refused: 2 });
  const failed = await Promise.allSettled([portOf(place.pool), portOf(place.pool)]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const [port] = await burst(place, 1, [0]);
  expect(await burst(place, 1, [0])).toEqual([port]);
});
