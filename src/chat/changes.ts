import type { Queryable } from '../db/database.ts';
import { newest_max, type RecentRow, type RecentRows } from '../tasks/changes.ts';

const marked = 50;

/** Returns a mark of each account's newest calls: it changes when a call is added. Accounts without calls have none. */
export async function callMarks(db: Queryable, account_ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.query<{ account_id: string; mark: string | null }>(
    `select a.account_id, (select md5(string_agg(c.id, ',')) from (
       select id from chat_calls where account_id = a.account_id order by id desc limit ${marked}) c) as mark
       from unnest($1::text[]) a (account_id)`,
    [account_ids],
  );
  return new Map(rows.map(({ account_id, mark }) => [account_id, mark ?? '']));
}

/** Returns the newest calls of each account. All have ended. */
export async function recentCalls(db: Queryable, account_ids: readonly string[]): Promise<Map<string, RecentRows>> {
  const rows = await db.query<RecentRow & { account_id: string }>(
    `select a.account_id, c.* from unnest($1::text[]) a (account_id) cross join lateral (
       select id, key_id, 'ended' as status from chat_calls
        where account_id = a.account_id order by id desc limit ${newest_max}) c`,
    [account_ids],
  );
  const of_account = Map.groupBy(rows, ({ account_id }) => account_id);
  return new Map([...of_account].map(([id, newest]) => [id, { newest, unfinished: [] }]));
}
