import type { Queryable } from '../db/database.ts';
import type { Money } from './money.ts';

/** The end of a hold: the charge (0n if released) and the upstream's booked charge, null if unknown. */
export type ClosedHold = { charged: Money; upstream_cost: Money | null };

/** Reads how the hold of `ref` was closed, with what was settled late; undefined while it was not. Changes nothing. */
export async function closedHold(db: Queryable, account_id: string, ref: string): Promise<ClosedHold | undefined> {
  const [closed] = await db.query<ClosedHold>(
    `select revenue + loss as charged, case when upstream_base is not null then upstream_cost end as upstream_cost
       from ledger_entries where ref = $1 and event in ('close', 'late') and account_id = $2 order by event desc limit 1`,
    [ref, account_id],
  );
  return closed;
}
