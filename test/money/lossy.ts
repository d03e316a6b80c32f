import type { Db, Queryable } from '../../src/db/database.ts';

/** The moment at which the connection is lost. Only after `after commit` does the caller not know the outcome. */
export type Fault = 'none' | 'before begin' | 'after a statement' | 'before commit' | 'after commit';

export const faults: readonly Fault[] = ['none', 'before begin', 'after a statement', 'before commit', 'after commit'];

class LostConnection extends Error {
  override name = 'LostConnection';
}

/** Calls in a transaction whose connection is lost at `fault`, and then again, as every caller should. */
export async function callTwice<T>(db: Db, fault: Fault, call: (tx: Queryable) => Promise<T>): Promise<T> {
  try {
    return await lossyTransaction(db, fault, call);
  } catch (error) {
    if (!(error instanceof LostConnection)) throw error;
    return db.tx(call);
  }
}

async function lossyTransaction<T>(db: Db, fault: Fault, call: (tx: Queryable) => Promise<T>): Promise<T> {
  if (fault === 'before begin') throw new LostConnection();
  const client = await db.pool.connect();
  const { rows: pids } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  let broken: Error | undefined;
  const lose = (at: Fault) => {
    if (fault === at) throw (broken = new LostConnection());
  };
  try {
    await client.query('begin');
    const answer = await call({
      query: async <R>(text: string, values: readonly unknown[] = []) => {
        const { rows } = await client.query(text, [...values]);
        lose('after a statement');
        return rows as R[];
      },
    });
    lose('before commit');
    const commit = client.query('commit');
    commit.catch(() => undefined);
    lose('after commit'); // it has been sent; the socket is destroyed before its answer can be read
    await commit;
    return answer;
  } finally {
    client.release(broken);
    if (broken) await gone(db, pids[0]?.pid);
  }
}

/** Until the server has noticed: what it was about to do is done or rolled back. */
async function gone(db: Db, pid: number | undefined): Promise<void> {
  for (;;) {
    const rows = await db.query('select from pg_stat_activity where pid = $1', [pid]);
    if (rows.length === 0) return;
  }
}

/** A Db whose next call is lost: before it is sent, or after its work is done. */
export function losesNext(db: Db, fault: Fault): Db {
  let armed = fault !== 'none';
  return {
    ...db,
    query: async <R>(text: string, values?: readonly unknown[]) => {
      const now = armed;
      armed = false;
      if (now && fault !== 'after commit') throw new LostConnection();
      const rows = await db.query<R>(text, values);
      if (now) throw new LostConnection();
      return rows;
    },
  };
}
