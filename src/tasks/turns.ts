import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine, Handler, Job, Outcome } from '../queue/queue.ts';
import { makeFairGate } from '../lib/gate.ts';
import { readRef } from './task.ts';

/** What an account's quick tasks wait for a place at most, in a slot; whatever finds none stands in line, without one. */
const patience_ms = 250;

/**
 * Jobs in line look again by themselves, since nodes die and lines with them; most are called long before. By the
 * length of the line, so that all looks of an account are about 100 a second: of 12,000 or 30,000 jobs 300 did in the
 * busiest second, where 12,000 that looked after 1 to 10 s kept all slots and let no other account's job begin.
 */
const look_again_ms = 15_000;
const look_again_ms_per_job = 10;

/** Who has not looked again so long after its time is somewhere else. */
const late_ms = 30_000;

/** A call is a pass over all jobs of the queue: 5 ms for 10,000. */
const gather_ms = 50;

/** Whoever is called comes 5 to 25 ms later, unless another node has just fetched it. */
const hold_ms = 1_000;

/** So long a job that was put back may not be in the queue yet: 30,000 at once take 80 ms each to be written down. */
const written_ms = 1_000;

/** When a job was put back, and when it is to look again. */
type PutBack = { at_ms: number; back_at_ms: number };

/** The jobs of one account that found no place, by their keys, in the order in which they came. */
type Line = Map<string, PutBack>;

/** A place that is kept for a job in line. */
type Call = { put_back_at_ms: number; leave: () => void; timer: NodeJS.Timeout };

/**
 * The places of one queue of tasks, on this node. No account has all of them, and its jobs get theirs in the order in
 * which they came: one that finds no place goes back to the queue, behind its account's line, and is called when its
 * turn has come. A place that falls free is used 55 to 75 ms later; another account's job begins at once, beside
 * 30,000 in line, and 2 or 6 s after 12,000 or 30,000 that come at the same moment.
 */
export class Turns {
  readonly #engine: Pick<Engine, 'hasten'>;
  readonly #queue: string;
  readonly #handler: Handler;
  readonly #gate;
  readonly #lines = new Map<string, Line>();
  readonly #called = new Map<string, Call>();
  readonly #stopping = new AbortController();
  /** The keys of those that are called, but not brought forward yet. */
  #gathered: string[] = [];

  constructor(engine: Pick<Engine, 'hasten'>, queue: string, places: number, handler: Handler) {
    this.#engine = engine;
    this.#queue = queue;
    this.#handler = handler;
    this.#gate = makeFairGate(places);
  }

  /** Works on the job, or puts it back. */
  async take(job: Job): Promise<Outcome> {
    const { account_id, task_id: key } = readRef(job.data); // the key of every job of a task
    const call = this.#called.get(key);
    if (call) return this.#workInPlace(key, call, job);
    const line = this.#lines.get(account_id);
    if (line) return putBack(line, key);
    const outcome = await this.#gate.runWithin(patience_ms, account_id, () => this.#handler(job));
    return outcome ?? putBack(this.#lineOf(account_id), key);
  }

  /** Calls nobody any more. */
  stop(): void {
    this.#stopping.abort();
    for (const key of this.#called.keys()) this.#giveUp(key);
  }

  async #workInPlace(key: string, { leave, timer }: Call, job: Job): Promise<Outcome> {
    this.#called.delete(key);
    clearTimeout(timer);
    try {
      return await this.#handler(job);
    } finally {
      leave();
    }
  }

  #lineOf(account_id: string): Line {
    const there = this.#lines.get(account_id);
    if (there) return there;
    const line: Line = new Map();
    this.#lines.set(account_id, line);
    this.#gate.dismiss(account_id); // whoever came later stands behind
    void this.#lead(account_id, line);
    return line;
  }

  /** Waits at the gate in place of the line, and calls one job for each place that falls free. */
  async #lead(account_id: string, line: Line): Promise<void> {
    do {
      const { promise, resolve } = Promise.withResolvers<void>();
      void this.#gate.run(account_id, () => {
        resolve();
        return this.#callFirst(line);
      });
      await promise;
    } while (line.size > 0 && !this.#stopping.signal.aborted);
    this.#lines.delete(account_id);
  }

  /** Keeps a place for the first of the line, until that job has ended or does not come. */
  async #callFirst(line: Line): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    for (const [key, { at_ms, back_at_ms }] of line) {
      line.delete(key);
      if (back_at_ms + late_ms < performance.now()) continue;
      return new Promise((leave) => {
        const timer = setTimeout(() => this.#giveUp(key), hold_ms);
        this.#called.set(key, { put_back_at_ms: at_ms, leave, timer });
        this.#gather(key);
      });
    }
  }

  /** The job is not there: another node has it, or it is over. The place is the next one's. */
  #giveUp(key: string): void {
    const call = this.#called.get(key);
    if (!call) return;
    this.#called.delete(key);
    clearTimeout(call.timer);
    call.leave();
  }

  #gather(key: string): void {
    this.#gathered.push(key);
    if (this.#gathered.length === 1) void this.#hastenGathered();
  }

  async #hastenGathered(): Promise<void> {
    const { signal } = this.#stopping;
    await sleep(gather_ms, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const keys = this.#gathered.filter((key) => this.#called.has(key));
    this.#gathered = [];
    const hastened = await this.#engine.hasten(this.#queue, keys, { here: true }).catch(() => undefined);
    for (const key of keys) {
      const call = this.#called.get(key);
      if (!call || hastened?.has(key)) continue;
      const is_written = call.put_back_at_ms + written_ms < performance.now();
      if (hastened && is_written) this.#giveUp(key);
      else this.#gather(key); // again, as long as its place is kept
    }
  }
}

/** Who is in line keeps its place there, however often it looks. */
function putBack(line: Line, key: string): Outcome {
  const put_back_ms = Math.max(look_again_ms, look_again_ms_per_job * line.size) * (0.75 + Math.random() / 2);
  const at_ms = performance.now();
  line.set(key, { at_ms, back_at_ms: at_ms + put_back_ms });
  return { put_back_ms };
}
