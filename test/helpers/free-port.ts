import { createServer } from 'node:net';
import { once } from 'node:events';

/** A port of loopback on which nobody listens now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (typeof address !== 'object' || !address) throw new Error('there is no port');
  return address.port;
}

/** Returns the first of so many free ports in a row: below those that the system gives to clients. */
export async function freePortsInARow(count: number): Promise<number> {
  for (;;) {
    const first = 20_000 + Math.floor(Math.random() * 10_000);
    const ports = Array.from({ length: count }, (_, index) => first + index);
    if ((await Promise.all(ports.map(isFree))).every(Boolean)) return first;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  const is_free = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  server.close();
  return is_free;
}
