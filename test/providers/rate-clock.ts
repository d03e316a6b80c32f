import { setImmediate } from 'node:timers/promises';
import type { RateClock } from '../../src/concurrency/token-bucket.ts';

/** A time that stands still while anybody works, and jumps when all of them sleep. */
export type JumpingClock = RateClock & {
  /** Runs all to their end; each may use `sleep`. */
  together(works: (() => Promise<void>)[]): Promise<void>;
};

/** Sleepers until nearly the same time wake together, some of them late: else all would go one by one. */
export const tick_ms = 500;

export function jumpingClock(): JumpingClock {
  let now_ms = 0;
  let sleepers: { at_ms: number; wake: () => void }[] = [];
  const sleep = (wait_ms: number) => new Promise<void>((wake) => void sleepers.push({ at_ms: now_ms + wait_ms, wake }));
  return {
    now: () => now_ms,
    sleep,
    together: async (works) => {
      let working = works.length;
      const all = Promise.all(works.map((work) => work().finally(() => (working -= 1))));
      const failed = all.then(
        () => false,
        () => true,
      );
      while (working > 0) {
        if (sleepers.length < working) {
          if (await Promise.race([failed, setImmediate(false)])) break;
          continue;
        }
        now_ms = tick_ms + sleepers.reduce((first, { at_ms }) => Math.min(first, at_ms), Infinity);
        const due = sleepers.filter(({ at_ms }) => at_ms <= now_ms);
        sleepers = sleepers.filter(({ at_ms }) => at_ms > now_ms);
        for (const { wake } of due) wake();
        await setImmediate();
      }
      await all;
    },
  };
}
