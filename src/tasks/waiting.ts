import type { ProviderLimits } from '../catalog/model.ts';
import type { Queryable } from '../db/database.ts';
import type { TaskRef } from './task.ts';

/** A provider that a task waits for: its place among all tasks that do, from 1 on, and the reason. */
export type WaitingPlace = { provider: string; place: number; reason: string };

type Row = {
  provider: string;
  active: bigint;
  begun: bigint;
  retry_at: Date | null;
  place: bigint;
};

/** Tasks get room in turn: first the account with the fewest runs, and of an account the oldest. */
const statement = `
  with mine as (
    select distinct on (provider) provider, route from throttled_tasks
     where account_id = $1 and task_id = $2 and promoted_at is null order by provider, route),
  active as (
    select provider, account_id, count(*) as count from attempts
     where ended_at is null and provider in (select provider from mine) group by provider, account_id),
  turns as (
    select k.provider, k.account_id, k.task_id, k.since,
           row_number() over (partition by k.provider, k.account_id order by k.since, k.task_id)
             + coalesce(a.count, 0) as turn
      from (select distinct provider, account_id, task_id, since from throttled_tasks
             where promoted_at is null and provider in (select provider from mine)) k
      left join active a on a.provider = k.provider and a.account_id = k.account_id),
  numbered as (
    select provider, account_id, task_id,
           row_number() over (partition by provider order by turn, since, task_id) as place from turns)
  select mine.provider, p.place,
         (select coalesce(sum(count), 0)::bigint from active a where a.provider = mine.provider) as active,
         (select count(*) from attempts a
           where a.provider = mine.provider and a.created_at > $3::timestamptz - interval '60 seconds') as begun,
         (select f.retry_at from full_routes f where f.route = mine.route) as retry_at
    from mine join numbered p on p.provider = mine.provider and p.account_id = $1 and p.task_id = $2
   order by mine.provider`;

/** Returns what a queued task waits for, one entry for each provider; none if it does not wait for room. */
export async function waitingOf(
  db: Queryable,
  ref: TaskRef,
  providers: ReadonlyMap<string, ProviderLimits>,
  now: Date,
): Promise<WaitingPlace[]> {
  const rows = await db.query<Row>(statement, [ref.account_id, ref.task_id, now]);
  return rows.map((row) => {
    const limits = providers.get(row.provider) ?? {};
    const label = limits.label ?? row.provider;
    return { provider: label, place: Number(row.place), reason: reasonOf(row, limits, label, now) };
  });
}

function reasonOf({ active, begun, retry_at }: Row, limits: ProviderLimits, label: string, now: Date): string {
  const { max_active, per_minute } = limits;
  if (max_active !== undefined && active >= max_active) return `waits for ${label}: ${active} of ${max_active} active`;
  if (per_minute !== undefined && begun >= per_minute)
    return `waits for ${label}: ${begun} of ${per_minute} starts in the last minute`;
  if (retry_at && retry_at > now)
    return `waits for ${label}: it said that it is full, with ${active} active; asked again at ${retry_at.toISOString()}`;
  return `waits for ${label}: its turn is about to come`;
}
