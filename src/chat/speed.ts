import type { Queryable } from '../db/database.ts';
import { default_metric, scoresIn } from '../feedback/feedback.ts';
import { assert } from '../lib/assert.ts';
import { columnOf, groupNamed, type Bind, type UsageGroup } from '../money/groups.ts';
import { keysOfProjects } from '../money/key-budgets.ts';
import { endedTasks, idsOf, type EndedRange } from '../tasks/speed.ts';

/** Reports of speed: how long calls and tasks took, and how many of them failed. */

/** `route`: the last one that was tried. */
export type SpeedGroup = 'route' | Exclude<UsageGroup, 'modality' | 'project'>;

/** Returns the group of this name; undefined if there is none. */
export function speedGroupNamed(name: string): SpeedGroup | undefined {
  const group = name === 'route' ? name : groupNamed(name);
  return group === 'modality' || group === 'project' ? undefined : group;
}

/** Times in milliseconds; null where nothing was measured, as of a task's first token. */
export type Speed = {
  /** Calls and tasks that ended, without those that their caller got wrong or left. */
  count: number;
  failed: number;
  first_p50_ms: number | null;
  first_p95_ms: number | null;
  total_p50_ms: number | null;
  total_p95_ms: number | null;
  /** Output tokens between the first token and the end: the median of streamed answers. */
  tokens_per_second: number | null;
  /** Scores that callers gave to these calls and tasks, of the metric of the report, and their mean, from -1 to 1. */
  feedback_count: number;
  feedback_score: number | null;
};

/** `names`: of the groups, in their order; empty where there is none. */
export type SpeedRow = Speed & { names: string[] };

export type SpeedRange = EndedRange & {
  model?: string | undefined;
  key?: string | undefined;
  /** Only models with one of these ids, or a beginning of theirs. */
  models?: { ids: readonly string[]; prefixes: readonly string[] } | undefined;
  /** Only calls and tasks of keys that are in one of these projects now. */
  projects?: readonly string[] | undefined;
  /** The metric of feedback. */
  feedback?: string | undefined;
};

/** Groups of a report at most: those with the most calls. */
export const speed_rows_max = 1_000;

/** Returns the speed of the range's calls and tasks by these groups, the most calls first. */
export async function speedOf(
  db: Queryable,
  range: SpeedRange,
  groups: readonly SpeedGroup[],
  rows_max = speed_rows_max,
): Promise<SpeedRow[]> {
  assert(
    groups.every((group) => speedGroupNamed(group) !== undefined),
    'speed is grouped by known names, which become part of the statement',
  );
  const values: unknown[] = [];
  const bind: Bind = (value) => `$${values.push(value)}`;
  const ended = `${endedCalls(range, bind)} union all ${endedTasks(range, bind)}`;
  const columns = groups
    .map((group, index) => `${group === 'route' ? "coalesce(route, '')" : columnOf(group, bind)} as g${index}, `)
    .join('');
  const names = groups.map((_, index) => `g${index}`);
  const only = [
    ...(range.model === undefined ? [] : [`model = ${bind(range.model)}`]),
    ...(range.key === undefined ? [] : [`key_id = ${bind(range.key)}`]),
    ...(range.projects === undefined
      ? []
      : [`key_id in (${keysOfProjects(bind(range.account_id), bind(range.projects))})`]),
    ...(range.models === undefined ? [] : [isOneOf(range.models, bind)]),
  ];
  const rows = await db.query<Summed>(
    `with ended as (${ended}),
     scored as (${scoresIn(range, range.feedback ?? default_metric, bind)}),
     grouped as (select ${columns}e.*, coalesce(s.score, 0) as score, coalesce(s.scores, 0) as scores from ended e
        left join scored s on s.account_id = e.account_id and s.reference_id = e.id ${groups.includes('tag') ? 'left join lateral tags_in(metadata) t on true' : ''}
        where ${only.join(' and ') || 'true'})
     select ${names.map((name) => `${name}, `).join('')}count(*)::integer as count,
        (count(*) filter (where not is_ok))::integer as failed,
        percentile_cont(array[0.5, 0.95]) within group (order by first_ms) filter (where is_ok) as first,
        percentile_cont(array[0.5, 0.95]) within group (order by total_ms) filter (where is_ok) as total,
        percentile_cont(0.5) within group (order by output_tokens * 1000.0 / (total_ms - first_ms))
          filter (where is_ok and output_tokens > 1 and total_ms - first_ms >= ${streamed_ms_min}) as tokens_per_second,
        sum(scores)::integer as feedback_count, sum(score) / nullif(sum(scores), 0) as feedback_score
       from grouped ${names.length > 0 ? `group by ${names.join(', ')}` : 'having count(*) > 0'}
      order by count desc${names.map((name) => `, ${name}`).join('')} limit ${rows_max}`,
    values,
  );
  return rows.map((row) => speedRow(row, groups.length));
}

function isOneOf({ ids, prefixes }: NonNullable<SpeedRange['models']>, bind: Bind): string {
  const begins = `exists (select 1 from unnest(${bind(prefixes)}::text[]) p (prefix) where starts_with(model, p.prefix))`;
  return `(model = any(${bind(ids)}) or ${begins})`;
}

/** An answer that came at once, and one that was not streamed, say nothing about tokens per second. */
const streamed_ms_min = 50;

type Summed = { [name: `g${number}`]: string } & {
  count: number;
  failed: number;
  first: (number | null)[] | null;
  total: (number | null)[] | null;
  tokens_per_second: number | null;
  feedback_count: number;
  feedback_score: number | null;
};

function speedRow(row: Summed, groups: number): SpeedRow {
  const { count, failed, first, total, tokens_per_second, feedback_count, feedback_score } = row;
  const whole = (value: number | null | undefined) => (value == null ? null : Math.round(value));
  return {
    names: Array.from({ length: groups }, (_, index) => row[`g${index}`] ?? ''),
    count,
    failed,
    first_p50_ms: whole(first?.[0]),
    first_p95_ms: whole(first?.[1]),
    total_p50_ms: whole(total?.[0]),
    total_p95_ms: whole(total?.[1]),
    tokens_per_second: tokens_per_second === null ? null : Math.round(tokens_per_second * 10) / 10,
    feedback_count,
    feedback_score: feedback_score === null ? null : Math.round(feedback_score * 1_000) / 1_000,
  };
}

/** Returns a select of ended calls. What the caller got wrong, or did not wait for, says nothing about a model. */
function endedCalls(range: EndedRange, bind: Bind): string {
  const { account_id, from, to } = range;
  const place = account_id === undefined ? '' : `account_id = ${bind(account_id)} and ${idsOf('req', range, bind)} and`;
  return `select account_id, id, created_at as at, model, key_id, status < 400 as is_ok, first_content_ms as first_ms,
      total_ms::float8 as total_ms, output_tokens, end_user, metadata, attempts -> -1 ->> 'route' as route
    from chat_calls
   where ${place} created_at >= ${bind(from)} and created_at < ${bind(to)}
     and (status < 400 or status >= 500 or status = 429)`;
}
