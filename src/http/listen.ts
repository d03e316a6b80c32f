import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { createServer, type AddressInfo, type ListenOptions, type Server } from 'node:net';
import { assert } from '../lib/assert.ts';

/**
 * Node takes one waiting connection of a socket in each turn of its event loop (libuv 1.52), and a turn of a busy
 * process lasts 50 ms and more: of 512 who came within a second, the last waited for 9 s before anybody read
 * what they asked. Several sockets on one port take one each.
 */
const sockets_count = 8;

/** Elsewhere a port is not shared evenly between sockets, and Node refuses to try. */
const can_share = process.platform === 'linux';

export type ListeningServer = {
  address: AddressInfo;
  /** Takes no more connections. Resolves when those that were taken have ended. */
  close(): Promise<void>;
};

/** `is_shared`: another process of this service listens there already. */
export type ListenAddress = { host: string; port: number; is_shared?: boolean };

/** Listens on a port, with several sockets where the system can. Rejects with EADDRINUSE and the like. */
export async function listen(
  server: HttpServer,
  { is_shared = false, ...address }: ListenAddress,
): Promise<ListeningServer> {
  // A port that the system chooses is nobody else's; one that was named may be that of another service of ours,
  // which would share it unasked.
  if (can_share && address.port !== 0 && !is_shared) await tryAlone(address);
  await listening(server, { ...address, reusePort: can_share });
  const bound = server.address();
  assert(bound !== null && typeof bound === 'object', 'a server that listens on TCP has an address');
  const others: Server[] = [];
  const listenToo = async (options: ListenOptions) => {
    const other = createServer({ allowHalfOpen: true, noDelay: true }); // as Node's HTTP server makes its own
    other.on('connection', (socket) => server.emit('connection', socket)); // as Node's documentation has it
    await listening(other, options);
    others.push(other);
  };
  for (let count = 1; can_share && count < sockets_count; count++)
    await listenToo({ host: bound.address, port: bound.port, reusePort: true });
  for (const host of await otherAddresses(address.host, bound)) {
    await listenToo({ host, port: bound.port, reusePort: can_share }).catch(() => undefined); // one of both will do
  }
  return {
    address: bound,
    close: async () => {
      await Promise.all([server, ...others].map(closed));
    },
  };
}

/** `localhost` is two addresses where there is IPv6, and nobody knows which one a client takes. */
async function otherAddresses(host: string, bound: AddressInfo): Promise<string[]> {
  if (host !== 'localhost') return [];
  const all = await lookup(host, { all: true }).catch(() => []);
  return all.map(({ address }) => address).filter((address) => address !== bound.address);
}

async function listening(server: Server, options: ListenOptions): Promise<void> {
  server.listen(options);
  await once(server, 'listening');
}

/** `exclusive`: in a process of its own, not in the one that started it, which lets go of the port when it comes to that. */
async function tryAlone(address: { host: string; port: number }): Promise<void> {
  const server = createServer();
  await listening(server, { ...address, exclusive: true });
  await closed(server);
}

async function closed(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}
