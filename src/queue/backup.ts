import type pg from 'pg';
import type { Db } from '../db/database.ts';
import { Complaints, type EngineLog } from './complaints.ts';

/** What a backup keeps of the engine: the queues, and the jobs that are not over. pg-boss makes the rest anew. */
export const kept_tables: readonly string[] = ['pgboss.queue', 'pgboss.job'];

/** The version of pg-boss's tables; null if there are none. */
export async function engineVersion(client: pg.Client): Promise<number | null> {
  const { rows: found } = await client.query<{ there: boolean }>(
    `select to_regclass('pgboss.version') is not null as there`,
  );
  if (!found[0]?.there) return null;
  const { rows } = await client.query<{ version: number }>('select version from pgboss.version');
  return rows[0]?.version ?? null;
}

/** Makes pg-boss's tables, or brings them up to date, without any queue. */
export async function makeEngineTables(db: Db, log: EngineLog): Promise<void> {
  const { startBoss } = await import('./pg-boss.ts'); // 50 modules, which a backup does without
  const boss = await startBoss(db, [], { supervise_s: 60, monitor_s: 60 }, new Complaints(log));
  await boss.stop();
}
