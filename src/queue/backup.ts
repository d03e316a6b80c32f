import type { Db } from '../db/database.ts';
import { Complaints, type EngineLog } from './complaints.ts';

/** Makes pg-boss's tables, or brings them up to date, without any queue. */
export async function makeEngineTables(db: Db, log: EngineLog): Promise<void> {
  const { startBoss } = await import('./pg-boss.ts'); // 50 modules, which a backup does without
  const boss = await startBoss(db, [], { supervise_s: 60, monitor_s: 60 }, new Complaints(log));
  await boss.stop();
}
