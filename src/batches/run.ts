import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { callerOfKey, type Caller } from '../accounts/authenticate.ts';
import type { Db } from '../db/database.ts';
import { findFile, type CallerFile } from '../files/files.ts';
import { failpoint } from '../lib/failpoint.ts';
import { newId } from '../lib/ids.ts';
import type { Clock } from '../lib/clock.ts';
import type { Job, Outcome } from '../queue/queue.ts';
import { readRef } from '../tasks/task.ts';
import { beginCalls, beginFiles, claimBatch, endBatch, failBatch, findBatch, type Batch } from './batches.ts';
import { bookAnswered, callLine, type LineParts, type LineRun } from './call.ts';
import { readLines } from './input.ts';
import { endWaiting, insertLines, openLines, deferSent, removeLines, takeLine } from './lines.ts';
import { makeFiles, type OutputParts } from './output.ts';

/** The parts of the app that working on a batch takes. `runs`: aborted when this worker stops. */
export type BatchParts = LineParts &
  OutputParts & {
    readonly db: Db;
    readonly clock: Clock;
    readonly log: Logger;
    readonly runs: AbortSignal;
  };

/** Calls of one batch at the same time. */
const calls_at_once = 4;

/** Time slice of one batch: then others go on. Calls that have begun end first. */
const slice_ms = 20_000;

/** A key that was deleted or limited, or whose account was blocked, is so everywhere within a second. */
const caller_ms_max = 900;

const look_again_ms_max = 30_000;
const busy_wait_ms = 250;

/** Works on a batch for one time slice. Lines that a worker left when it died are deferred, or booked. */
export async function runBatch(parts: BatchParts, job: Job): Promise<Outcome> {
  const { account_id, task_id: id } = readRef(job.data);
  const claim = randomUUID();
  const batch = await claimBatch(parts.db, { account_id, id }, claim);
  if (!batch) return 'done';
  const signal = AbortSignal.any([parts.runs, job.signal]);
  if (signal.aborted) return { again_after_ms: 0 };
  return new BatchSlice(parts, batch, claim, signal).work();
}

/** The work of one time slice on one batch. */
class BatchSlice {
  readonly #parts: BatchParts;
  readonly #batch: Batch;
  readonly #claim: string;
  readonly #signal: AbortSignal;
  readonly #ends_at_ms = performance.now() + slice_ms;
  #caller: Promise<Caller | undefined> | undefined;
  #caller_read_at_ms = 0;

  constructor(parts: BatchParts, batch: Batch, claim: string, signal: AbortSignal) {
    this.#parts = parts;
    this.#batch = batch;
    this.#claim = claim;
    this.#signal = signal;
  }

