import type { Queryable } from '../db/database.ts';

/** Calls in which a route gave no answer, by the route and why. */
export type ChatFailures = {
  route: string;
  /** `not_started`: before its first word, so another route may have answered. `failed`: it broke off. */
  state: 'not_started' | 'failed';
  reason: string | null;
  count: number;
  last_at: Date;
  /** The last one in its own words. */
  example: string | null;
};

/**
 * Counts failures by route and cause since then, most frequent first: attempts, not calls. Errors of the
 * caller are left out.
 */
export async function chatFailuresByRoute(db: Queryable, since: Date): Promise<ChatFailures[]> {
  const rows = await db.query<Omit<ChatFailures, 'count'> & { count: bigint }>(
    `select t.route, t.state, split_part(t.reason_text, ':', 1) as reason, count(*) as count, max(t.at) as last_at,
            (array_agg(t.reason_text order by t.at desc))[1] as example
       from chat_calls c, lateral (
         select a ->> 'route' as route, c.created_at as at,
                case when a ->> 'outcome' = 'failed' then 'not_started' else 'failed' end as state,
                case when a ->> 'outcome' = 'failed' then a ->> 'reason' else c.error_type end as reason_text
           from jsonb_array_elements(c.attempts) as a
          where a ->> 'outcome' = 'failed' or c.status >= 500) as t
      where c.created_at >= $1 and (c.status >= 500 or jsonb_array_length(c.attempts) > 1)
        and t.reason_text is distinct from 'input refused'
      group by 1, 2, 3 order by count(*) desc limit 100`,
    [since],
  );
  return rows.map((row) => ({ ...row, count: Number(row.count) }));
}
