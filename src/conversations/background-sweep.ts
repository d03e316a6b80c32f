import type { Logger } from 'pino';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Engine } from '../queue/queue.ts';
import { listForgotten, run_queue } from './background.ts';

type SweepParts = { readonly db: Db; readonly clock: Clock; readonly engine: Engine; readonly log: Logger };

const batch_max = 500;
const grace_ms = 10_000;

/** Gives responses that are not done and have no job one again. Answers how many. */
export async function rescueResponses(parts: SweepParts): Promise<number> {
  const created_before = new Date(parts.clock.now() - grace_ms);
  const forgotten = await parts.db.tx(async (tx) => {
    const names = await listForgotten(tx, created_before, batch_max);
    for (const { account_id, id } of names)
      await parts.engine.send(tx, run_queue, { account_id, task_id: id }, { key: id });
    return names.length;
  });
  if (forgotten > 0) {
    parts.log.warn({ resent: forgotten }, 'responses in the background without a job: sent again');
    parts.engine.wake(run_queue);
  }
  return forgotten;
}
