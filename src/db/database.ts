import pg from 'pg';

/** Something SQL can be sent to: the pool, or one transaction. */
export type Queryable = {
  /**
   * Sends one statement and returns its rows. `bigint` columns arrive as bigint, `timestamptz` as
   * Date, `numeric` as string. Throws pg.DatabaseError.
   */
  query<T = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<T[]>;
};

/** A transaction that is open on one connection. Only `Db.tx` makes one. */
export type Tx = Queryable & { readonly transaction: true };

export type Db = Queryable & {
  /**
   * Runs `work` in a transaction: commit when it returns, rollback when it throws. A deadlock or a
   * serialization failure rolls everything back for certain, so `work` runs again (at most
   * `tries_max` times in all): it must not have effects outside the database.
   */
  tx<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** For parts that need a connection of their own (LISTEN, advisory locks). */
  readonly connection: pg.ClientConfig;
  readonly pool: pg.Pool;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  connection: pg.ClientConfig;
  connections_max?: number;
  /** Told about errors of idle connections; the pool replaces them by itself. */
  onError?: (error: Error) => void;
};

const tries_max = 5;
const int8 = 20;

/** Column parsers of this service: `bigint` columns are bigint, everything else as pg has it. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === int8 && format !== 'binary'
      ? (value: string) => BigInt(value)
      : pg.types.getTypeParser(oid, format ?? 'text')) as typeof pg.types.getTypeParser,
};

/** Opens a pool. Connections are made when first needed, so a wrong address shows at the first query. */
export function openDatabase(options: DatabaseOptions): Db {
  const pool = new pg.Pool({
    ...options.connection,
    max: options.connections_max ?? 20,
    types,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 60_000,
    application_name: 'medley',
  });
  pool.on('error', (error) => {
    if (!pool.ending) options.onError?.(error); // a server that stops as we do is no news
  });
  return {
    pool,
    connection: options.connection,
    query: async <T>(text: string, values: readonly unknown[] = []) =>
      rowsOf<T>(await pool.query(prepared(text, values))),
    tx: (work) => runTransaction(pool, work),
    close: () => pool.end(),
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
  // The pool listens to idle clients only: a server that dies between two statements of ours would
  // end the process by an `error` nobody hears. The next statement tells us anyway.
  const onError = () => undefined;
  client.on('error', onError);
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
    broken = await client.query('rollback').then(
      () => undefined,
      (reason: Error) => reason,
    );
    if (isUnavailable(error)) broken ??= error; // another connection may lead to another server
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

/**
 * Runs `work` on a connection of its own, for advisory locks that last longer than a transaction. A
 * server that goes away between two statements is told by the next one.
 */
export async function withConnection<T>(db: Db, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await openConnection(db, 'medley');
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** A connection beside the pool, for whoever keeps it: errors between two statements are for its own listeners. */
export async function openConnection(db: Pick<Db, 'connection'>, application_name: string): Promise<pg.Client> {
  const client = new pg.Client({
    ...db.connection,
    application_name,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
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
 * connections lost or never made: 08xxx.
 */
const unavailable_states = /^(57P0[1-4]|53...|58...|25006|08...)$/;

/** The same by the system's codes: of sockets, of names (a container that restarts has none meanwhile), of limits. */
const unavailable_codes =
  /^(ECONN(REFUSED|RESET|ABORTED)|ENOENT|EPIPE|ETIMEDOUT|E(HOST|NET)(UNREACH|DOWN)|EADDRNOTAVAIL|E[MN]FILE|ENOTFOUND|EAI_[A-Z]+)$/;

/** What pg throws without a code when a connection ends under a statement, or none can be had. */
const unavailable_messages = /Connection terminated|connection timeout|timeout exceeded when trying to connect/i;

/** Is it a text that PostgreSQL has no place for: one with NUL? */
export function isUnstorable(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '22021';
}

/** True if the database could not be reached or went away: the same call may well work in a moment. */
export function isUnavailable(error: unknown): error is Error {
  if (!(error instanceof Error) || 'path' in error) return false; // a file's or a program's: sockets have addresses
  const code = 'code' in error ? String(error.code) : '';
  if (unavailable_states.test(code) || unavailable_codes.test(code)) return true;
  return unavailable_messages.test(error.message);
}
