import { callsByAccount, countCalls, failedCallsByAccount } from '../chat/overview.ts';
import type { Db } from '../db/database.ts';
import { taskOutcomes } from '../tasks/overview.ts';

/** Time of calls that are counted, and how many of them there must be. */
const calls_ms = 15 * 60_000;
const calls_min = 20;

/** Calls and tasks of the last 15 minutes: those that ended, and those that failed by no fault of their callers. */
export type Rate = { ended: number; failed: number };

/** Returns so many that, if more have ended, the share of the failed ones is below `percent`. */
const endedMax = (failed: number, percent: number) => Math.floor((failed * 100) / percent);

/** Returns the rate of each account of which at least its share fails. Calls are only counted where enough failed. */
export async function failingAccounts(
  db: Db,
  percents: ReadonlyMap<string, number>,
  now: Date,
): Promise<Map<string, Rate>> {
  const scope = { since: new Date(now.getTime() - calls_ms), account_ids: [...percents.keys()] };
  const failed_calls = await failedCallsByAccount(db, scope);
  const tasks = new Map((await taskOutcomes(db, scope)).map((row) => [row.account_id, row]));
  const suspects = scope.account_ids.flatMap((account_id) => {
    const failed = (failed_calls.get(account_id) ?? 0) + (tasks.get(account_id)?.failed ?? 0);
    const ended_max = endedMax(failed, percents.get(account_id) ?? 100);
    return ended_max < calls_min ? [] : [{ account_id, failed, ended_max }];
  });
  if (suspects.length === 0) return new Map();
  const calls = await callsByAccount(
    db,
    scope.since,
    suspects.map(({ account_id }) => account_id),
  );
  return new Map(
    suspects.flatMap(({ account_id, failed, ended_max }): [string, Rate][] => {
      const ended = (calls.get(account_id) ?? 0) + (tasks.get(account_id)?.ended ?? 0);
      return ended < calls_min || ended > ended_max ? [] : [[account_id, { ended, failed }]];
    }),
  );
}

/** Returns the rate of the whole service if at least this share fails. Reads no more calls than decide it. */
export async function failingService(
  db: Db,
  { percent, models_left_out }: { percent: number; models_left_out: readonly string[] },
  now: Date,
): Promise<Rate | undefined> {
  const scope = { since: new Date(now.getTime() - calls_ms), models_left_out };
  const tasks = await taskOutcomes(db, scope);
  const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0);
  const failed = sum((await failedCallsByAccount(db, scope)).values()) + sum(tasks.map((row) => row.failed));
  const ended_max = endedMax(failed, percent);
  const ended_tasks = sum(tasks.map((row) => row.ended));
  if (ended_max < calls_min || ended_tasks > ended_max) return undefined;
  const ended = ended_tasks + (await countCalls(db, scope, ended_max - ended_tasks + 1));
  return ended < calls_min || ended > ended_max ? undefined : { ended, failed };
}
