import type { Queryable } from '../db/database.ts';
import type { CloseRequest } from './holds.ts';
import type { Money } from './money.ts';

/** Returns the most that an open hold may come to, all that is kept free for its call included; 0 if it is not open. */
export async function openHoldMost(db: Queryable, account_id: string, ref: string): Promise<Money> {
  const rows = await db.query<{ most: Money }>(
    'select amount + exposed as most from open_holds where account_id = $1 and ref = $2',
    [account_id, ref],
  );
  return rows[0]?.most ?? 0n;
}

/** A node says every 2 s that it is alive; one that has not for so long has lost its calls, or their callers. */
const silent_ms = 60_000;

/** A call is over long before: a node that lives and has not ended it after so long has forgotten it. */
const late_ms = 3_600_000;

/** Chat holds that nobody ended in their time, and whose node is not alive; oldest first. By the database's clock, or `now`. */
export function expiredHolds(
  db: Queryable,
  count: number,
  now?: Date,
): Promise<Pick<CloseRequest, 'account_id' | 'ref'>[]> {
  return db.query(
    `select account_id, ref from expired_holds(coalesce($1, now()), $2::float8 * interval '1 ms',
       $3::float8 * interval '1 ms', $4)`,
    [now ?? null, silent_ms, late_ms, count],
  );
}
