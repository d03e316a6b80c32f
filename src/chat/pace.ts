import type { Queryable } from '../db/database.ts';
import { firstIdSince } from '../lib/ids.ts';
import { keysOfProjects } from '../money/key-budgets.ts';
import type { PaceRange } from '../tasks/durations.ts';

/** Counts and times of an account's calls of one model: times of the whole response and of its first content. */
export type ChatPace = {
  model: string;
  ended: number;
  succeeded: number;
  p50_ms: number | null;
  p95_ms: number | null;
  first_p50_ms: number | null;
};

/** A call that the caller got wrong, or did not wait for, says nothing about a model. */
export async function paceOfCalls(
  db: Queryable,
  { account_id, since, model, projects }: PaceRange,
): Promise<ChatPace[]> {
  return db.query<ChatPace>(
    `select model, count(*)::int as ended, count(*) filter (where status < 400)::int as succeeded,
        percentile_cont(0.5) within group (order by total_ms) filter (where status < 400) as p50_ms,
        percentile_cont(0.95) within group (order by total_ms) filter (where status < 400) as p95_ms,
        percentile_cont(0.5) within group (order by first_content_ms) filter (where status < 400) as first_p50_ms
      from chat_calls where account_id = $1 and id >= $2 and ($3::text is null or model = $3)
          and ($4::text[] is null or key_id in (${keysOfProjects('$1', '$4')}))
        and (status < 400 or status >= 500 or status = 429)
      group by model`,
    [account_id, firstIdSince('req', since.getTime()), model ?? null, projects ?? null],
  );
}
