import { setTimeout as sleep } from 'node:timers/promises';

/** A rate limit. */
export type RateLimit = {
  /** Requests in any minute, the burst included. */
  per_minute: number;
  /** At once, after a while without calls; less than `per_minute`. */
  burst: number;
};

/** The time in which a rate is counted; a test has its own. */
export type RateClock = {
  /** Monotonic milliseconds. */
  now(): number;
  /** Rejects with the signal's reason. */
  sleep(wait_ms: number, signal: AbortSignal): Promise<void>;
};

export const system_rate_clock: RateClock = {
  now: () => performance.now(),
  sleep: async (wait_ms, signal) => {
    await sleep(wait_ms, undefined, { signal });
  },
};

/** Whoever waits has a slot of the worker's; it is better to ask again later. */
const wait_ms_max = 1_000;

/**
 * Keeps calls within a rate limit, and within the pauses that the other side asks for. Tokens come `interval_ms`
 * apart, and `burst` of them may be taken early. Refilling with what the burst leaves of a minute keeps any minute
 * within `per_minute`, also the one that begins with a full burst.
 */
export class TokenBucket {
  readonly #interval_ms: number;
  readonly #early_ms: number;
  readonly #clock: RateClock;
  #next_ms = -Infinity;
  #paused_until_ms = -Infinity;

  constructor({ per_minute, burst }: RateLimit, clock: RateClock = system_rate_clock) {
    this.#interval_ms = 60_000 / Math.max(per_minute - burst, 1);
    this.#early_ms = (burst - 1) * this.#interval_ms;
    this.#clock = clock;
  }

  /** Resolves when the call may be made. Rejects with Error if that would take longer than a second. */
  async take(signal: AbortSignal): Promise<void> {
    const now_ms = this.#clock.now();
    const at_ms = Math.max(now_ms, this.#next_ms - this.#early_ms, this.#paused_until_ms);
    if (at_ms - now_ms > wait_ms_max) throw tooEarly(at_ms - now_ms);
    this.#next_ms = Math.max(this.#next_ms, at_ms) + this.#interval_ms;
    if (at_ms > now_ms) await this.#clock.sleep(at_ms - now_ms, signal);
    const paused_ms = this.#paused_until_ms - this.#clock.now();
    if (paused_ms > 0) throw tooEarly(paused_ms);
  }

  /** Lets no call through for so long. */
  pause(wait_ms: number): void {
    this.#paused_until_ms = Math.max(this.#paused_until_ms, this.#clock.now() + wait_ms);
  }
}

function tooEarly(wait_ms: number): Error {
  return new Error(`the upstream may not be asked for ${Math.ceil(wait_ms)} ms`);
}
