import { AsyncLocalStorage } from 'node:async_hooks';
import type pg from 'pg';
import { isUnavailable, type Db } from '../../db/database.ts';
import { openPool } from '../../db/pool.ts';

/**
 * The connections of the login library. It answers 500, or 401 as if nobody had signed in, when a statement fails, and
 * says of neither why: so the connections note that the database was away, for the call that it failed.
 */
export type LoginDatabase = {
  /** For the library. Its tables are in a schema of their own, and its dates are as pg has them. */
  pool: Pick<pg.Pool, 'end'> & { connect(): Promise<pg.PoolClient> };
  /**
   * Runs a call of the library. Where it throws, or returns what `hasFailed`, and the database was away meanwhile,
   * this throws what pg said (isUnavailable).
   */
  run<T>(call: () => Promise<T>, hasFailed: (outcome: T) => boolean): Promise<T>;
};

const connections_max = 4;
const limit_ms = 6_000;

/** Opens the connections: the first one when the library asks for it. */
export function openLoginDatabase({ connection }: Pick<Db, 'connection'>): LoginDatabase {
  const settings = 'set search_path = auth'; // by a statement, since poolers refuse it as an option
  const pool = openPool({ connection, connections_max, name: 'medley login', limit_ms, settings });
  const calls = new AsyncLocalStorage<{ outage?: Error }>();

  const noting = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      const call = calls.getStore();
      if (call && isUnavailable(error)) call.outage = error;
      throw error;
    }
  };

  return {
    pool: { connect: async () => noted(await noting(pool.connect()), noting), end: () => pool.end() },
    run: async (call, hasFailed) => {
      const seen: { outage?: Error } = {};
      try {
        const outcome = await calls.run(seen, call);
        if (!seen.outage || !hasFailed(outcome)) return outcome;
      } catch (error) {
        throw seen.outage ?? error;
      }
      throw seen.outage;
    },
  };
}

/** The same client, whose statements are noted. */
function noted(client: pg.PoolClient, noting: (work: Promise<unknown>) => Promise<unknown>): pg.PoolClient {
  return new Proxy(client, {
    get: (_, name) => {
      const value: unknown = Reflect.get(client, name);
      if (name !== 'query' || typeof value !== 'function') return value;
      return (...values: unknown[]) => noting(Reflect.apply(value, client, values));
    },
  });
}
