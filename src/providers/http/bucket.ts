import { setTimeout as sleep } from 'node:timers/promises';

/** How often a key may call. */
export type Pace = {
  /** In any minute, the burst included. */
  per_minute: number;
  /** At once, after a while without calls; less than `per_minute`. */
  burst: number;
};

/** The time as a pace sees it; a test has its own. */
export type Pacer = {
  now(): number;
  /** Rejects with the signal's reason. */
  sleep(wait_ms: number, signal: AbortSignal): Promise<void>;
};

export const systemPacer: Pacer = {
  now: () => performance.now(),
  sleep: async (wait_ms, signal) => {
    await sleep(wait_ms, undefined, { signal });
  },
};

/** Keeps the calls of one upstream key to its pace, and to the pauses that the upstream asks for. */
export type Bucket = {
  /** Resolves when the call may be made. Throws that it is too early if that would take longer than a second. */
  take(signal: AbortSignal): Promise<void>;
  /** No call for so long. */
  pause(wait_ms: number): void;
};

/** Who waits has a place of the worker's; it is better to ask again later. */
const wait_ms_max = 1_000;

/**
 * Calls have places in time, `interval_ms` apart; `burst` of them may be taken early. Refilling with what the
 * burst leaves of a minute keeps any minute within `per_minute`, also the one that begins with a full burst.
 */
export function openBucket({ per_minute, burst }: Pace, pacer: Pacer = systemPacer): Bucket {
  const interval_ms = 60_000 / Math.max(per_minute - burst, 1);
  const early_ms = (burst - 1) * interval_ms;
  let next_ms = -Infinity;
  let paused_until_ms = -Infinity;
  return {
    take: async (signal) => {
      const now_ms = pacer.now();
      const at_ms = Math.max(now_ms, next_ms - early_ms, paused_until_ms);
      if (at_ms - now_ms > wait_ms_max) throw tooEarly(at_ms - now_ms);
      next_ms = Math.max(next_ms, at_ms) + interval_ms;
      if (at_ms > now_ms) await pacer.sleep(at_ms - now_ms, signal);
      const paused_ms = paused_until_ms - pacer.now();
      if (paused_ms > 0) throw tooEarly(paused_ms);
    },
    pause: (wait_ms) => {
      paused_until_ms = Math.max(paused_until_ms, pacer.now() + wait_ms);
    },
  };
}

function tooEarly(wait_ms: number): Error {
  return new Error(`the upstream may not be asked for ${Math.ceil(wait_ms)} ms`);
}
