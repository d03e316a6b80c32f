import type { Timeouts } from '../catalog/model.ts';

/** The end of a connection comes right behind that of its answer. */
const end_ms = 1_000;

/**
 * How long a caller may read nothing, in times of what its upstream may say nothing for; but models that think for
 * long have long times.
 */
const reader_patience = 2;
const reader_ms_max = 120_000;

/** `first byte`: no answer has begun. `idle`: nothing came for too long. `total`: it came, but took too long. */
export type Phase = 'first byte' | 'idle' | 'total';

/** The clock of one attempt. */
export type Watch = {
  /** Aborts when a phase takes too long, or the caller is gone. */
  readonly signal: AbortSignal;
  /** Resolves when `signal` aborts. */
  readonly over: Promise<void>;
  /** Which phase of the upstream's took too long. */
  readonly timed_out: Phase | undefined;
  /** The time is over because the caller did not read. */
  readonly caller_is_slow: boolean;
  /** Something came; until the answer has begun that buys no time. */
  beat(has_begun: boolean): void;
  /** The answer is complete: who keeps the connection open behind it is not waited for. */
  expectEnd(): void;
  /** Waits for the caller from here to the next beat, which is not the upstream's fault. */
  pause(): void;
  stop(): void;
};

/** A whole answer comes at once, after as long as the model has written: only its total is bounded. */
export function startWatch(timeout_ms: Timeouts, is_stream: boolean, gone: AbortSignal): Watch {
  const stop = new AbortController();
  let timed_out: Phase | undefined;
  let caller_is_slow = false;
  let is_paused = false;
  const expire = (phase: Phase) => {
    if (is_paused) caller_is_slow = true;
    else timed_out = phase;
    stop.abort(new Error(`over: ${phase}`));
  };
  const total = setTimeout(() => expire('total'), timeout_ms.total);
  let silence = is_stream ? setTimeout(() => expire('first byte'), timeout_ms.first_byte) : undefined;
  let is_idle_watch = false;
  let beat_at_ms = 0;
  const wait = (duration_ms: number) => {
    clearTimeout(silence);
    silence = setTimeout(() => {
      const left_ms = is_idle_watch ? beat_at_ms + timeout_ms.idle - performance.now() : 0;
      if (left_ms > 0) wait(left_ms);
      else expire('idle');
    }, duration_ms);
  };
  const leave = () => stop.abort(new Error('the caller is gone'));
  if (gone.aborted) leave();
  gone.addEventListener('abort', leave, { once: true });
  let over: Promise<void> | undefined;
  return {
    signal: stop.signal,
    get over() {
      return (over ??= untilAborted(stop.signal)); // few calls ever wait for it
    },
    get timed_out() {
      return timed_out;
    },
    get caller_is_slow() {
      return caller_is_slow;
    },
    beat: (has_begun) => {
      is_paused = false;
      if (!has_begun) return; // who only says that it is there has not begun to work
      beat_at_ms = performance.now();
      if (is_idle_watch) return; // the timer looks when the last beat was: to move it each time was 3 % of a stream
      is_idle_watch = true;
      wait(timeout_ms.idle);
    },
    expectEnd: () => {
      is_idle_watch = false;
      wait(end_ms);
    },
    pause: () => {
      is_paused = true;
      is_idle_watch = false;
      wait(Math.min(timeout_ms.idle * reader_patience, reader_ms_max));
    },
    stop: () => {
      clearTimeout(total);
      clearTimeout(silence);
      gone.removeEventListener('abort', leave);
    },
  };
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
