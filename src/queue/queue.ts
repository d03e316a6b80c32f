import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { assert } from '../lib/assert.ts';
import { systemClock, type Clock } from '../lib/clock.ts';
import type { Db, Queryable } from '../db/database.ts';
import { openListener, openNotifier, type Listener, type Notifier } from '../db/notify.ts';
import { retryWhileUnavailable } from '../db/retry-while-unavailable.ts';
import { startJobQueue, type JobQueue, type QueueOptions, type Supervision } from './pg-boss.ts';
import { ThrottledLog, type EngineLog } from './throttled-log.ts';
import type { Handler, JobData } from './job.ts';
import { removeNodes, listNodes, sayAlive, setPaused, type NodeFacts, type NodeView } from './nodes.ts';
import { Settlements } from './settlements.ts';
import { Slots } from './slots.ts';
import {
  backlogOf,
  bringForward,
  promoteDeferred,
  dueQueues,
  insertScheduledJob,
  insertJob,
  liveKeys,
  takeAway,
  touchClaims,
  troubledJobs,
  type Backlog,
  type SendOptions,
  type TroubledJob,
} from './pgboss-tables.ts';

export type { Handler, Job, JobData, Outcome } from './job.ts';
export type { EngineLog } from './throttled-log.ts';
export { live_keys } from './pgboss-tables.ts';
export type { SendOptions } from './pgboss-tables.ts';
export type { NodeView } from './nodes.ts';

export type EngineOptions = {
  db: Db;
  log: EngineLog;
  /** All queues of the service: sending to another one throws. */
  queues: readonly QueueOptions[];
  clock?: Clock;
  /** Shared with other modules of the node; the engine opens its own if there are none. */
  notifier?: Notifier;
  listener?: Listener;
  supervision?: Supervision;
  /** This process in the list of nodes; absent for a command that comes and goes. */
  node?: Pick<NodeFacts, 'role' | 'version'> & Partial<Pick<NodeFacts, 'id'>>;
};

export type StopOptions = {
  /** The whole stop takes no longer than this. */
  timeout_ms?: number;
  /** Running handlers may end by themselves for this long before their signals abort. */
  grace_ms?: number;
};

export type Engine = {
  /**
   * Sends a job in the caller's transaction: it exists if and only if that commits. Call `wake`
   * after the commit, or it starts up to 0.5 s later. Answers the job's id.
   */
  send(tx: Queryable, queue: string, data: JobData, options?: SendOptions): Promise<string | undefined>;
  /**
   * After a commit: there is a job in `queue`. Starts it here at once and tells the other nodes. For
   * a job that is due after `after_ms`: starts it on time if this node works on the queue.
   */
  wake(queue: string, after_ms?: number): void;
  /** Works on `queue` with this many slots; each job ends by itself, whatever the others do. */
  work(queue: string, options: { slots: number; handler: Handler }): void;
  /**
   * Makes a scheduled job, which calls `run` every `every_ms` on one node at a time, never overlapping; a failure is
   * logged and waits for the next time. When its node dies, another one takes over after 13 s at most; and so it does
   * when `run` has not ended after `limit_ms` (default: ten minutes), whatever it waits for. Waits for a database that is
   * away: this node may work on other queues already.
   */
  schedule(
    name: string,
    every_ms: number,
    run: (signal: AbortSignal) => Promise<void>,
    options?: { limit_ms?: number },
  ): Promise<void>;
  /**
   * Starts the deferred jobs of `keys` (of `SendOptions`) at once; answers the keys that had one. `here`: other nodes
   * are not told, so that this one takes nearly all of them.
   */
  promote(queue: string, keys: readonly string[], options?: { here?: boolean }): Promise<Set<string>>;
  /** Returns the backlog of each queue; queues without a job are left out. */
  backlog(): Promise<Backlog[]>;
  /** The processes of the service that were heard of lately. */
  nodes(): Promise<NodeView[]>;
  /**
   * Lets a node take no more jobs, or go on, within a second; upkeep goes on. It holds until the process ends.
   * False if there is no such node.
   */
  pause(tx: Queryable, node_id: string, paused: boolean): Promise<boolean>;
  /** Jobs that may need a person. */
  troubledJobs(): Promise<TroubledJob[]>;
  /** Gives a job back to its queue, to start at once, whoever holds it. False if it is over. */
  requeue(tx: Queryable, job_id: string): Promise<boolean>;
  /** After a commit of `pause` or `requeue`: all nodes look. */
  tellNodes(): void;
  /** Those of `keys` (of `SendOptions`) that have a job waiting, deferred or running. */
  liveKeys(keys: readonly string[]): Promise<Set<string>>;
  /**
   * Fetches nothing more, lets handlers end, then aborts their signals, gives back what is not done
   * so that another node or the next start takes it at once, and closes the engine's connections.
   */
  stop(options?: StopOptions): Promise<void>;
};

