import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { assert } from '../lib/assert.ts';

/**
 * Node takes one waiting connection of a socket in each turn of its event loop (libuv 1.52), and a turn of a busy
 * process lasts 50 ms and more: of 512 who came within a second, the last waited for 9 s before anybody read
 * what they asked. Several sockets on one port take one each.
 */
const sockets_count = 8;

/** Elsewhere a port is not shared evenly between sockets, and Node refuses to try. */
const can_share = process.platform === 'linux';

export type Listening = {
  address: AddressInfo;
  /** Takes no more connections. Resolves when those that were taken have ended. */
  close(): Promise<void>;
};

/** Listens on a port, with several sockets where the system can. Rejects with EADDRINUSE and the like. */
export async function listen(server: FastifyInstance, address: { host: string; port: number }): Promise<Listening> {
  // A port that the system chooses is nobody else's; one that was named may be that of another service of ours,
  // which would share it unasked.
  if (can_share && address.port !== 0) await tryAlone(address);
  await server.listen({ ...address, ...(can_share && { reusePort: true }) });
  const bound = server.server.address();
  assert(bound !== null && typeof bound === 'object', 'a server that listens on TCP has an address');
  const others: Server[] = [];
  for (let count = 1; can_share && count < sockets_count; count++) {
    const other = createServer({ allowHalfOpen: true, noDelay: true }); // as Node's HTTP server makes its own
    other.on('connection', (socket) => server.server.emit('connection', socket));
    other.listen({ host: address.host, port: bound.port, reusePort: true });
    await once(other, 'listening');
    others.push(other);
  }
  return {
    address: bound,
    close: async () => {
      await Promise.all([server.close(), ...others.map(closed)]);
    },
  };
}

async function tryAlone(address: { host: string; port: number }): Promise<void> {
  const server = createServer();
  server.listen(address);
  await once(server, 'listening');
  await closed(server);
}

async function closed(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}
