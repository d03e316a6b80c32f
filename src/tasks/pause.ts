import type { Queryable } from '../db/database.ts';

/**
 * Returns the time from which an account may create tasks again, if `failures_max` of its runs failed within
 * 24 hours; insert_task and insert_tasks apply the rule itself.
 */
export async function pausedUntil(
  db: Queryable,
  account_id: string,
  failures_max: number,
  now: Date,
): Promise<Date | undefined> {
  const rows = await db.query<{ until: Date | null }>('select paused_until($1, $2, $3) as until', [
    now,
    account_id,
    failures_max,
  ]);
  return rows[0]?.until ?? undefined;
}

/** Counts the failures of an account that matter at this time. */
export async function countedFailures(db: Queryable, account_id: string, now: Date): Promise<number> {
  const rows = await db.query<{ counted: bigint }>(
    `select count(*) as counted from tasks
      where account_id = $1 and counts_as_failure and completed_at > $2::timestamptz - interval '24 hours'`,
    [account_id, now],
  );
  return Number(rows[0]?.counted ?? 0);
}

/** Clears the failures that count at this time, for an operator. Returns how many they were. */
export async function clearFailures(db: Queryable, account_id: string, now: Date): Promise<number> {
  const rows = await db.query(
    `update tasks set counts_as_failure = false
      where account_id = $1 and counts_as_failure and completed_at > $2::timestamptz - interval '24 hours' returning id`,
    [account_id, now],
  );
  return rows.length;
}
