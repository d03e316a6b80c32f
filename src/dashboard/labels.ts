import type { Queryable } from '../db/database.ts';
import { is_readable_metadata } from '../money/usage.ts';

/** Newest tasks, and newest calls, whose labels are looked at. */
const looked_at = 1_000;
const names_max = 50;

/** Returns the names of metadata on the account's newest calls and tasks, each once, by the alphabet. */
export async function pairNames(db: Queryable, account_id: string): Promise<string[]> {
  const rows = await db.query<{ name: string }>(
    `select distinct name from (
       select jsonb_object_keys(c.metadata) as name from (
         select metadata from chat_calls where account_id = $1 order by id desc limit ${looked_at}) c
       union
       select json_object_keys(t.metadata::json) from (
         select metadata from tasks where account_id = $1 order by id desc limit ${looked_at}) t
        where ${is_readable_metadata}) n
      where length(name) between 1 and 64 and name <> 'tags' and name !~ ',' order by name limit ${names_max}`,
    [account_id],
  );
  return rows.map(({ name }) => name);
}
