import { onTestFinished, vi } from 'vitest';
import type { Clock } from '../../src/lib/clock.ts';

/** A wall clock that a test sets: it stands still, or runs on from where it was put. */
export type TestClock = Clock & {
  /** Stands still at this time from now on. */
  stop(at: string | number): void;
  /** Goes on from this time as fast as real time. */
  run(from: string | number): void;
  /** Moves by this much. Running or standing, it stays so. */
  pass(duration_ms: number): void;
};

/** A clock that shows the real time until it is told otherwise. */
export function testClock(): TestClock {
  let offset_ms = 0;
  let stopped_ms: number | undefined;
  const now = () => stopped_ms ?? Date.now() + offset_ms;
  const pass = (duration_ms: number) => {
    if (stopped_ms === undefined) offset_ms += duration_ms;
    else stopped_ms += duration_ms;
  };
  return {
    now,
    pass,
    stop: (at) => (stopped_ms = new Date(at).getTime()),
    run: (from) => {
      stopped_ms = undefined;
      pass(new Date(from).getTime() - now());
    },
  };
}

const elapsed: { offset_ms: number; stopped_ms?: number | undefined } = { offset_ms: 0 };
const real = performance.now.bind(performance);

function setElapsed(change: Partial<typeof elapsed>): void {
  Object.assign(elapsed, change);
  if (vi.isMockFunction(performance.now)) return;
  vi.spyOn(performance, 'now').mockImplementation(() => (elapsed.stopped_ms ?? real()) + elapsed.offset_ms);
}

/**
 * Lets the monotonic clock of this process jump ahead: request windows, and what is remembered for a
 * second, are counted with it. Timers are not touched.
 */
export function elapse(duration_ms: number): void {
  setElapsed({ offset_ms: elapsed.offset_ms + duration_ms });
}

const minute_ms = 60_000;

/**
 * Does work whose requests have to lie in one window of a minute, and does it again where it failed and took longer: by
 * then the window has forgotten the first of them. `work` begins with a key that has sent nothing yet.
 */
export async function withinAMinute(work: () => Promise<void>): Promise<void> {
  for (;;) {
    const begun_ms = real();
    try {
      return await work();
    } catch (error) {
      if (real() - begun_ms < minute_ms) throw error;
    }
  }
}

/** From now on the monotonic clock moves by `elapse` only, or runs again. */
export function stopElapsing(stopped: boolean): void {
  setElapsed({ stopped_ms: stopped ? Math.floor(real()) : undefined }); // whole, so that sums are exact
}

/** Stops it until the test is over: all requests of the test are of one minute, however slow this machine is. */
export function stopElapsingInTest(): void {
  stopElapsing(true);
  onTestFinished(() => {
    stopElapsing(false);
    vi.mocked(performance.now).mockRestore();
  });
}
