import type { Queryable } from '../db/database.ts';
import { firstIdSince } from '../lib/ids.ts';
import { keysOfProjects } from '../money/key-budgets.ts';

/** Counts of an account's tasks of one model, and their times from creation to result. */
/** Work of an account since a time; of one model, and of keys that are in one of these projects now. */
export type PaceRange = {
  account_id: string;
  since: Date;
  model?: string | undefined;
  projects?: readonly string[] | undefined;
};

export type TaskDurations = {
  model: string;
  ended: number;
  succeeded: number;
  p50_ms: number | null;
  p95_ms: number | null;
};

/**
 * Returns the counts and times of each model. Canceled tasks say nothing about a model, and neither do inputs
 * that a provider refused.
 */
export async function taskDurations(
  db: Queryable,
  { account_id, since, model, projects }: PaceRange,
): Promise<TaskDurations[]> {
  return db.query<TaskDurations>(
    `select model, count(*)::int as ended, count(*) filter (where status = 'succeeded')::int as succeeded,
        percentile_cont(0.5) within group (order by took_ms) as p50_ms,
        percentile_cont(0.95) within group (order by took_ms) as p95_ms
      from (select model, status, case when status = 'succeeded'
          then extract(epoch from completed_at - created_at)::float8 * 1000 end as took_ms
        from tasks where account_id = $1 and id >= $2 and completed_at is not null and ($3::text is null or model = $3)
          and ($4::text[] is null or key_id in (${keysOfProjects('$1', '$4')}))
          and (error_type is null or error_type not in ('canceled', 'content_policy_violation', 'invalid_request'))) ended
      group by model`,
    [account_id, firstIdSince('task', since.getTime()), model ?? null, projects ?? null],
  );
}
