import type { Db } from '../../src/db/database.ts';
import { newId } from '../../src/lib/ids.ts';

/**
 * Makes many keys of an account at once, as a reseller has them: "Customer 0001" and so on, a minute apart, which end with
 * their number. Every second one is deleted, and every hundredth is in the project. Returns their ids, oldest first.
 */
export async function insertKeys(db: Db, account_id: string, count: number, project_id: string): Promise<string[]> {
  const begin_ms = Date.now() - count * 60_000;
  const ids = Array.from({ length: count }, (_, index) => newId('key', begin_ms + index * 60_000));
  await db.query(
    `insert into api_keys (id, account_id, name, hash, prefix, last_four, created_at, deleted_at)
     select id, $1, 'Customer ' || lpad(n::text, 4, '0'), sha256(id::bytea), 'mdl_Many', lpad(n::text, 4, '0'),
            to_timestamp($3::float8 / 1000) + (n - 1) * interval '1 min', case when n % 2 = 1 then now() end
       from unnest($2::text[]) with ordinality as k (id, n)`,
    [account_id, ids, begin_ms],
  );
  await db.query(
    `insert into budgets (key_id, account_id, month, project_id)
     select id, $1, date_trunc('month', now() at time zone 'UTC'), case when n % 100 = 0 then $3 end
       from unnest($2::text[]) with ordinality as k (id, n)`,
    [account_id, ids, project_id],
  );
  return ids;
}
