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

/** The longest time in which nothing went on, so far. */
type Standstills = { longestMs(): number; [Symbol.dispose](): void };

/**
 * Measures how long the machine stands still at most, from now until the end of the test: what happens within a time on a
 * machine that goes on may take so much longer on one that does not. With `db`, a question to it is part of each look.
 */
export function watchStandstills(db?: Db): Standstills {
  let longest_ms = 0;
  let looked_at_ms = performance.now();
  let is_over = false;
  const sinceLook = () => Math.max(longest_ms, performance.now() - looked_at_ms);
  const watch = async () => {
    while (!is_over) {
      await sleep(10);
      await db?.query('select 1');
      longest_ms = sinceLook();
      looked_at_ms = performance.now();
    }
  };
  void watch().catch(() => undefined); // the database is away: the time since the last look counts
  return {
    longestMs: sinceLook,
    [Symbol.dispose]: () => {
      is_over = true;
    },
  };
}

/**
 * Puts a job back into a queue that nobody works on yet. A worker that begins makes all due that was put back: it has done
 * so when this one, with `{ earlier: true }`, is its handler's.
 */
export async function deferEarlier(engine: Engine, db: Db, queue: string): Promise<void> {
  await engine.send(db, queue, { earlier: true }, { after_ms: 600_000 });
  await db.query('update pgboss.job set priority = -1 where name = $1', [queue]);
}

/** A promise that somebody else resolves. */
export function signal<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  return Promise.withResolvers<T>();
}

export async function countJobs(db: Db, queue: string): Promise<number> {
  const rows = await db.query<{ count: bigint }>('select count(*) from pgboss.job where name = $1', [queue]);
  return Number(rows[0]?.count);
}
