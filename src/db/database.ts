import pg from 'pg';
import { keepalive_ms, openPool } from './pool.ts';
import type { Connection } from './servers.ts';

/**
 * Time limit of a statement, and its connections. `brief`: waits for locks 250 ms at most, for callers who share it
 * with others. `usual`: somebody waits for it. `report`: lists and reports, by `reading` in reads.ts. `long`: upkeep
 * that nobody waits for.
 */
export type Patience = 'brief' | 'usual' | 'report' | 'long';

/** Something SQL can be sent to: the pool, or one transaction. */
export type Queryable = {
  /**
   * Sends one statement and returns its rows. `bigint` columns arrive as bigint, `timestamptz` as
   * Date, `numeric` as string. Throws pg.DatabaseError; and a server that does not answer in time is unavailable
   * (isUnavailable), its connection is destroyed. In a transaction the patience is that of the transaction.
   */
  query<T = Record<string, unknown>>(text: string, values?: readonly unknown[], patience?: Patience): Promise<T[]>;
};

/** A transaction that is open on one connection. Only `Db.tx` makes one. */
export type Tx = Queryable & { readonly transaction: true };

export type Db = Queryable & {
  /**
   * Runs `work` in a transaction: commit when it returns, rollback when it throws. A deadlock or a
   * serialization failure rolls everything back for certain, so `work` runs again (at most
   * `tries_max` times in all): it must not have effects outside the database.
   */
  tx<T>(work: (tx: Tx) => Promise<T>, patience?: Patience): Promise<T>;
  /** The connection settings, for parts that need a connection of their own (LISTEN, advisory locks). */
  readonly connection: Connection;
  readonly pool: pg.Pool;
  /** Connections of each patience, and statements that wait for one. */
  connections(): Record<Patience, Connections>;
  close(): Promise<void>;
};

export type Connections = { open: number; idle: number; waiting: number };

export type DatabaseOptions = {
  connection: Connection;
  connections_max?: number;
  /** Called with errors of idle connections; the pool replaces them by itself. */
  onError?: (error: Error) => void;
  /**
   * Nobody else waits for its statements, as in an operator's command: each may take an hour (a `brief` one waits a minute
   * for a lock), and a connection three times as long as usual. A restore on a busy machine failed by the usual time.
   */
  is_patient?: boolean;
};

/**
 * The server ends a statement before the client gives up on it, so that no lock outlives the caller's patience; the
 * client's limit is for a server, or a network, that says nothing.
 */
type Limits = { client_ms: number; statement_ms: number; lock_ms: number; connections_max: number };

/** However many lists and reports are asked for at once, the others have the rest of what the server can do. */
export const report_connections = 4;

const limits: { readonly [patience in Patience]: Limits } = {
  brief: { client_ms: 4_000, statement_ms: 3_500, lock_ms: 250, connections_max: 14 },
  usual: { client_ms: 6_000, statement_ms: 5_500, lock_ms: 4_000, connections_max: 14 },
  report: { client_ms: 11_000, statement_ms: 10_000, lock_ms: 4_000, connections_max: report_connections },
  long: { client_ms: 35_000, statement_ms: 30_000, lock_ms: 10_000, connections_max: 3 },
};

const hour_ms = 3_600_000;
const unhurried = { client_ms: hour_ms, statement_ms: hour_ms, lock_ms: hour_ms };
const unhurried_brief = { ...unhurried, lock_ms: 60_000 };
/** A node that freezes within a transaction holds its locks no longer than this. */
const idle_in_transaction_ms = 30_000;

const tries_max = 5;
const int8 = 20;

/** Column parsers of this service: `bigint` columns are bigint, everything else as pg has it. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === int8 && format !== 'binary'
      ? (value: string) => BigInt(value)
      : pg.types.getTypeParser(oid, format ?? 'text')) as typeof pg.types.getTypeParser,
};

/** Opens the pools. Connections are made when first needed, so a wrong address shows at the first query. */
export function openDatabase(options: DatabaseOptions): Db {
  const pools = {
    brief: openPoolOf('brief', options),
    usual: openPoolOf('usual', options),
    report: openPoolOf('report', options),
    long: openPoolOf('long', options),
  };
  return {
    pool: pools.usual,
    connection: options.connection,
    query: async <T>(text: string, values: readonly unknown[] = [], patience: Patience = 'usual') =>
      rowsOf<T>(await pools[patience].query(prepared(text, values))),
    tx: (work, patience = 'usual') => runTransaction(pools[patience], work),
    connections: () => ({
      brief: connectionsOf(pools.brief),
      usual: connectionsOf(pools.usual),
      report: connectionsOf(pools.report),
      long: connectionsOf(pools.long),
    }),
    close: async () => void (await Promise.all(Object.values(pools).map((pool) => pool.end()))),
  };
}

function connectionsOf({ totalCount, idleCount, waitingCount }: pg.Pool): Connections {
  return { open: totalCount, idle: idleCount, waiting: waitingCount };
}

function openPoolOf(
  patience: Patience,
  { connection, connections_max, onError, is_patient }: DatabaseOptions,
): pg.Pool {
  const own = limits[patience];
  const patient_limits = patience === 'brief' ? unhurried_brief : unhurried;
  const { client_ms, statement_ms, lock_ms } = is_patient ? patient_limits : own;
  const settings = `set statement_timeout = ${statement_ms}; set lock_timeout = ${lock_ms};
    set idle_in_transaction_session_timeout = ${idle_in_transaction_ms}`;
  return openPool({
    connection: { ...connection, types },
    connections_max: Math.min(connections_max ?? own.connections_max, own.connections_max),
    name: 'medley',
    limit_ms: client_ms,
    ...(is_patient && { connect_limit_ms: 15_000 }),
    settings,
    onError,
  });
}

