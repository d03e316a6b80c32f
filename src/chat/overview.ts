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

/** Work of an account since a time. `failed`: by an upstream, or by the service itself. */
export type Outcomes = { account_id: string; ended: number; failed: number };

/** Counts the chat calls since then by account: of all accounts, or of these. */
export async function callOutcomes(db: Queryable, since: Date, account_ids?: readonly string[]): Promise<Outcomes[]> {
  const rows = await db.query<{ account_id: string; ended: bigint; failed: bigint }>(
    `select account_id, count(*) as ended, count(*) filter (where status >= 500) as failed from chat_calls
      where created_at > $1 and ($2::text[] is null or account_id = any($2)) group by account_id`,
    [since, account_ids ?? null],
  );
  return rows.map((row) => ({ ...row, ended: Number(row.ended), failed: Number(row.failed) }));
}
