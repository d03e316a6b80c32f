import type { Db, Queryable } from '../db/database.ts';
import { balanceOf } from '../money/ledger.ts';
import type { Money } from '../money/money.ts';

/** Below this much available the account's people are told; undefined: they do not want to be. */
export async function findThreshold(db: Queryable, account_id: string): Promise<Money | undefined> {
  const rows = await db.query<{ threshold: Money }>('select threshold from balance_alerts where account_id = $1', [
    account_id,
  ]);
  return rows[0]?.threshold;
}

/** Null: no more alerts. A new threshold is told of anew. */
export async function setThreshold(
  db: Queryable,
  account_id: string,
  threshold: Money | null,
  now: Date,
): Promise<void> {
  if (threshold === null) {
    await db.query('delete from balance_alerts where account_id = $1', [account_id]);
    return;
  }
  await db.query(
    `insert into balance_alerts (account_id, threshold, updated_at) values ($1, $2, $3)
     on conflict (account_id) do update set threshold = excluded.threshold, updated_at = excluded.updated_at, told_at = null`,
    [account_id, threshold, now],
  );
}

/** An account that has less than it wants to be told of. */
export type LowBalance = { account_id: string; threshold: Money; available: Money; currency: string };

/**
 * Calls `tell` for each account that has become low since it last was not, once: whoever has more than its threshold
 * again is told of the next time. Returns how many were told; one whose `tell` fails is told by a later run.
 */
export async function tellOfLowBalances(db: Db, now: Date, tell: (low: LowBalance) => Promise<void>): Promise<number> {
  const alerts = await db.query<{ account_id: string; threshold: Money; told_at: Date | null }>(
    'select account_id, threshold, told_at from balance_alerts order by account_id',
  );
  let told = 0;
  for (const { account_id, threshold, told_at } of alerts) {
    const found = await balanceOf(db, account_id);
    if (!found) continue;
    const available = found.amount - found.held;
    if (available >= threshold) {
      if (told_at !== null) await markTold(db, account_id, null, told_at);
    } else if (told_at === null && (await markTold(db, account_id, now, null))) {
      try {
        await tell({ account_id, threshold, available, currency: found.currency });
        told += 1;
      } catch (error) {
        await markTold(db, account_id, null, now);
        throw error;
      }
    }
  }
  return told;
}

/** False if another node was faster. */
async function markTold(
  db: Queryable,
  account_id: string,
  told_at: Date | null,
  before: Date | null,
): Promise<boolean> {
  const rows = await db.query(
    `update balance_alerts set told_at = $2 where account_id = $1 and told_at is not distinct from $3 returning account_id`,
    [account_id, told_at, before],
  );
  return rows.length === 1;
}
