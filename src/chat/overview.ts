import type { Queryable } from '../db/database.ts';

export type ChatsOverview = { calls: number; failed: number; p50_ms: number | null; p95_ms: number | null };

/** Returns the counts and times of the chat calls of all accounts since then; times are those to the first content. */
export async function chatsOverview(db: Queryable, since: Date): Promise<ChatsOverview> {
  const rows = await db.query<{ calls: bigint; failed: bigint; p50: number | null; p95: number | null }>(
    `select count(*) as calls, count(*) filter (where status >= 500) as failed,
            percentile_cont(0.5) within group (order by first_content_ms) as p50,
            percentile_cont(0.95) within group (order by first_content_ms) as p95
       from chat_calls where created_at >= $1`,
    [since],
  );
  const row = rows[0];
  const whole = (value: number | null | undefined) => (value == null ? null : Math.round(value));
  return {
    calls: Number(row?.calls ?? 0),
    failed: Number(row?.failed ?? 0),
    p50_ms: whole(row?.p50),
    p95_ms: whole(row?.p95),
  };
}
