import pg from 'pg';
import type { Connection } from './servers.ts';

export type PoolOptions = {
  connection: Connection;
  connections_max: number;
  name: string;
  /** A statement without an answer after this long has failed, and its connection is destroyed. */
  limit_ms: number;
  /** A connection that cannot be made in this time leads nowhere: usually 5 s. */
  connect_limit_ms?: number;
  /** Statements that a new connection begins with. */
  settings?: string;
  /** Called with errors of idle connections; the pool replaces them by itself. */
  onError?: ((error: Error) => void) | undefined;
};

const usual_connect_limit_ms = 5_000;

const idle_max_ms = 60_000;

/** After this much silence the system asks the other end whether it is there. */
export const keepalive_ms = 10_000;

/** The same at the server's end: the locks of a node that is gone are free within half a minute. */
const keepalive_settings =
  'set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3';

/**
 * Opens a pool whose statements end in time, whatever becomes of the server or of the network before it. A connection
 * that was released without its answer is destroyed, and all that are idle with it.
 */
export function openPool(options: PoolOptions): pg.Pool {
  const { connect_limit_ms = usual_connect_limit_ms } = options;
  const pool = new pg.Pool({
    ...options.connection,
    max: options.connections_max,
    connectionTimeoutMillis: connect_limit_ms,
    idleTimeoutMillis: idle_max_ms,
    application_name: options.name,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepalive_ms,
    query_timeout: options.limit_ms,
    onConnect: (client) => prepare(client, options.settings ?? '', connect_limit_ms),
  });
  pool.on('error', (error) => {
    if (!pool.ending) options.onError?.(error); // a server that stops as we do is no news
  });
  pool.on('release', (error: unknown, client) => {
    if (!isAnswering(client) || isReadOnly(error)) void end(pool, client);
  });
  return pool;
}

/** A server that has gone mute since the connection was made has as long for it as for the connection. */
async function prepare(client: pg.ClientBase, settings: string, limit_ms: number): Promise<void> {
  // The pool listens to idle clients only. A server that dies says so perhaps in the same packet as its last answer, when
  // the next caller has the client and no statement is under way: an `error` that nobody hears would end the process.
  client.on('error', () => undefined);
  const config: pg.QueryConfig & { query_timeout: number } = {
    text: `${keepalive_settings}; ${settings}`,
    query_timeout: limit_ms,
  };
  await client.query(config);
}

/** Returns true if no answer came: what pg says of a `query_timeout`. */
export function isMute(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout';
}

/** PostgreSQL's code: read_only_sql_transaction. The server is no primary any more, and all connections lead to it. */
function isReadOnly(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006';
}

/** pg leaves a connection whose statement has had no answer as it is; the next statement would wait behind that one. */
function isAnswering(client: pg.PoolClient): boolean {
  return !('readyForQuery' in client) || client.readyForQuery === true;
}

/**
 * Ends a connection that leads nowhere, and all idle ones: its cause has made others so, and each of them would cost a
 * caller its limit of time, or its call. New connections take milliseconds.
 */
async function end(pool: pg.Pool, client: pg.PoolClient): Promise<void> {
  void client.end(); // at once, since an answer is under way; and the pool does not keep what ends
  if (pool.ending) return;
  // All at once, before whoever learns of this asks for a connection again.
  await Promise.all(Array.from({ length: pool.idleCount }, () => pool.connect().then(destroy, () => undefined)));
}

/** Without a farewell, which nobody would answer. */
function destroy(idle: pg.PoolClient): void {
  idle.connection.stream.destroy();
  idle.release(true);
}
