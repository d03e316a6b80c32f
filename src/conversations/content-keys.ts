import type { Queryable } from '../db/database.ts';
import { contents } from './removal.ts';

/** More are not counted: a list of millions takes long, and says no more. */
const counted_max = 10_000;

/**
 * Counts rows of stored content by the key that they are encrypted with, null for those that are plain; of each table and
 * key at most 10,000. Rows under `current` are left out. The keys are found by steps in the index, not by reading all rows.
 */
export async function countByKey(db: Queryable, current: string | undefined): Promise<Map<string | null, number>> {
  const counts = new Map<string | null, number>();
  for (const { table } of contents) {
    const rows = await db.query<{ key_id: string | null; count: number }>(
      `with recursive steps(key_id) as (
         (select key_id from ${table} where key_id is not null order by key_id limit 1)
         union all
         select (select t.key_id from ${table} t where t.key_id > steps.key_id order by t.key_id limit 1)
           from steps where steps.key_id is not null)
       select key_id, (select count(*)::int from (select from ${table} t where t.key_id = steps.key_id limit $2) as few) as count
         from steps where key_id is not null and key_id is distinct from $1
       union all
       select null, count(*)::int from (select from ${table} t where t.key_id is null limit $2) as few`,
      [current ?? null, counted_max],
    );
    for (const { key_id, count } of rows) if (count > 0) counts.set(key_id, (counts.get(key_id) ?? 0) + count);
  }
  return counts;
}
