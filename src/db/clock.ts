import type { Queryable } from './database.ts';

/** The earlier of two clocks, that of this node and that of the database: what is over by both is over. */
export async function earlierClock(db: Queryable, node: Date): Promise<Date> {
  const rows = await db.query<{ now: Date }>('select now() as now');
  const database = rows[0]?.now ?? node;
  return database < node ? database : node;
}
