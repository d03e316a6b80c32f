import type { Queryable } from '../db/database.ts';

export type TasksOverview = {
  queued: number;
  running: number;
  oldest_queued_at: Date | null;
  succeeded_24h: number;
  failed_24h: number;
};

/** Counts the tasks of all accounts, for the operator. */
export async function tasksOverview(db: Queryable, now: Date): Promise<TasksOverview> {
  const rows = await db.query<
    Record<'queued' | 'running' | 'succeeded_24h' | 'failed_24h', bigint> & { oldest: Date | null }
  >(
    `select (select count(*) from tasks where completed_at is null and status = 'queued') as queued,
            (select count(*) from tasks where completed_at is null and status = 'running') as running,
            (select min(created_at) from tasks where completed_at is null and status = 'queued') as oldest,
            count(*) filter (where status = 'succeeded') as succeeded_24h,
            count(*) filter (where status = 'failed') as failed_24h
       from tasks where completed_at > $1::timestamptz - interval '24 hours'`,
    [now],
  );
  const row = rows[0];
  return {
    queued: Number(row?.queued ?? 0),
    running: Number(row?.running ?? 0),
    oldest_queued_at: row?.oldest ?? null,
    succeeded_24h: Number(row?.succeeded_24h ?? 0),
    failed_24h: Number(row?.failed_24h ?? 0),
  };
}

export type UnfinishedTasks = Pick<TasksOverview, 'queued' | 'running' | 'oldest_queued_at'>;

/** Counts the tasks of all accounts that have not ended; reads no others. */
export async function unfinishedTasks(db: Queryable): Promise<UnfinishedTasks> {
  const rows = await db.query<{ queued: bigint; running: bigint; oldest_queued_at: Date | null }>(
    `select count(*) filter (where status = 'queued') as queued,
            count(*) filter (where status = 'running') as running,
            min(created_at) filter (where status = 'queued') as oldest_queued_at
       from tasks where completed_at is null`,
  );
  const { queued = 0n, running = 0n, oldest_queued_at = null } = rows[0] ?? {};
  return { queued: Number(queued), running: Number(running), oldest_queued_at };
}

export type FailureGroup = {
  route: string;
  state: string;
  reason: string | null;
  count: number;
  last_at: Date;
  example: string | null;
};

/** Counts failures by route and cause since then, most frequent first: attempts, not tasks. */
export async function failuresByRoute(db: Queryable, since: Date): Promise<FailureGroup[]> {
  const rows = await db.query<Omit<FailureGroup, 'count'> & { count: bigint }>(
    `select route, state, reason, count(*) as count, max(ended_at) as last_at,
            (array_agg(message order by ended_at desc))[1] as example
       from attempts where ended_at >= $1 and state in ('failed', 'not_started', 'ambiguous', 'abandoned')
      group by route, state, reason order by count(*) desc limit 100`,
    [since],
  );
  return rows.map((row) => ({ ...row, count: Number(row.count) }));
}

/** Counts the running runs of each route. */
export async function runsByRoute(db: Queryable): Promise<Map<string, number>> {
  const rows = await db.query<{ route: string; count: bigint }>(
    'select route, count(*) as count from attempts where ended_at is null group by route',
  );
  return new Map(rows.map(({ route, count }) => [route, Number(count)]));
}

/** Tasks of an account that ended since a time. `failed`: by an upstream, or by the service itself. */
export type TaskOutcomes = { account_id: string; ended: number; failed: number };

/** Counts the tasks that ended since then by account: of all accounts, or of these; without those of some models. */
export async function taskOutcomes(
  db: Queryable,
  scope: { since: Date; account_ids?: readonly string[]; models_left_out?: readonly string[] },
): Promise<TaskOutcomes[]> {
  const rows = await db.query<{ account_id: string; ended: bigint; failed: bigint }>(
    `select account_id, count(*) as ended,
            count(*) filter (where error_type in ('upstream_error', 'timeout', 'internal_error')) as failed
       from tasks where completed_at > $1 and ($2::text[] is null or account_id = any($2)) and model <> all($3)
      group by account_id`,
    [scope.since, scope.account_ids ?? null, scope.models_left_out ?? []],
  );
  return rows.map((row) => ({ ...row, ended: Number(row.ended), failed: Number(row.failed) }));
}
