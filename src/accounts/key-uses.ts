import type { Logger } from 'pino';
import type { Queryable } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';

/** Times at which keys were last used. */
export type KeyUses = {
  /** Notes that a key is used now. */
  note(key_id: string): void;
  /** Writes what is not written yet. */
  close(): Promise<void>;
};

/** A node writes a key once in so long: what is shown is at most so old. */
const noted_again_ms = 60_000;

/** Keys that are used within so long are written together. */
const together_ms = 5_000;

/** A node remembers so many; the oldest are written sooner again. */
const keys_max = 20_000;

/** The parts of the app that noting uses takes. */
export type KeyUsesParts = { readonly db: Queryable; readonly clock: Clock; readonly log: Pick<Logger, 'warn'> };

/**
 * Notes uses in memory: a call costs a look into a map. A node writes one statement in five seconds at most, and a row a
 * minute for each key in use, however often it is. What was not written when a process dies is lost.
 */
export function openKeyUses({ db, clock, log }: KeyUsesParts): KeyUses {
  const noted_ms = new Map<string, number>(); // oldest first
  let unwritten = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const write = async () => {
    timer = undefined;
    const uses = unwritten;
    unwritten = new Map();
    if (uses.size === 0) return;
    try {
      await writeUses(db, uses);
    } catch (error) {
      log.warn({ err: error }, 'uses of keys could not be written');
      for (const key_id of uses.keys()) noted_ms.delete(key_id); // its next call is noted again
    }
  };

  return {
    note(key_id) {
      const now_ms = clock.now();
      if (now_ms - (noted_ms.get(key_id) ?? Number.NEGATIVE_INFINITY) < noted_again_ms) return;
      noted_ms.delete(key_id); // moves it to the end
      noted_ms.set(key_id, now_ms);
      unwritten.set(key_id, now_ms);
      for (const [oldest] of noted_ms) {
        if (noted_ms.size <= keys_max) break;
        noted_ms.delete(oldest);
      }
      timer ??= setTimeout(() => (writing = write()), together_ms).unref();
    },
    async close() {
      clearTimeout(timer);
      await writing;
      await write();
    },
  };
}

/** Locks the keys in the order of their ids, as who else locks several of them. A use that another node has written is not again. */
async function writeUses(db: Queryable, uses: ReadonlyMap<string, number>): Promise<void> {
  await db.query(
    `with due as (
       select k.id, u.used_at
         from unnest($1::text[], $2::timestamptz[]) as u (id, used_at) join api_keys k on k.id = u.id
        where k.last_used_at is null or k.last_used_at < u.used_at - interval '30 s'
        order by k.id for no key update of k)
     update api_keys k set last_used_at = due.used_at from due where k.id = due.id`,
    [[...uses.keys()], [...uses.values()].map((used_ms) => new Date(used_ms))],
    'brief',
  );
}

/** Returns the accounts of which a key was used since then. */
export async function accountsInUse(db: Queryable, since: Date): Promise<string[]> {
  const rows = await db.query<{ account_id: string }>(
    'select distinct account_id from api_keys where last_used_at >= $1',
    [since],
  );
  return rows.map(({ account_id }) => account_id);
}
