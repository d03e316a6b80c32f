import type { Db, Queryable } from '../db/database.ts';
import { countBelow, standingOf, type Standing } from '../money/ledger.ts';
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
     on conflict (account_id) do update set threshold = excluded.threshold, updated_at = excluded.updated_at,
       told_at = null, telling_at = null`,
    [account_id, threshold, now],
  );
}

/** An account that has less than it wants to be told of. */
export type LowBalance = { account_id: string; threshold: Money; available: Money; currency: string };

type Alert = { account_id: string; threshold: Money; notified_at: Date | null; seen_entry: bigint | null };

/** Holds come and go: what only they lifted above the threshold is told of again no sooner than this. */
const again_after_ms = 3_600_000;

/** Much longer than a mail takes. Whoever claimed it before has died, or could not notify. */
const claim_ms = 300_000;

/**
 * Calls `notify` once for each account that is low and has not been notified since it last had more; `notify` returns
 * whether it did. Returns how many were notified. An account that was not is tried again some minutes later; those that
 * are left when `notify` throws, or `signal` aborts, in the next run.
 */
export async function notifyLowBalances(
  db: Db,
  now: Date,
  notify: (low: LowBalance) => Promise<boolean>,
  signal?: AbortSignal,
): Promise<number> {
  const alerts = await db.query<Alert>(
    'select account_id, threshold, told_at as notified_at, seen_entry from balance_alerts order by account_id',
  );
  let sent_count = 0;
  for (const alert of alerts) {
    if (signal?.aborted) break;
    const { account_id, threshold, notified_at } = alert;
    const after = notified_at === null ? null : alert.seen_entry; // before the notice, credits say nothing
    const standing = await standingOf(db, { account_id, available: threshold, after });
    if (!standing) continue;
    const { available, currency } = standing;
    if (notified_at !== null && !(await isOver(db, alert, standing, now))) continue;
    if (available >= threshold || !(await claim(db, alert, now))) continue;
    if (!(await notify({ account_id, threshold, available, currency }))) continue;
    await markNotified(db, account_id, standing, now);
    sent_count += 1;
  }
  return sent_count;
}

/** Counts the accounts that have less available than the amount of their alert. */
export async function countLowBalances(db: Queryable): Promise<number> {
  const alerts = await db.query<{ account_id: string; threshold: Money }>(
    'select account_id, threshold from balance_alerts',
  );
  return alerts.length === 0 ? 0 : Number(await countBelow(db, alerts));
}

/** Has the account had more since it was notified? Money that came in counts even if it is gone again. */
async function isOver(db: Queryable, alert: Alert, standing: Standing, now: Date): Promise<boolean> {
  const { account_id, threshold, notified_at, seen_entry } = alert;
  const notified_ms = notified_at?.getTime() ?? 0;
  const has_more = standing.available >= threshold && now.getTime() - notified_ms >= again_after_ms;
  const is_over = standing.credited || has_more;
  if (is_over || standing.entry !== seen_entry) {
    await db.query(
      'update balance_alerts set told_at = $2, seen_entry = $3 where account_id = $1 and told_at is not distinct from $4',
      [account_id, is_over ? null : notified_at, standing.entry, notified_at],
    );
  }
  return is_over;
}

/** Returns false if somebody else notifies, or has notified. */
async function claim(db: Queryable, { account_id, threshold }: Alert, now: Date): Promise<boolean> {
  const rows = await db.query(
    `update balance_alerts set telling_at = $2 where account_id = $1 and threshold = $3 and told_at is null
        and (telling_at is null or telling_at <= $4) returning account_id`,
    [account_id, now, threshold, new Date(now.getTime() - claim_ms)],
  );
  return rows.length === 1;
}

/** Not if somebody has named another threshold meanwhile. */
async function markNotified(db: Queryable, account_id: string, { entry }: Standing, now: Date): Promise<void> {
  await db.query(
    `update balance_alerts set told_at = $2, telling_at = null, seen_entry = $3 where account_id = $1 and telling_at = $2`,
    [account_id, now, entry],
  );
}
