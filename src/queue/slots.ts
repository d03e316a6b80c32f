import { setTimeout as sleep } from 'node:timers/promises';
import { failpoint } from '../lib/failpoint.ts';
import { Alarms } from './alarms.ts';
import type { ThrottledLog } from './throttled-log.ts';
import type { Claim, Handler, Outcome, Settlement } from './job.ts';
import { claimKey, type ClaimName } from './pgboss-tables.ts';

export type SlotsOptions = {
  queue: string;
  /** Number of jobs of this queue that run here at once. */
  slots: number;
  handler: Handler;
  fetch(queue: string, count: number): Promise<Claim[]>;
  settle(queue: string, claim: Claim, settlement: Settlement): Promise<void>;
  throttled_log: ThrottledLog;
  /** A job that takes longer hangs: it loses its claim and its slot, so that it runs again, here or elsewhere. */
  limit_ms?: number | undefined;
};

/** One claim in one slot, from its fetch until its outcome is recorded. */
type Run = {
  claim: Claim;
  abort: AbortController;
  /** Time at which the database last confirmed the claim; taken before the statement was sent. */
  alive_at_ms: number;
  /** The handler is running and the claim is ours, as far as we know. */
  held: boolean;
  ended: Promise<void>;
  /** Resolves when nobody waits for the handler any more. */
  abandoned: Promise<undefined>;
};

/**
 * A fetch that found less than it asked for is followed by the next one no sooner than this: a
 * storm of wakes costs 200 fetches per second, and a lone wake costs no delay.
 */
const fetch_gap_ms = 5;

const back_off_min_ms = 1_000;
const back_off_max_ms = 30_000;

/** The slots of one queue: fetches as many jobs as there are free slots, and settles each by itself. */
export class Slots {
  readonly queue: string;
  readonly #options: SlotsOptions;
  readonly #alarms: Alarms;
  readonly #runs = new Set<Run>();
  /** The newest run per job: a job that comes back while its old handler still runs waits for it. */
  readonly #newest = new Map<string, Run>();
  #is_fetch_due = false;
  #fetching: Promise<void> | undefined;
  #next_fetch_at_ms = 0;
  #paused = false;
  #closed = false;

  constructor(options: SlotsOptions) {
    this.queue = options.queue;
    this.#options = options;
    this.#alarms = new Alarms(() => this.wake());
  }

  /** There may be a job that is due. */
  wake(): void {
    this.#is_fetch_due = true;
    this.#fill();
  }

