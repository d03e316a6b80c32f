import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import pg from 'pg';

/** A TCP proxy before a PostgreSQL. A mute connection neither closes nor answers: as a frozen host or a lossy firewall. */
export type MuteProxy = {
  /** The address of the database through this proxy. */
  url: string;
  /** Makes connections mute, first those that wait for an answer, then the busiest; answers how many. New ones speak. */
  mute(share: 'one' | 'half' | 'all'): number;
  /** Ends those that have been mute for so long, at both ends: as a network that has forgotten them. */
  endMute(for_ms: number): void;
  /** Connections that wait for an answer. */
  asking(): number;
  /** Ends all connections and refuses new ones, or accepts them again. */
  refuse(is_refusing: boolean): void;
  /** Leads new connections to the server of this address, which has the same database. */
  leadTo(url: string): void;
  /** Connections that are open at the client's end. */
  open(): number;
  stop(): Promise<void>;
};

type Pair = {
  client: Socket;
  server: Socket;
  is_mute: boolean;
  mute_since_ms: number;
  is_asking: boolean;
  uses: number;
};

/** Starts a proxy before the database of `url`. */
export async function startMuteProxy(url: string): Promise<MuteProxy> {
  let target = new pg.Client({ connectionString: url });
  const pairs = new Set<Pair>();
  /** The server's ends of mute connections whose clients have left. */
  const silent = new Set<Pair>();
  let is_refusing = false;
  const accept = (client: Socket) => {
    if (is_refusing) return void client.destroy();
    const server = target.host.startsWith('/')
      ? connect(`${target.host}/.s.PGSQL.${target.port}`)
      : connect(target.port, target.host);
    const pair: Pair = { client, server, is_mute: false, mute_since_ms: 0, is_asking: false, uses: 0 };
    pairs.add(pair);
    const relay = (from: Socket, to: Socket) => {
      from.on('data', (bytes) => {
        if (pair.is_mute) return;
        pair.is_asking = from === client;
        pair.uses += 1;
        to.write(bytes);
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        if (from === client) pairs.delete(pair);
        if (!pair.is_mute) to.destroy();
        else if (from === client && !server.destroyed) silent.add(pair); // who would tell the server?
      });
    };
    relay(client, server);
    relay(server, client);
  };
  const proxy = createServer(accept);
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as AddressInfo;
  const { user = '', password, database = '' } = target;
  const [name, secret] = [user, String(password ?? '')].map(encodeURIComponent);
  return {
    url: `postgres://${name}:${secret}@127.0.0.1:${port}/${database}`,
    mute: (share) => {
      const speaking = [...pairs].filter((pair) => !pair.is_mute);
      const count = { one: 1, half: Math.ceil(speaking.length / 2), all: speaking.length }[share];
      const weightOf = (pair: Pair) => (pair.is_asking ? 1e9 : 0) + pair.uses;
      const chosen = speaking.toSorted((a, b) => weightOf(b) - weightOf(a)).slice(0, count);
      for (const pair of chosen) Object.assign(pair, { is_mute: true, mute_since_ms: performance.now() });
      return chosen.length;
    },
    endMute: (for_ms) => {
      for (const pair of [...pairs, ...silent]) {
        if (!pair.is_mute || performance.now() - pair.mute_since_ms < for_ms) continue;
        for (const socket of [pair.client, pair.server]) socket.destroy();
        silent.delete(pair);
      }
    },
    asking: () => [...pairs].filter((pair) => pair.is_asking).length,
    refuse: (refusing) => {
      is_refusing = refusing;
      if (refusing) for (const { client, server } of pairs) for (const socket of [client, server]) socket.destroy();
    },
    leadTo: (to) => {
      target = new pg.Client({ connectionString: to });
    },
    open: () => pairs.size,
    stop: async () => {
      for (const { client, server } of pairs) for (const socket of [client, server]) socket.destroy();
      for (const { server } of silent) server.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
