import { firstIdSince } from '../lib/ids.ts';
import type { Bind } from '../money/groups.ts';

/** Work of one account, or of all, that began from `from` (inclusive) to `to` (exclusive). */
export type EndedRange = { account_id: string | undefined; from: Date; to: Date };

/** Ids are made about when their work begins. */
const id_slack_ms = 3_600_000;

/** Returns a condition on `id` that holds for all work of the range: an account's ids sort by time. */
export function idsOf(prefix: 'task' | 'req', { from, to }: EndedRange, bind: Bind): string {
  const [first_ms, last_ms] = [from.getTime() - id_slack_ms, to.getTime() + id_slack_ms];
  const [first, last] = [firstIdSince(prefix, Math.max(0, first_ms)), firstIdSince(prefix, Math.max(0, last_ms))];
  return `id >= ${bind(first)} and id <= ${bind(last)}`;
}

/**
 * Returns a select of ended media tasks for a report of speed. What the caller got wrong, or cancelled, says nothing
 * about a model.
 */
export function endedTasks(range: EndedRange, bind: Bind): string {
  const { account_id, from, to } = range;
  const place =
    account_id === undefined
      ? `completed_at >= ${bind(from)}`
      : `account_id = ${bind(account_id)} and ${idsOf('task', range, bind)}`;
  return `select account_id, id, created_at as at, model, key_id, status = 'succeeded' as is_ok, null::integer as first_ms,
      extract(epoch from completed_at - created_at)::float8 * 1000 as total_ms, 0 as output_tokens, readable_metadata(metadata) ->> 'user' as end_user,
      readable_metadata(metadata) as metadata,
      (select route from attempts a where a.account_id = tasks.account_id and a.task_id = tasks.id
        order by number desc limit 1) as route
    from tasks
   where ${place} and created_at >= ${bind(from)} and created_at < ${bind(to)} and completed_at is not null
     and (status = 'succeeded' or error_type in ('upstream_error', 'timeout', 'internal_error'))`;
}