/** The same for all statements of whoever takes a database and sends long ones: sums, reconciliation, removals. */
export function patient(db: Db): Db {
  return {
    ...db,
    query: (text, values, patience = 'long') => db.query(text, values, patience),
    tx: (work, patience = 'long') => db.tx(work, patience),
  };
}

/**
 * Statements with values are prepared once per connection under a name made from their text: for
 * the one-call money functions that saves parsing and planning (see bench/results).
 */
function prepared(text: string, values: readonly unknown[]): pg.QueryConfig {
  if (values.length === 0) return { text };
  return { text, values: [...values], name: nameOf(text) };
}

const names = new Map<string, string>();

function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `s${names.size}`;
    names.set(text, name);
  }
  return name;
}

function rowsOf<T>(result: pg.QueryResult): T[] {
  return result.rows as T[];
}

async function runTransaction<T>(pool: pg.Pool, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryTransaction(pool, work);
    } catch (error) {
      if (attempt >= tries_max || !rolledBackForCertain(error)) throw error;
    }
  }
}

async function tryTransaction<T>(pool: pg.Pool, work: (tx: Tx) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('begin');
    const tx: Tx = {
      transaction: true,
      query: async <R>(text: string, values: readonly unknown[] = []) =>
        rowsOf<R>(await client.query(prepared(text, values))),
    };
    const result = await work(tx);
    await client.query('commit');
    return result;
  } catch (error) {
    // Another connection may lead to another server; and a mute one would not answer the rollback either.
    broken = isUnavailable(error) ? error : await rollBack(client);
    throw error;
  } finally {
    client.release(broken);
  }
}

function rollBack(client: pg.PoolClient): Promise<Error | undefined> {
  return client.query('rollback').then(
    () => undefined,
    (reason: Error) => reason,
  );
}

/**
 * Runs `work` on a connection of its own, for advisory locks that last longer than a transaction. A
 * server that goes away between two statements is noticed by the next one.
 */
export async function withConnection<T>(db: Db, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await openConnection(db, 'medley', { limit_ms: hour_ms });
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * A connection outside the pool, for whoever keeps it: errors between two statements are for its own listeners. A
 * statement without an answer after `limit_ms` is unavailable; whoever keeps the connection ends it then. Without a
 * limit only the system notices a server that is gone: for what copies as much as there is.
 */
export async function openConnection(
  db: Pick<Db, 'connection'>,
  application_name: string,
  { limit_ms }: { limit_ms?: number } = {},
): Promise<pg.Client> {
  const { Client = pg.Client, ...connection } = db.connection;
  const client = new Client({
    ...connection,
    application_name,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepalive_ms,
    connectionTimeoutMillis: 5_000,
    ...(limit_ms !== undefined && { query_timeout: limit_ms }),
  });
  client.on('error', () => undefined); // one without a listener would end the process
  await client.connect();
  return client;
}

/** PostgreSQL's codes: 40P01 deadlock_detected, 40001 serialization_failure. */
function rolledBackForCertain(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '40P01' || error.code === '40001');
}

/**
 * PostgreSQL going down, coming up, full or broken: 57P0x, 53xxx, 58xxx; one that only reads, as a standby does: 25006;
 * connections lost or never made: 08xxx; a statement that took too long: 57014, one that waited for a lock: 55P03, a
 * transaction whose next statement came too late: 25P03.
 */
const unavailable_states = /^(57P0[1-5]|57014|55P03|53...|58...|25006|25P03|08...)$/;

/** The same by the system's codes: of sockets, of names (a container that restarts has none meanwhile), of limits. */
const unavailable_codes =
  /^(ECONN(REFUSED|RESET|ABORTED)|ENOENT|EPIPE|ETIMEDOUT|E(HOST|NET)(UNREACH|DOWN)|EADDRNOTAVAIL|E[MN]FILE|ENOTFOUND|EAI_[A-Z]+)$/;

/** Messages of pg errors without a code: a connection ends under a statement, none can be had, or no response comes. */
const unavailable_messages =
  /Connection terminated|connection timeout|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error/i;

/** Returns true if PostgreSQL ended a statement that took too long. */
export function isStopped(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '57014';
}

/** Returns true if a statement waited too long for what another transaction has locked. */
export function isLocked(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '55P03';
}

/** Returns true if a row of a table has the same unique name already. */
export function isDuplicate(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23505';
}

/** Is it a text that PostgreSQL has no place for: one with NUL? */
export function isUnstorable(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '22021';
}

/** Returns true if PostgreSQL does not take the values of a statement, nor will it later: 22xxx, 23xxx, 54xxx. */
export function isUnacceptable(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(22|23|54)/.test(error.code ?? '');
}

/** Returns true if the database could not be reached or went away: the same call may well work in a moment. */
export function isUnavailable(error: unknown): error is Error {
  if (!(error instanceof Error) || 'path' in error) return false; // a file's or a program's: sockets have addresses
  const code = 'code' in error ? String(error.code) : '';
  if (unavailable_states.test(code) || unavailable_codes.test(code)) return true;
  return unavailable_messages.test(error.message);
}
