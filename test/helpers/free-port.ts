import { createServer } from 'node:net';
import { once } from 'node:events';

/**
 * Returns a port of loopback on which nobody listens now. It is none that the system gives to clients: one of those was
 * taken by another test before a service that starts slowly came to listen there.
 */
export function freePort(): Promise<number> {
  return freePortsInARow(1);
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
