import type { Queryable } from '../db/database.ts';
import { countBelow } from '../money/ledger.ts';
import type { Money } from '../money/money.ts';

/** An account, and the amount of available money below which its people hear of it. */
export type Threshold = { account_id: string; threshold: Money };

/** Returns the amount of an account; undefined: its people do not want to hear of it. */
export async function findThreshold(db: Queryable, account_id: string): Promise<Money | undefined> {
  const rows = await db.query<{ threshold: Money }>('select threshold from balance_alerts where account_id = $1', [
    account_id,
  ]);
  return rows[0]?.threshold;
}

/** Sets the threshold; null: no more alerts. A new threshold is an alert of its own. */
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
     on conflict (account_id) do update set threshold = excluded.threshold, updated_at = excluded.updated_at`,
    [account_id, threshold, now],
  );
}

/** All amounts. */
export async function listThresholds(db: Queryable): Promise<Threshold[]> {
  return db.query<Threshold>('select account_id, threshold from balance_alerts order by account_id');
}

/** Counts the accounts that have less available than the amount of their alert. */
export async function countLowBalances(db: Queryable): Promise<number> {
  const thresholds = await listThresholds(db);
  return thresholds.length === 0 ? 0 : Number(await countBelow(db, thresholds));
}
