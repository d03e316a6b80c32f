import { spawn } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { startHarness, type TestApp } from '../api/harness.ts';
import { freePort } from '../helpers/free-port.ts';

const open: Endpoint<TestApp> = {
  method: 'GET',
  path: '/open',
  public: true,
  docs: { tag: 'Test', summary: 'Open', responses: {} },
  handle: () => ({ status: 200, body: { ok: true } }),
};

/** One socket that other sockets share the port of: Linux only. */
const turns_max = process.platform === 'linux' ? 45 : 200;

test('several waiting connections are accepted in each turn of a busy process', async () => {
  const harness = await startHarness([open]);
  const sockets = connections(harness.port, 90);
  let answered = 0;
  for (const socket of sockets) {
    socket.write('GET /open HTTP/1.1\r\nhost: a\r\n\r\n');
    socket.once('data', () => (answered += 1));
  }
  for (let turns = 0; turns < turns_max; turns++) {
    const until_ms = performance.now() + 5;
    while (performance.now() < until_ms); // busy with something else
    await nextTurn();
  }
  expect(answered).toBe(90);
  for (const socket of sockets) socket.destroy();
  await harness.close();
});

test('an API process listens on a named port however busy the process is that started it', async () => {
  const program = join(import.meta.dirname, 'listen-child.ts');
  const child = spawn(process.execPath, [program, String(await freePort())], { stdio: ['ignore', 'inherit', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const [code] = await once(child, 'close');
  expect(code, errors).toBe(0);
});

test('a port that is in use is refused, also when a service like this one uses it', async () => {
  const harness = await startHarness([open]);
  const second = await startHarness([open]);
  const address = { host: '127.0.0.1', port: harness.port };
  await second.close();
  await expect(second.pipeline.listen(address)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  expect((await harness.send('GET', '/open', { key: null })).status).toBe(200);
  await harness.close();
});

test('a service whose host is localhost is reached at each address of that name', async () => {
  const { pipeline, close } = await startHarness([open]);
  await close();
  const { port } = await pipeline.listen({ host: 'localhost', port: 0 });
  for (const { address } of await lookup('localhost', { all: true })) {
    const socket = connect(port, address);
    socket.write('GET /open HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 200 /);
    socket.destroy();
  }
  await close();
});

test('a port is free again once all connections to it have ended', async () => {
  const harness = await startHarness([open]);
  const sockets = connections(harness.port, 40);
  const ended = sockets.map(async (socket) => {
    socket.write('GET /open HTTP/1.1\r\nhost: a\r\n\r\n');
    await once(socket, 'data');
    socket.resume();
    return once(socket, 'close');
  });
  await Promise.all(sockets.map((socket) => once(socket, 'data')));
  await harness.pipeline.close({ announce_ms: 0, grace_ms: 5_000 });
  await Promise.all(ended);
  await expect(harness.send('GET', '/open', { key: null })).rejects.toThrow(/ECONNREFUSED|closed/);
});

function connections(port: number, count: number): Socket[] {
  return Array.from({ length: count }, () => connect(port, '127.0.0.1').on('error', () => undefined));
}
