import type { Timeouts } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { Timeout } from '../lib/timeout.ts';

/** The end of a connection comes right after that of its answer. */
const end_ms = 1_000;

/**
 * Time a caller may read nothing, as a multiple of its upstream's silence limit, with an upper bound: models
 * that think for long have long limits.
 */
const reader_patience = 2;
const reader_ms_max = 120_000;

/** `first byte`: no answer has begun. `idle`: nothing came for too long. `total`: it came, but took too long. */
export type Phase = 'first byte' | 'idle' | 'total';

/** The handling of an upstream's request when its caller leaves. */
export type LeavePolicy = {
  /** Called once, when the caller leaves: frees what only it needed. */
  onLeave(): void;
  /** Tells whether the upstream's usage is worth waiting for; else the upstream is cancelled. */
  isReadOn(): boolean;
};

/** The clock of one attempt. A whole answer comes at once, after as long as the model has written: only its total is bounded. */
export class AttemptTimeouts {
  readonly #timeout_ms: Timeouts;
  readonly #gone: AbortSignal;
  readonly #stopping: AbortSignal;
  readonly #stop = new AbortController();
  readonly #total: Timeout;
  #silence: Timeout | undefined;
  #timed_out: Phase | undefined;
  #is_paused = false;
  #is_idle_watch = false;
  #beat_at_ms = 0;
  #over: Promise<void> | undefined;
  #wakeOver: (() => void) | undefined;
  #leaving: LeavePolicy | undefined;
  #is_left = false;
  #is_abandoned = false;

  /** `stopping`: of the service, which does not wait for calls without a caller. */
  constructor(timeout_ms: Timeouts, is_stream: boolean, gone: AbortSignal, stopping: AbortSignal) {
    this.#timeout_ms = timeout_ms;
    this.#gone = gone;
    this.#stopping = stopping;
    this.#total = new Timeout(timeout_ms.total, () => this.#expire('total'));
    if (is_stream) this.#silence = new Timeout(timeout_ms.first_byte, () => this.#expire('first byte'));
    if (gone.aborted) this.#leave();
    gone.addEventListener('abort', this.#leave);
  }

  /** Aborts when a phase takes too long, or nothing more is wanted of the upstream. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** The upstream is asked from here on, and charges for it; until then a caller who leaves ends the attempt. */
  begin(leaving: LeavePolicy): void {
    this.#leaving = leaving;
  }

  /** The caller is gone, or does not read. */
  get is_left(): boolean {
    return this.#is_left;
  }

  /** The upstream was let go, since nobody waited for its answer: it bills what it has done. */
  get is_abandoned(): boolean {
    return this.#is_abandoned;
  }

  /** Lets the upstream go if the caller has left and nothing is worth waiting for. */
  review(): void {
    if (this.#is_left && this.#leaving?.isReadOn() === false) this.#abandon('the caller is gone');
  }

  /** The caller is gone, or does not read. */
  readonly #leave = (): void => {
    if (this.#is_left) return;
    this.#is_left = true;
    this.#wakeOver?.();
    const leaving = this.#leaving;
    if (!leaving) return this.#stop.abort(new Error('the caller is gone')); // nothing was sent
    const { reason } = this.#gone;
    if (reason instanceof ApiError) return this.#stop.abort(reason); // it has not left: we have sent it away
    leaving.onLeave();
    if (this.#stopping.aborted) return this.#abandon('the service stops');
    this.#stopping.addEventListener('abort', this.#onStopping);
    this.review();
  };

  readonly #onStopping = () => this.#abandon('the service stops');

  #abandon(why: string): void {
    if (this.#stop.signal.aborted) return;
    this.#is_abandoned = true;
    this.#stop.abort(new Error(why));
  }

  /** Resolves when `signal` aborts, or the caller has left. */
  get over(): Promise<void> {
    return (this.#over ??= this.#untilOver()); // few calls ever wait for it
  }

  #untilOver(): Promise<void> {
    if (this.#is_left || this.#stop.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wakeOver = resolve;
      this.#stop.signal.addEventListener('abort', () => resolve());
    });
  }

  /** Which phase of the upstream's took too long. */
  get timed_out(): Phase | undefined {
    return this.#timed_out;
  }

  /** Something came; until the answer has begun that buys no time. */
  beat(has_begun: boolean): void {
    this.#is_paused = false;
    if (!has_begun) return; // who only says that it is there has not begun to work
    this.#beat_at_ms = performance.now();
    if (this.#is_idle_watch) return; // the timer looks when the last beat was: to move it each time was 3 % of a stream
    this.#is_idle_watch = true;
    this.#wait(this.#timeout_ms.idle);
  }

  /** The answer is complete: who keeps the connection open after it is not waited for. */
  expectEnd(): void {
    this.#is_idle_watch = false;
    this.#wait(end_ms);
  }

  /** Waits for the caller from here to the next beat, which is not the upstream's fault. */
  pause(): void {
    this.#is_paused = true;
    this.#is_idle_watch = false;
    this.#wait(Math.min(this.#timeout_ms.idle * reader_patience, reader_ms_max));
  }

  stop(): void {
    this.#total.clear();
    this.#silence?.clear();
    this.#gone.removeEventListener('abort', this.#leave);
    this.#stopping.removeEventListener('abort', this.#onStopping);
  }

  #wait(duration_ms: number): void {
    this.#silence?.clear();
    this.#silence = new Timeout(duration_ms, () => {
      const left_ms = this.#is_idle_watch ? this.#beat_at_ms + this.#timeout_ms.idle - performance.now() : 0;
      if (left_ms > 0) this.#wait(left_ms);
      else this.#expire('idle');
    });
  }

  #expire(phase: Phase): void {
    if (this.#is_paused) {
      this.#leave(); // who does not read is gone, which is not the upstream's fault
      if (phase === 'idle') return;
    } else {
      this.#timed_out = phase;
    }
    this.#stop.abort(new Error(`over: ${phase}`));
  }
}
