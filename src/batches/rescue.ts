import type { Logger } from 'pino';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Engine } from '../queue/queue.ts';
import { batch_queue, listForgottenBatches } from './batches.ts';

const batch_max = 500;
const grace_ms = 10_000;

/** Gives batches that have not ended and have no job one again. */
export async function rescueBatches(parts: {
  readonly db: Db;
  readonly clock: Clock;
  readonly engine: Engine;
  readonly log: Logger;
}): Promise<void> {
  const created_before = new Date(parts.clock.now() - grace_ms);
  const resent = await parts.db.tx(async (tx) => {
    const names = await listForgottenBatches(tx, created_before, batch_max);
    for (const { account_id, id } of names)
      await parts.engine.send(tx, batch_queue, { account_id, task_id: id }, { key: id });
    return names.length;
  });
  if (resent === 0) return;
  parts.log.warn({ resent }, 'batches without a job: sent again');
  parts.engine.wake(batch_queue);
}