const channel = 'engine';
const poll_every_ms = 500;
const touch_every_ms = 3_000;
const touch_retry_ms = 500;
const scheduled_check_every_ms = 60_000;
const alive_every_ms = 2_000;

/** Its node says that it is alive, which says nothing of a scheduled job that waits for what never comes. */
const scheduled_limit_ms = 600_000;

/** On the channel of wakes: no queue, but a reason to look whether this node is paused. */
const node_changed = 'node';

/** Starts pg-boss on `db` and makes all queues. Several nodes may do so at the same time. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const throttled_log = new ThrottledLog(options.log);
  const supervision = options.supervision ?? { supervise_s: 1, monitor_s: 2 };
  const job_queue = await startJobQueue(options.db, options.queues, supervision, throttled_log);
  return new PgBossEngine(options, job_queue, throttled_log);
}

class PgBossEngine implements Engine {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #job_queue: JobQueue;
  readonly #throttled_log: ThrottledLog;
  readonly #settlements: Settlements;
  readonly #slots = new Map<string, Slots>();
  readonly #scheduled = new Map<string, number>();
  readonly #notifier: Notifier;
  readonly #listener: Listener;
  readonly #node: NodeFacts | undefined;
  readonly #owned: { close(): Promise<void> }[] = [];
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #stopping = new AbortController();
  #unsubscribe = () => {};
  #stopped: Promise<void> | undefined;

  constructor(options: EngineOptions, job_queue: JobQueue, throttled_log: ThrottledLog) {
    const onError = (error: Error) => throttled_log.error('a NOTIFY connection failed', error);
    this.#db = options.db;
    this.#clock = options.clock ?? systemClock;
    this.#job_queue = job_queue;
    this.#throttled_log = throttled_log;
    this.#settlements = new Settlements(job_queue, throttled_log);
    this.#node = options.node && { id: randomUUID(), host: hostname(), pid: process.pid, ...options.node };
    if (this.#node) this.#every(alive_every_ms, () => this.#sayAlive());
    void this.#sayAlive();
    this.#notifier = options.notifier ?? this.#own(openNotifier(options.db, { onError }));
    this.#listener = options.listener ?? this.#own(openListener(options.db, { onError }));
  }

  async send(tx: Queryable, queue: string, data: JobData, options: SendOptions = {}): Promise<string | undefined> {
    const id = await insertJob(tx, queue, data, options);
    const after_ms = options.at ? options.at.getTime() - this.#clock.now() : (options.after_ms ?? 0);
    if (after_ms > 0) this.#slots.get(queue)?.wakeAfter(after_ms);
    return id;
  }

  wake(queue: string, after_ms = 0): void {
    const slots = this.#slots.get(queue);
    if (after_ms > 0) return slots?.wakeAfter(after_ms);
    slots?.wake();
    this.#notifier.notify(channel, queue);
  }

  work(queue: string, options: { slots: number; handler: Handler; limit_ms?: number }): void {
    assert(!this.#slots.has(queue), `the queue ${queue} has a handler already`);
    assert(!this.#stopped, 'the engine has stopped');
    const slots = new Slots({
      queue,
      ...options,
      fetch: (name, count) => this.#job_queue.fetch(name, count),
      settle: (name, claim, settlement) => this.#settlements.settle(name, claim, settlement),
      throttled_log: this.#throttled_log,
    });
    if (this.#slots.size === 0) this.#startWorking();
    this.#slots.set(queue, slots);
    slots.wake();
    void this.#takeUp(queue);
  }

  async schedule(
    name: string,
    every_ms: number,
    run: (signal: AbortSignal) => Promise<void>,
    { limit_ms = scheduled_limit_ms }: { limit_ms?: number } = {},
  ): Promise<void> {
    const queue = `duty.${name}`;
    await retryWhileUnavailable(async () => {
      await this.#job_queue.makeQueue({ name: queue, policy: 'exclusive' });
      await insertScheduledJob(this.#job_queue, queue, every_ms);
    }, this.#stopping.signal);
    if (this.#scheduled.size === 0) this.#every(scheduled_check_every_ms, () => this.#checkScheduled());
    this.#scheduled.set(queue, every_ms);
    this.work(queue, {
      slots: 1,
      limit_ms,
      handler: async (job) => {
        const begun_at_ms = performance.now();
        try {
          await run(job.signal);
        } catch (error) {
          if (job.signal.aborted) throw error;
          this.#throttled_log.error(`the scheduled job ${name} failed`, error);
        }
        return { again_after_ms: Math.max(0, every_ms - (performance.now() - begun_at_ms)) };
      },
    });
  }

  async promote(queue: string, keys: readonly string[], { here = false } = {}): Promise<Set<string>> {
    const promoted = keys.length === 0 ? new Set<string>() : await bringForward(this.#db, queue, keys);
    if (promoted.size === 0) return promoted;
    if (here) this.#slots.get(queue)?.wake();
    else this.wake(queue);
    return promoted;
  }

  backlog(): Promise<Backlog[]> {
    return backlogOf(this.#db);
  }

  nodes(): Promise<NodeView[]> {
    return listNodes(this.#db);
  }

  pause(tx: Queryable, node_id: string, paused: boolean): Promise<boolean> {
    return setPaused(tx, node_id, paused);
  }

  troubledJobs(): Promise<TroubledJob[]> {
    return troubledJobs(this.#db);
  }

  async requeue(tx: Queryable, job_id: string): Promise<boolean> {
    return (await takeAway(tx, job_id)) !== undefined;
  }

  tellNodes(): void {
    void this.#sayAlive();
    for (const queue of [node_changed, ...this.#slots.keys()]) this.wake(queue);
  }

  liveKeys(keys: readonly string[]): Promise<Set<string>> {
    return liveKeys(this.#db, keys);
  }

  stop(options: StopOptions = {}): Promise<void> {
    this.#stopped ??= this.#stop(options);
    return this.#stopped;
  }

  async #stop({ timeout_ms = 5_000, grace_ms = 0.4 * timeout_ms }: StopOptions): Promise<void> {
    this.#stopping.abort();
    const deadline_ms = performance.now() + timeout_ms;
    const left_ms = () => Math.max(0, deadline_ms - performance.now());
    const all = [...this.#slots.values()];
    for (const slots of all) slots.close();
    const idle = Promise.all(all.map((slots) => slots.idle()));
    await waitAtMost(Math.min(grace_ms, left_ms()), idle);
    for (const slots of all) slots.abort(new Error('the engine is stopping'));
    await waitAtMost(0.5 * left_ms(), idle);
    await waitAtMost(0.5 * left_ms(), Promise.all(all.map((slots) => slots.returnJobs())));
    this.#settlements.close();
    this.#unsubscribe();
    for (const timer of this.#timers) clearInterval(timer);
    for (const slots of all) this.#notifier.notify(channel, slots.queue);
    if (this.#node) await waitAtMost(0.2 * left_ms(), removeNodes(this.#job_queue, this.#node.id));
    await waitAtMost(left_ms(), Promise.all([this.#job_queue.stop(), ...this.#owned.map((part) => part.close())]));
  }

  /** Brings deferred jobs forward: other nodes' jobs may fit here, and after a restart nobody else knows of them. */
  async #takeUp(queue: string): Promise<void> {
    try {
      await promoteDeferred(this.#job_queue, queue);
      this.#slots.get(queue)?.wake();
    } catch (error) {
      if (!this.#stopped) this.#throttled_log.error(`deferred jobs of ${queue} start late`, error);
    }
  }

  #own<T extends { close(): Promise<void> }>(part: T): T {
    this.#owned.push(part);
    return part;
  }

  #startWorking(): void {
    this.#every(poll_every_ms, () => this.#poll());
    this.#every(touch_every_ms, () => this.#touch());
    const subscription = {
      onPayload: (queue: string) => (queue === node_changed ? void this.#sayAlive() : this.#slots.get(queue)?.wake()),
      onGap: () => void this.#poll(),
    };
    void this.#listener.subscribe(channel, subscription).then((unsubscribe) => (this.#unsubscribe = unsubscribe));
  }

  /** Runs `work` again and again, never overlapping with itself. */
  #every(interval_ms: number, work: () => Promise<void>): void {
    let running = false;
    const timer = setInterval(() => {
      if (running) return;
      running = true;
      void work().finally(() => {
        running = false;
      });
    }, interval_ms);
    this.#timers.add(timer);
  }

  /** The net under all wakes: jobs of other nodes, jobs that came due, jobs of dead workers. */
  async #poll(): Promise<void> {
    const queues = [...this.#slots.values()].filter((slots) => slots.hasFreeSlot()).map((slots) => slots.queue);
    if (queues.length === 0) return;
    try {
      for (const queue of await dueQueues(this.#job_queue, queues)) this.#slots.get(queue)?.wake();
    } catch (error) {
      this.#throttled_log.error('the poll for jobs failed', error);
    }
  }

  /** Says that all jobs in hand are alive, in one statement; lets go of those that are not ours. */
  async #touch(): Promise<void> {
    for (;;) {
      const all = [...this.#slots.values()];
      const claims = all.flatMap((slots) => slots.held());
      if (claims.length === 0) return;
      try {
        const sent_at_ms = performance.now();
        const ours = await touchClaims(this.#job_queue, claims);
        for (const slots of all) slots.touched(sent_at_ms, claims, ours);
        return;
      } catch (error) {
        this.#throttled_log.error('heartbeats cannot be written', error);
        for (const slots of all) slots.loseSilent();
        await sleep(touch_retry_ms);
        if (this.#stopped) return;
      }
    }
  }

  /** Tells that this node is alive and what it has in hand, and does what operators want of it. */
  async #sayAlive(): Promise<void> {
    if (!this.#node || this.#stopped) return;
    const busy = [...this.#slots.values()].filter(({ count }) => count > 0);
    try {
      const running = Object.fromEntries(busy.map(({ queue, count }) => [queue, count]));
      const paused = await sayAlive(this.#job_queue, this.#node, running);
      // Upkeep finds what was forgotten, also while everybody rests.
      for (const slots of this.#slots.values()) if (!this.#scheduled.has(slots.queue)) slots.pause(paused);
    } catch (error) {
      if (!this.#stopped) this.#throttled_log.error('this node cannot say that it is alive', error);
    }
  }

  /** A scheduled job cannot get lost by a crash, but by a restored backup or an operator's hand. */
  async #checkScheduled(): Promise<void> {
    try {
      for (const [queue, every_ms] of this.#scheduled) await insertScheduledJob(this.#job_queue, queue, every_ms);
    } catch (error) {
      this.#throttled_log.error('the scheduled jobs cannot be checked', error);
    }
  }
}

/** Waits for `work`, but not longer than `limit_ms`; whoever else waits hears of its failure. */
async function waitAtMost(limit_ms: number, work: Promise<unknown>): Promise<void> {
  const limit = new AbortController();
  const timeout = sleep(limit_ms, undefined, { signal: limit.signal }).catch(() => {});
  await Promise.race([work.catch(() => {}), timeout]);
  limit.abort();
}