  async work(): Promise<Outcome> {
    const { db } = this.#parts;
    await deferSent(db, this.#batch, this.#claim, this.#now());
    await bookAnswered(this.#parts, this.#batch);
    if (this.#batch.status === 'validating') return this.#validate();
    if (this.#batch.status === 'in_progress') await this.#makeCalls();
    if (this.#signal.aborted) return { again_after_ms: 0 };
    const batch = await findBatch(db, this.#batch);
    if (!batch || batch.ended_at) return 'done';
    const open = await openLines(db, batch);
    const is_late = batch.expires_at <= this.#now();
    if (batch.status === 'in_progress' && open.count > 0 && !is_late)
      return { again_after_ms: this.#waitMs(open.next_at) };
    if (open.count > 0)
      await endWaiting(db, batch, this.#claim, batch.status === 'cancelling' ? 'batch_cancelled' : 'batch_expired');
    if (open.unbooked > 0) return { again_after_ms: busy_wait_ms }; // only lines that are done are in the files
    return this.#finish();
  }

  #now(): Date {
    return new Date(this.#parts.clock.now());
  }

  #waitMs(next_at: Date | null): number {
    const wait_ms = next_at ? next_at.getTime() - this.#parts.clock.now() : busy_wait_ms;
    return Math.max(0, Math.min(wait_ms, look_again_ms_max));
  }

  /** Reads the input file, whose lines become calls; a worker that died begins again. */
  async #validate(): Promise<Outcome> {
    const { db, storage } = this.#parts;
    await removeLines(db, this.#batch, this.#claim);
    const file = await this.#inputFile();
    const opened = file && (await storage.open(file.storage_key));
    const gone = { code: 'input_file_gone', message: 'The input file is not there any more.', param: null, line: null };
    const read = opened
      ? await readLines(opened.stream, this.#batch.endpoint, (lines) =>
          insertLines(db, this.#batch, this.#claim, lines, this.#now()),
        )
      : { errors: [gone] };
    opened?.stream.destroy();
    if ('errors' in read) await failBatch(db, this.#batch, this.#claim, read.errors, this.#now());
    else await beginCalls(db, this.#batch, this.#claim, read.total, this.#now());
    return { again_after_ms: 0 };
  }

  #inputFile(): Promise<CallerFile | undefined> {
    const { account_id, input_file_id: id } = this.#batch;
    return findFile(this.#parts.db, { account_id, id }, this.#now());
  }

  async #makeCalls(): Promise<void> {
    const { db } = this.#parts;
    const file = await this.#inputFile();
    if (file) await Promise.all(Array.from({ length: calls_at_once }, () => this.#callLines(file)));
    // After the calls that have begun, which end and are charged.
    if (!(await this.#readCaller())) return endWaiting(db, this.#batch, this.#claim, 'api_key_ended');
    if (!file) return endWaiting(db, this.#batch, this.#claim, 'input_file_gone');
  }

  async #callLines(file: CallerFile): Promise<void> {
    const { db } = this.#parts;
    for (;;) {
      while (this.#isCrowded() && this.#goesOn()) await sleep(busy_wait_ms);
      if (!this.#goesOn()) return;
      const caller = await this.#readCaller();
      if (!caller) return;
      const taking = { claim: this.#claim, request_id: newId('req', this.#parts.clock.now()), now: this.#now() };
      const line = await takeLine(db, this.#batch, taking);
      if (!line) return;
      await failpoint('batch.sent');
      const run: LineRun = { batch: this.#batch, claim: this.#claim, caller, file, signal: this.#signal };
      await callLine(this.#parts, run, line);
    }
  }

  /** Returns the caller as it was less than a second ago; undefined if its key has ended. */
  #readCaller(): Promise<Caller | undefined> {
    const now_ms = performance.now(); // a step of the wall clock must not keep a deleted key alive
    if (!this.#caller || now_ms - this.#caller_read_at_ms >= caller_ms_max) {
      const { account_id, key_id } = this.#batch;
      this.#caller = callerOfKey(this.#parts.db, account_id, key_id);
      this.#caller_read_at_ms = now_ms;
    }
    return this.#caller;
  }

  #goesOn(): boolean {
    return !this.#signal.aborted && performance.now() < this.#ends_at_ms;
  }

  /** Calls that somebody waits for go first: a batch leaves them half of what its key may have at once. */
  #isCrowded(): boolean {
    const { limits, catalog } = this.#parts;
    const { chat_at_once } = catalog.current.settings.limits;
    return limits.chat_calls.inUse(this.#batch.key_id) >= Math.max(1, Math.floor(chat_at_once / 2));
  }

  async #finish(): Promise<Outcome> {
    const { db } = this.#parts;
    const ids = { output_id: newId('file', this.#parts.clock.now()), error_id: newId('file', this.#parts.clock.now()) };
    const batch = await beginFiles(db, this.#batch, this.#claim, ids, this.#now());
    if (!batch) return 'done';
    const files = await makeFiles(this.#parts, batch, this.#now());
    await failpoint('batch.filed');
    await endBatch(db, batch, this.#claim, { ...files, now: this.#now() });
    return 'done';
  }
}
