import type { Queryable } from './database.ts';

/** Rows to compare, as `select id, cost, created_at, … from … where …`, conditions of the list, and the values of both. */
export type ComparedRows = { rows: string; only: string; values: readonly unknown[] };

/** Ids of the rows with the highest cost, first; how many rows were compared, and since when those were made. */
export type HighestCost = { ids: readonly string[]; compared: number; since: Date | null };

/** Finds the rows with the highest cost among the newest `compared_max`: however many there are, it reads no more. */
export async function highestCostIds(
  db: Queryable,
  { rows, only, values }: ComparedRows,
  { limit, compared_max }: { limit: number; compared_max: number },
): Promise<HighestCost> {
  const [limit_at, max_at] = [values.length + 1, values.length + 2];
  const answers = await db.query<HighestCost>(
    `with newest as materialized (${rows} order by id desc limit $${max_at})
     select array(select id from newest where ${only} order by cost desc, id desc limit $${limit_at}) as ids,
        count(*)::integer as compared, min(created_at) as since from newest`,
    [...values, limit, compared_max],
  );
  return answers[0] ?? { ids: [], compared: 0, since: null };
}
