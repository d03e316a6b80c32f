import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import pg from 'pg';

const terminate = Buffer.from([0x58, 0, 0, 0, 4]);

/** Message of a stopping server to each of its clients. */
const shutting_down = errorResponse({
  S: 'FATAL',
  V: 'FATAL',
  C: '57P01',
  M: 'terminating connection due to administrator command',
});

function errorResponse(fields: Record<string, string>): Buffer {
  const text = Object.entries(fields).map(([field, value]) => `${field}${value}\0`);
  const body = Buffer.from(`${text.join('')}\0`);
  const head = Buffer.from([0x45, 0, 0, 0, 0]);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

/**
 * The database behind a door that answers each good-bye as a server does that is being stopped at the
 * same moment, so that a close always meets what it otherwise meets one time in seven. Its own close
 * waits until all its clients are gone.
 */
export async function stoppingServer(
  url: string,
): Promise<{ connection: pg.ClientConfig; farewells(): number; close(): Promise<void> }> {
  const { host, port, user, password, database } = new pg.Client({ connectionString: url });
  let farewells = 0;
  const door = createServer((client) => {
    const server = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    for (const socket of [client, server]) socket.on('error', () => undefined);
    server.pipe(client);
    client.on('data', (bytes: Buffer) => {
      if (!bytes.subarray(-terminate.length).equals(terminate)) return server.write(bytes);
      farewells += 1;
      server.unpipe(client);
      server.end(bytes);
      return client.end(shutting_down);
    });
    client.on('close', () => server.destroy());
  });
  door.listen(0, '127.0.0.1');
  await once(door, 'listening');
  const address = door.address() as AddressInfo;
  const connection = {
    host: address.address,
    port: address.port,
    user,
    password: password ?? '',
    database: database ?? '',
  };
  return { connection, farewells: () => farewells, close: () => new Promise((resolve) => door.close(() => resolve())) };
}
