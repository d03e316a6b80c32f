import type { Queryable } from '../db/database.ts';
import type { Money } from './money.ts';

/** Returns the most that an open hold may come to, all that is kept free for its call included; 0 if it is not open. */
export async function openHoldMost(db: Queryable, account_id: string, ref: string): Promise<Money> {
  const rows = await db.query<{ most: Money }>(
    'select amount + exposed as most from open_holds where account_id = $1 and ref = $2',
    [account_id, ref],
  );
  return rows[0]?.most ?? 0n;
}
