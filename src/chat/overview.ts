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

/** Chat calls of accounts, or of all of them, that began after a time, without those of `models_left_out`. */
export type CallScope = { since: Date; account_ids?: readonly string[]; models_left_out?: readonly string[] };

/** Counts the calls by account that an upstream, or the service itself, failed. Reads no others. */
export async function failedCallsByAccount(db: Queryable, scope: CallScope): Promise<Map<string, number>> {
  const rows = await db.query<{ account_id: string; failed: bigint }>(
    `select account_id, count(*) as failed from chat_calls
      where created_at > $1 and status >= 500 and ($2::text[] is null or account_id = any($2)) and model <> all($3)
      group by account_id`,
    [scope.since, scope.account_ids ?? null, scope.models_left_out ?? []],
  );
  return new Map(rows.map(({ account_id, failed }) => [account_id, Number(failed)]));
}

/** Counts the calls of these accounts since then. */
export async function callsByAccount(
  db: Queryable,
  since: Date,
  account_ids: readonly string[],
): Promise<Map<string, number>> {
  const rows = await db.query<{ account_id: string; calls: bigint }>(
    `select account_id, count(*) as calls from chat_calls where created_at > $1 and account_id = any($2)
      group by account_id`,
    [since, account_ids],
  );
  return new Map(rows.map(({ account_id, calls }) => [account_id, Number(calls)]));
}

/** Counts the calls of all accounts since then, up to `max`: reads no more of them. */
export async function countCalls(
  db: Queryable,
  { since, models_left_out = [] }: Omit<CallScope, 'account_ids'>,
  max: number,
): Promise<number> {
  const rows = await db.query<{ calls: bigint }>(
    `select count(*) as calls
       from (select from chat_calls where created_at > $1 and model <> all($2) order by created_at desc limit $3) c`,
    [since, models_left_out, max],
  );
  return Number(rows[0]?.calls ?? 0);
}
