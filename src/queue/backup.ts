import type { Db } from '../db/database.ts';
import { ThrottledLog, type EngineLog } from './throttled-log.ts';

/** Makes pg-boss's tables, or brings them up to date, without any queue. */
export async function makeEngineTables(db: Db, log: EngineLog): Promise<void> {
  const { startJobQueue } = await import('./pg-boss.ts'); // 50 modules, which a backup does without
  const job_queue = await startJobQueue(db, [], { supervise_s: 60, monitor_s: 60 }, new ThrottledLog(log));
  await job_queue.stop();
}
