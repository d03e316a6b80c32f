import { withConnection, type Db } from '../../src/db/database.ts';

/** Runs `work` while nobody reads or writes this table: statements that want to wait, and end by their own limits. */
export async function whileLocked(db: Db, table: string, work: () => Promise<void>): Promise<void> {
  await withConnection(db, async (client) => {
    await client.query('begin');
    await client.query(`lock table ${table} in access exclusive mode`);
    await work();
    await client.query('rollback');
  });
}
