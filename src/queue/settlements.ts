import { setImmediate, setTimeout } from 'node:timers/promises';
import type { JobQueue } from './pg-boss.ts';
import type { ThrottledLog } from './throttled-log.ts';
import type { Claim, Settlement } from './job.ts';
import { deferClaims, type Deferral } from './pgboss-tables.ts';

/** More than this per statement gains nothing: 500 deletes take 8 ms. */
const batch_max = 500;

const retry_ms = 250;

type Item = { claim: Claim; settlement: Settlement; recorded: () => void };

/** The settlements of a queue that one statement records together. */
type Backlog = { queue: string; record: (items: Item[]) => Promise<void>; waiting: Item[]; running: boolean };

/**
 * Writes down how jobs ended. What becomes ready while a statement is under way goes into the next
 * one, so a busy queue settles in batches and a lone job at once. While the database is away the
 * items wait; each is safe to repeat, because a statement touches only claims that are still ours.
 */
export class Settlements {
  readonly #job_queue: JobQueue;
  readonly #throttled_log: ThrottledLog;
  readonly #backlogs = new Map<string, Backlog>();
  #closed = false;

  constructor(job_queue: JobQueue, throttled_log: ThrottledLog) {
    this.#job_queue = job_queue;
    this.#throttled_log = throttled_log;
  }

  /** Resolves when the settlement stands in the database. */
  settle(queue: string, claim: Claim, settlement: Settlement): Promise<void> {
    return new Promise((recorded) => {
      const backlog = this.#backlog(queue, settlement.fate === 'done');
      backlog.waiting.push({ claim, settlement, recorded });
      if (!backlog.running) void this.#run(backlog);
    });
  }

  /** Gives up on what could not be recorded; the heartbeat brings those jobs back. */
  close(): void {
    this.#closed = true;
  }

  #backlog(queue: string, done: boolean): Backlog {
    const name = `${done ? 'done' : 'back'} ${queue}`;
    let backlog = this.#backlogs.get(name);
    if (!backlog) {
      const record = (items: Item[]) => (done ? this.#remove(queue, items) : this.#defer(queue, items));
      backlog = { queue, record, waiting: [], running: false };
      this.#backlogs.set(name, backlog);
    }
    return backlog;
  }

  async #run(backlog: Backlog): Promise<void> {
    backlog.running = true;
    await setImmediate(); // what gets ready in the same turn goes along
    while (backlog.waiting.length > 0 && !this.#closed) {
      const items = backlog.waiting.splice(0, batch_max);
      try {
        await backlog.record(items);
        for (const item of items) item.recorded();
      } catch (error) {
        this.#throttled_log.error(`outcomes of ${backlog.queue} cannot be recorded`, error);
        backlog.waiting.unshift(...items);
        await setTimeout(retry_ms);
      }
    }
    backlog.running = false;
  }

  async #remove(queue: string, items: Item[]): Promise<void> {
    await this.#job_queue.remove(
      queue,
      items.map((item) => item.claim),
    );
  }

  async #defer(queue: string, items: Item[]): Promise<void> {
    await deferClaims(this.#job_queue, queue, items.flatMap(asDeferral));
  }
}

function asDeferral({ claim, settlement }: Item): Deferral[] {
  const name = { id: claim.id, retry_count: claim.retry_count };
  if (settlement.fate === 'done') return [];
  if (settlement.fate === 'returned') return [{ ...name, fate: settlement.fate, delay_ms: 0, output: null }];
  const output = settlement.fate === 'failed' ? { message: settlement.reason } : null;
  return [{ ...name, fate: settlement.fate, delay_ms: settlement.delay_ms, output }];
}
