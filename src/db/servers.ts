import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/** DATABASE_URL leads to no database that can be used; the message tells the operator what to do, without the password. */
export class UnreachableError extends Error {
  override name = 'UnreachableError';
}

/** Of several servers none takes writes now; another one may in a moment, so the database is unavailable. */
class NoPrimaryError extends UnreachableError {
  /** PostgreSQL's sqlclient_unable_to_establish_sqlconnection. */
  readonly code = '08001';

  constructor(problems: readonly string[]) {
    super(
      `None of the servers of DATABASE_URL takes writes (${problems.join('; ')}). Start the primary, promote a standby, or correct DATABASE_URL.`,
    );
  }
}

/** The way to a database: pg's own settings, and where there are several servers, a client that finds the primary. */
export type Connection = pg.ClientConfig & { Client?: typeof pg.Client };

/**
 * Returns what leads to the database of DATABASE_URL. With several hosts, as in `postgres://USER@A:5432,B:5432/NAME`,
 * each new connection goes to the one that takes writes, whichever that is by then. Throws UnreachableError where only
 * servers that read are asked for.
 */
export function connectionTo(database_url: string): Connection {
  const { url, attributes } = withoutAttributes(database_url);
  if (!writing.has(attributes)) {
    throw new UnreachableError(
      `DATABASE_URL has target_session_attrs=${attributes}, and Medley needs a server that takes writes: set it to read-write, or leave it out.`,
    );
  }
  const [first = url, ...more] = eachHost(url);
  if (more.length === 0) return { connectionString: first };
  return { connectionString: first, Client: clientOf(new Servers([first, ...more])) };
}

/** Values of target_session_attrs, as libpq has them, by which a primary is found. Without it any would do, for others. */
const writing = new Set(['any', 'read-write', 'primary']);

/** To pg, the parameter means nothing. */
function withoutAttributes(database_url: string): { url: string; attributes: string } {
  const [, before = '', attributes = 'any', after = ''] =
    /^([^?]*\?(?:[^#]*&)?)target_session_attrs=([^&#]*)(.*)$/s.exec(database_url) ?? [];
  if (before === '') return { url: database_url, attributes };
  return { url: `${before}${after.replace(/^&/, '')}`.replace(/[?&]$/, ''), attributes };
}

/** One address for each host, in their order: pg takes no lists. */
function eachHost(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = /^(\w+:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/s.exec(url) ?? [];
  return hosts.includes(',') ? hosts.split(',').map((host) => `${before}${host}${after}`) : [url];
}

type Address = { host: string; port: number };

/** An answer is believed for so long: many connections are opened at once. */
const answer_lasts_ms = 1_000;

/** Between two looks, while none takes writes. */
const look_every_ms = 200;

/** Less than a pool waits for a connection. */
const look_limit_ms = 3_000;

/** The servers of one database: a primary and its standbys, which change places. */
class Servers {
  readonly #urls: readonly string[];
  #answer: { address: Address; at_ms: number } | undefined;
  #looking: Promise<Address> | undefined;
  #look_at_ms = 0;

  constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  /** Returns the one that takes writes. Rejects with NoPrimaryError. */
  primary(): Promise<Address> {
    if (this.#answer && performance.now() - this.#answer.at_ms < answer_lasts_ms)
      return Promise.resolve(this.#answer.address);
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  /** Asks all at once: one that is gone for good may leave its caller without an answer. */
  async #look(): Promise<Address> {
    await sleep(Math.max(0, this.#look_at_ms - performance.now()));
    this.#look_at_ms = performance.now() + look_every_ms;
    try {
      const address = await Promise.any(this.#urls.map(addressOfPrimary));
      this.#answer = { address, at_ms: performance.now() };
      return address;
    } catch (error) {
      const reasons: unknown[] = error instanceof AggregateError ? error.errors : [error];
      throw new NoPrimaryError(reasons.map((reason) => (reason instanceof Error ? reason.message : String(reason))));
    }
  }
}

/** Returns its address. Rejects unless the server takes writes. */
async function addressOfPrimary(url: string): Promise<Address> {
  // Not under a name of ours: to a restore, which refuses company, it would look like a command that uses the database.
  const client = new pg.Client({
    connectionString: url,
    application_name: 'look',
    connectionTimeoutMillis: look_limit_ms,
    query_timeout: look_limit_ms,
  });
  client.on('error', () => undefined);
  const { host, port } = client;
  try {
    await client.connect();
    const { rows } = await client.query<{ only_reads: boolean }>(
      `select pg_is_in_recovery() or current_setting('default_transaction_read_only')::bool as only_reads`,
    );
    if (rows[0]?.only_reads !== false) throw new Error('only reads, like a standby');
    return { host, port };
  } catch (error) {
    const { message } = error instanceof Error ? error : new Error(String(error));
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new Error(`${host}:${port} ${message || code}`, { cause: error });
  } finally {
    client.end().catch(() => undefined);
  }
}

/** A client like pg's own, also for its pools, that finds its server when it connects. */
function clientOf(servers: Servers): typeof pg.Client {
  return class extends pg.Client {
    override connect(): Promise<pg.Client>;
    override connect(callback: (error: Error | null, client?: pg.Client) => void): void;
    override connect(callback?: (error: Error | null, client?: pg.Client) => void): Promise<pg.Client> | undefined {
      const connecting = this.#connectToPrimary();
      if (!callback) return connecting;
      connecting.then((client) => callback(null, client), callback);
    }

    async #connectToPrimary(): Promise<pg.Client> {
      const { host, port } = await servers.primary();
      this.host = host;
      this.port = port;
      return super.connect();
    }
  };
}