  /** There will be a job that is due after this time. */
  wakeAfter(after_ms: number): void {
    if (!this.#closed) this.#alarms.set(after_ms);
  }

  hasFreeSlot(): boolean {
    return !this.#closed && !this.#paused && this.#free() > 0;
  }

  /** Paused, it fetches nothing more until it goes on; what it has in hand ends as ever. */
  pause(paused: boolean): void {
    if (this.#paused === paused) return;
    this.#paused = paused;
    if (!paused) this.wake();
  }

  /** Number of jobs in hand. */
  get count(): number {
    return this.#runs.size;
  }

  /** Fetches nothing more. */
  close(): void {
    this.#closed = true;
    this.#alarms.clear();
  }

  /** Resolves when no job is running and every outcome is recorded. */
  async idle(): Promise<void> {
    await this.#fetching;
    while (this.#runs.size > 0) await Promise.all([...this.#runs].map((run) => run.ended));
  }

  abort(reason: Error): void {
    for (const run of this.#runs) run.abort.abort(reason);
  }

  /** Puts the jobs of handlers that have not ended back into the queue. */
  async returnJobs(): Promise<void> {
    await Promise.all([...this.#runs].filter((run) => run.held).map((run) => this.#settle(run, { fate: 'returned' })));
  }

  /** The claims whose handlers are running: to be touched. */
  held(): ClaimName[] {
    return [...this.#runs]
      .filter((run) => run.held)
      .map(({ claim }) => ({ queue: this.queue, id: claim.id, retry_count: claim.retry_count }));
  }

  /** `asked_at_ms` is when the touch of `touched` was sent, `ours` what it found to be ours still. */
  touched(sent_at_ms: number, touched: readonly ClaimName[], ours: ReadonlySet<string>): void {
    const touched_keys = new Set(touched.map(claimKey));
    for (const run of this.#runs) {
      const key = claimKey(run.claim);
      if (!run.held || !touched_keys.has(key)) continue;
      if (ours.has(key)) run.alive_at_ms = sent_at_ms;
      else this.#lose(run, 'the job belongs to another worker now');
    }
  }

  /** Without an answer from the database for a whole heartbeat, others may run our jobs. */
  loseSilent(): void {
    for (const run of this.#runs) {
      const silent_ms = performance.now() - run.alive_at_ms;
      if (run.held && silent_ms > run.claim.heartbeat_s * 1000)
        this.#lose(run, 'the database could not be told in time');
    }
  }

  #free(): number {
    return this.#options.slots - this.#runs.size;
  }

  #fill(): void {
    if (this.#fetching || this.#paused || this.#closed || !this.#is_fetch_due || this.#free() <= 0) return;
    this.#fetching = this.#fetchDue().finally(() => {
      this.#fetching = undefined;
      this.#fill(); // somebody may have woken us since the last look
    });
  }

  async #fetchDue(): Promise<void> {
    while (this.#is_fetch_due && this.hasFreeSlot()) {
      const gap_ms = this.#next_fetch_at_ms - performance.now();
      if (gap_ms > 0) await sleep(gap_ms);
      if (this.#closed || this.#paused) return;
      this.#is_fetch_due = false;
      const count = this.#free();
      const sent_at_ms = performance.now();
      try {
        const claims = await this.#options.fetch(this.queue, count);
        if (claims.length > 0) await failpoint('job.fetched');
        for (const claim of claims) this.#start(claim, sent_at_ms);
        this.#is_fetch_due ||= claims.length === count;
        this.#next_fetch_at_ms = claims.length === count ? 0 : sent_at_ms + fetch_gap_ms;
      } catch (error) {
        this.#options.throttled_log.error(`jobs of ${this.queue} cannot be fetched`, error);
        return; // the next poll asks again
      }
    }
  }

  #start(claim: Claim, alive_at_ms: number): void {
    const before = this.#newest.get(claim.id);
    if (before) this.#lose(before, 'the job was taken from this worker and came back to it');
    const { promise: abandoned, resolve: abandon } = Promise.withResolvers<undefined>();
    const ended = Promise.resolve();
    const run: Run = { claim, abort: new AbortController(), alive_at_ms, held: true, ended, abandoned };
    this.#runs.add(run);
    this.#newest.set(claim.id, run);
    const { limit_ms } = this.#options;
    const giveUp = () => {
      this.#lose(run, `it was not over after ${(limit_ms ?? 0) / 1000} s`);
      abandon(undefined);
    };
    const timer = limit_ms === undefined ? undefined : setTimeout(giveUp, limit_ms);
    run.ended = this.#work(run, before?.ended).finally(() => {
      clearTimeout(timer);
      this.#runs.delete(run);
      if (this.#newest.get(claim.id) === run) this.#newest.delete(claim.id);
      this.#fill();
    });
  }

  async #work(run: Run, before: Promise<void> | undefined): Promise<void> {
    await before;
    if (this.#closed) return await this.#settle(run, { fate: 'returned' });
    if (!run.held) return; // lost while it waited
    try {
      const handling = this.#options.handler({
        id: run.claim.id,
        queue: this.queue,
        data: run.claim.data,
        attempt: run.claim.retry_count,
        signal: run.abort.signal,
      });
      const result = await (this.#options.limit_ms === undefined ? handling : Promise.race([handling, run.abandoned]));
      if (result !== undefined) await this.#settle(run, asSettlement(result));
    } catch (error) {
      if (this.#closed && run.abort.signal.aborted) return await this.#settle(run, { fate: 'returned' });
      if (run.held) this.#options.throttled_log.error(`a job of ${this.queue} failed`, error);
      await this.#settle(run, asFailure(run.claim, error));
    }
  }

  async #settle(run: Run, settlement: Settlement): Promise<void> {
    if (!run.held) return; // lost, or given back: what comes of it is the next worker's to tell
    run.held = false;
    await failpoint('job.settling');
    await this.#options.settle(this.queue, run.claim, settlement);
    await failpoint('job.settled');
    if (settlement.fate === 'again' || settlement.fate === 'failed') this.wakeAfter(settlement.delay_ms);
  }

  #lose(run: Run, reason: string): void {
    if (!run.held) return;
    run.held = false;
    run.abort.abort(new Error(reason));
    this.#options.throttled_log.warn(`a job of ${this.queue} was lost`, { id: run.claim.id, reason });
  }
}

function asSettlement(result: Outcome): Settlement {
  if (result === 'done') return { fate: 'done' };
  if ('defer_ms' in result) return { fate: 'deferred', delay_ms: Math.max(0, result.defer_ms) };
  return { fate: 'again', delay_ms: Math.max(0, result.again_after_ms) };
}

function asFailure(claim: Claim, error: unknown): Settlement {
  const ceiling_ms = Math.min(back_off_max_ms, back_off_min_ms * 2 ** Math.min(claim.retry_count, 10));
  const message = error instanceof Error ? error.message : String(error);
  return { fate: 'failed', delay_ms: ceiling_ms * (0.75 + Math.random() / 4), reason: message.slice(0, 500) };
}
