import type { Db, Queryable } from '../db/database.ts';
import { oneRow } from '../db/one-row.ts';
import type { Clock } from '../lib/clock.ts';
import { sha256 } from '../lib/sha256.ts';

/**
 * A limit on tries that fail: a few are free, then each has to wait twice as long as the one before, on all nodes together.
 * Tries are counted by a name, such as an e-mail address with the network of the client.
 */
export type Backoff = {
  /** Counts a try. Resolves to how long it has to wait instead, in milliseconds: 0 if it may go on. */
  take(name: string): Promise<number>;
  /** Ends the count after a try that was right. */
  forgive(name: string): Promise<void>;
  /** Takes a try back that was neither right nor wrong. */
  undo(name: string): Promise<void>;
};

const remembered_ms = 60 * 60_000;

/** Returns a backoff that counts in the table `sign_in_tries`, which has only the SHA-256 of names. */
export function sharedBackoff({ db, clock }: { db: Db; clock: Clock }): Backoff {
  return {
    take: async (name) => {
      const values = [sha256(name), new Date(clock.now())];
      return oneRow(await db.query<{ wait_ms: number }>('select take_try($1, $2) as wait_ms', values)).wait_ms;
    },
    forgive: async (name) => void (await db.query('delete from sign_in_tries where name = $1', [sha256(name)])),
    undo: async (name) => {
      const counted = `update sign_in_tries set count = count - 1 where name = $1 and count > 1`;
      const only = `delete from sign_in_tries where name = $1 and count = 1`;
      await db.query(`with counted as (${counted}) ${only}`, [sha256(name)]);
    },
  };
}

/** Removes counts without a try in the last hour. */
export async function removeOldTries(db: Queryable, now: Date): Promise<void> {
  const before = new Date(now.getTime() - remembered_ms);
  await db.query('delete from sign_in_tries where last_at <= $1', [before]);
}
