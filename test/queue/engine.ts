import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../../src/db/database.ts';
import { openEngine, type Engine, type EngineOptions } from '../../src/queue/queue.ts';

/** An engine for one test; what it logs lies in `lines`. */
export async function testEngine(
  db: Db,
  queues: string[],
  options: Partial<EngineOptions> = {},
): Promise<Engine & { lines: { message: string; details: object }[] }> {
  const lines: { message: string; details: object }[] = [];
  const note = (details: object, message: string) => {
    // The cluster is shared with other files of tests: theirs are the transactions that are open for long.
    if (!message.includes('transaction horizon is pinned')) lines.push({ message, details });
  };
  const log = { warn: note, error: note };
  const engine = await openEngine({ db, log, queues: queues.map((name) => ({ name })), ...options });
  return Object.assign(engine, { lines });
}

/** Waits until `condition` holds, looking every 10 ms; throws after `limit_ms`. */
export async function until(
  what: string,
  limit_ms: number,
  condition: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadline_ms = performance.now() + limit_ms;
  while (!(await condition())) {
    if (performance.now() > deadline_ms) throw new Error(`not within ${limit_ms} ms: ${what}`);
    await sleep(10);
  }
}

/** A promise that somebody else resolves. */
export function signal<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  return Promise.withResolvers<T>();
}

export async function countJobs(db: Db, queue: string): Promise<number> {
  const rows = await db.query<{ count: bigint }>('select count(*) from pgboss.job where name = $1', [queue]);
  return Number(rows[0]?.count);
}
