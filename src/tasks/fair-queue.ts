import { setTimeout as sleep } from 'node:timers/promises';
import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import type { Engine, Handler, Job, Outcome } from '../queue/queue.ts';
import { readRef } from './task.ts';

/** Time that a task waits for a slot of its account in a job slot; then it is deferred, and holds none. */
const slot_timeout_ms = 250;

/**
 * Deferred jobs look again by themselves, since nodes die and backlogs with them; most are promoted long before. By the
 * length of the backlog, so that all looks of an account are about 100 a second: of 12,000 or 30,000 jobs 300 did in the
 * busiest second, where 12,000 that looked after 1 to 10 s kept all slots and let no other account's job begin.
 */
const look_again_ms = 15_000;
const look_again_ms_per_job = 10;

/** A job that has not looked again so long after its time is somewhere else. */
const late_ms = 30_000;

/** A promotion is a pass over all jobs of the queue: 5 ms for 10,000. */
const gather_ms = 50;

/** A promoted job comes 5 to 25 ms later, unless another node has just fetched it. */
const hold_ms = 1_000;

/** So long a deferred job may not be in the queue yet: 30,000 at once take 80 ms each to be written down. */
const commit_ms = 1_000;

/** The times at which a job was deferred, and at which it looks again. */
type Deferral = { at_ms: number; due_at_ms: number };

/** The jobs of one account that found no slot, by their keys, in the order in which they came. */
type Backlog = Map<string, Deferral>;

/** A job for which a slot is kept. */
type Promotion = { deferred_at_ms: number; permit: Permit; timer: NodeJS.Timeout };

/**
 * One queue of tasks, on this node. No account has all slots, and its jobs get theirs in the order in which they came:
 * one that finds none goes back to the queue, after its account's backlog, and is promoted when its turn has come. A
 * free slot is used 55 to 75 ms later; another account's job begins at once, beside a backlog of 30,000, and 2 or 6 s
 * after 12,000 or 30,000 that come at the same moment.
 */
export class FairQueue {
  readonly #engine: Pick<Engine, 'promote'>;
  readonly #queue: string;
  readonly #slots: Semaphore;
  readonly #handler: Handler;
  readonly #backlogs = new Map<string, Backlog>();
  readonly #promoted = new Map<string, Promotion>();
  readonly #stopping = new AbortController();
  /** The keys of promoted jobs that were not brought forward in the queue yet. */
  #keys_to_promote: string[] = [];

  constructor(engine: Pick<Engine, 'promote'>, queue: string, slots: Semaphore, handler: Handler) {
    this.#engine = engine;
    this.#queue = queue;
    this.#slots = slots;
    this.#handler = handler;
  }

  /** Works on the job, or defers it. */
  async take(job: Job): Promise<Outcome> {
    const { account_id, task_id: key } = readRef(job.data); // the key of every job of a task
    const promotion = this.#promoted.get(key);
    if (promotion) {
      this.#promoted.delete(key);
      clearTimeout(promotion.timer);
      return this.#work(job, promotion.permit);
    }
    const backlog = this.#backlogs.get(account_id);
    if (backlog) return defer(backlog, key);
    const permit = await this.#slots.acquire(account_id, { timeout_ms: slot_timeout_ms });
    return permit ? this.#work(job, permit) : defer(this.#backlogOf(account_id), key);
  }

  /** Promotes nothing any more. */
  stop(): void {
    this.#stopping.abort();
    for (const key of this.#promoted.keys()) this.#giveUp(key);
  }

  async #work(job: Job, permit: Permit): Promise<Outcome> {
    try {
      return await this.#handler(job);
    } finally {
      permit.release();
    }
  }

  #backlogOf(account_id: string): Backlog {
    const existing = this.#backlogs.get(account_id);
    if (existing) return existing;
    const backlog: Backlog = new Map();
    this.#backlogs.set(account_id, backlog);
    this.#slots.cancelWaiting(account_id); // whoever came later is behind
    void this.#serve(account_id, backlog);
    return backlog;
  }

  /** Waits for slots in place of the backlog, and promotes one job for each. */
  async #serve(account_id: string, backlog: Backlog): Promise<void> {
    do {
      const permit = await this.#slots.acquire(account_id, { signal: this.#stopping.signal });
      if (!permit) return; // everything ends
      this.#promoteFirst(backlog, permit);
    } while (backlog.size > 0);
    this.#backlogs.delete(account_id);
  }

  /** Keeps the slot for the first of the backlog, until that job has ended or does not come. */
  #promoteFirst(backlog: Backlog, permit: Permit): void {
    for (const [key, { at_ms, due_at_ms }] of backlog) {
      backlog.delete(key);
      if (due_at_ms + late_ms < performance.now()) continue;
      const timer = setTimeout(() => this.#giveUp(key), hold_ms);
      this.#promoted.set(key, { deferred_at_ms: at_ms, permit, timer });
      return this.#gather(key);
    }
    permit.release();
  }

  /** The job is not there: another node has it, or it is over. The slot is the next one's. */
  #giveUp(key: string): void {
    const promotion = this.#promoted.get(key);
    if (!promotion) return;
    this.#promoted.delete(key);
    clearTimeout(promotion.timer);
    promotion.permit.release();
  }

  #gather(key: string): void {
    this.#keys_to_promote.push(key);
    if (this.#keys_to_promote.length === 1) void this.#promoteTogether();
  }

  async #promoteTogether(): Promise<void> {
    const { signal } = this.#stopping;
    await sleep(gather_ms, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const keys = this.#keys_to_promote.filter((key) => this.#promoted.has(key));
    this.#keys_to_promote = [];
    const promoted = await this.#engine.promote(this.#queue, keys, { here: true }).catch(() => undefined);
    for (const key of keys) {
      const promotion = this.#promoted.get(key);
      if (!promotion || promoted?.has(key)) continue;
      const is_committed = promotion.deferred_at_ms + commit_ms < performance.now();
      if (promoted && is_committed) this.#giveUp(key);
      else this.#gather(key); // again, as long as its slot is kept
    }
  }
}

/** A job of the backlog keeps its place there, however often it looks. */
function defer(backlog: Backlog, key: string): Outcome {
  const defer_ms = Math.max(look_again_ms, look_again_ms_per_job * backlog.size) * (0.75 + Math.random() / 2);
  const at_ms = performance.now();
  backlog.set(key, { at_ms, due_at_ms: at_ms + defer_ms });
  return { defer_ms };
}
