import { vi } from 'vitest';
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

const elapsed = { offset_ms: 0 };

/**
 * Lets the monotonic clock of this process jump ahead: request windows, and what is remembered for a
 * second, are counted with it. Timers are not touched.
 */
export function elapse(duration_ms: number): void {
  if (!vi.isMockFunction(performance.now)) {
    const real = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => real() + elapsed.offset_ms);
  }
  elapsed.offset_ms += duration_ms;
}
