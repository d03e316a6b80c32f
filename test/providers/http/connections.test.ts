import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { readBytes } from '../../../src/lib/read-bytes.ts';
import { GuardError, openGuard, type Guard } from '../../../src/net/guard.ts';
import { ask } from '../../../src/providers/http/answer-body.ts';
import { openConnections } from '../../../src/providers/http/connections.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

/** A server that answers when it is told to, and connections to it. `refused`: those that cannot be made first. */
async function start({ refused = 0 } = {}) {
  const waiting: { answer: () => void }[] = [];
  const server = createServer((request, response: ServerResponse) => {
    const port = request.socket.remotePort ?? 0;
    waiting.push({ answer: () => response.end(String(port)) });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  stops.push(() => {
    server.closeAllConnections();
    return new Promise((closed) => server.close(closed));
  });
  const { port } = server.address() as AddressInfo;
  let left = refused;
  const guard: Guard = {
    ...openGuard(),
    connect: () =>
      new Promise((connected, failed) => {
        if (left-- > 0) return failed(new GuardError('connect', 'refused'));
        const socket = connect(port, '127.0.0.1', () => connected(socket));
      }),
  };
  const connections = openConnections(guard, { allow_private: true });
  stops.push(() => connections.close());
  const portOf = async (keep_alive: boolean) => {
    const pool = connections.to(`http://127.0.0.1:${port}`, { connect_timeout_ms: 60_000, keep_alive });
    const { body } = await ask(pool, { path: '/', method: 'GET' }, new AbortController().signal);
    return String(await readBytes(body, 100));
  };
  const answerNext = async () => {
    await expect.poll(() => waiting.length).toBeGreaterThan(0);
    waiting.shift()?.answer();
  };
  return { portOf, answerNext };
}

it('a request that may not be repeated has a connection to its upstream of its own', async () => {
  const { portOf, answerNext } = await start();
  const ports = [];
  for (let count = 0; count < 3; count++) {
    const port = portOf(false);
    await answerNext();
    ports.push(await port);
  }
  expect(new Set(ports).size).toBe(3);
});

it('a request to an upstream that cannot be connected to fails and is not repeated; the next one has a connection', async () => {
  const { portOf, answerNext } = await start({ refused: 2 });
  const failed = await Promise.allSettled([portOf(true), portOf(true)]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const port = portOf(true);
  await answerNext();
  expect(await port).toMatch(/^\d+$/);
});
