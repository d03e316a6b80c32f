/**
 * Rate limit of a key: never more than `limit` requests in any 60 seconds. An exact sliding log: a fixed
 * window lets twice the limit through around its edge.
 */

/**
 * `chat`: chat of all styles, compaction, embeddings, rankings and moderation share one window. Everything that is
 * neither this nor generate shares another.
 */
export type WindowName = 'generate' | 'chat' | 'other';

/** The answer to one request. Milliseconds are counted from `now_ms` of the call. */
export type WindowAnswer = {
  /** False: refused by the window, and not counted. */
  ok: boolean;
  limit: number;
  /** Requests that would be accepted right now. */
  remaining: number;
  /** Until the oldest counted request leaves the window, so until `remaining` grows. */
  reset_ms: number;
  /** 0 if ok; else the shortest wait after which one request is accepted if nobody else takes it. */
  retry_after_ms: number;
};

/** Windows of all nodes together. */
export type Windows = {
  /** Takes one place in the window of a key, or of another name, or refuses. `now_ms` is monotonic. */
  take(window: WindowName, name: string, limit: number, now_ms: number): Promise<WindowAnswer>;
};

/** Windows of one process. */
export type LocalWindows = {
  take(window: WindowName, name: string, limit: number, now_ms: number): WindowAnswer;
};

export const window_ms = 60_000;

/**
 * Time for which a request takes a place: a millisecond more than a minute, since clocks in milliseconds cut off fractions,
 * and two requests of one minute must never be counted in two.
 */
const place_ms = window_ms + 1;

/** Windows of this process only. They start empty. */
export function memoryWindows(): LocalWindows & { size(): number } {
  const logs: Record<WindowName, Map<string, SlidingLog>> = { generate: new Map(), chat: new Map(), other: new Map() };
  const looks_at_ms: Record<WindowName, number> = { generate: 0, chat: 0, other: 0 };
  return {
    take(window, key_id, limit, now_ms) {
      const byKey = logs[window];
      if (now_ms >= looks_at_ms[window]) looks_at_ms[window] = evictIdle(byKey, now_ms);
      const log = byKey.get(key_id) ?? new SlidingLog();
      const taken = log.take(limit, now_ms);
      if (taken.ok && now_ms - log.moved_at_ms >= order_ms) {
        byKey.delete(key_id); // moves it to the end: the map stays ordered by the newest request
        byKey.set(key_id, log);
        log.moved_at_ms = now_ms;
      }
      return taken;
    },
    size: () => logs.generate.size + logs.chat.size + logs.other.size,
  };
}

/** Precision of the order of the keys: a key that calls more often is not moved at each request. */
const order_ms = 1_000;

/** At most this many idle keys are dropped per request, so no request pays for all of them. */
const evictions_max = 4;

/** Drops idle keys. Returns the time at which there may be an idle key again. */
function evictIdle(byKey: Map<string, SlidingLog>, now_ms: number): number {
  let left = evictions_max;
  for (const [key_id, log] of byKey) {
    if (left-- === 0 || log.idle_at_ms > now_ms) return log.idle_at_ms;
    byKey.delete(key_id);
  }
  return now_ms + place_ms;
}

/** The times of the accepted requests of one key, oldest first, in a ring that grows up to the limit. */
export class SlidingLog {
  /** Its length is a power of two, so that places in the ring are found without a division. */
  #times = new Float64Array(8);
  #first = 0;
  #count = 0;
  #newest_ms = -Infinity;
  /** Time at which it became the last one of its map. */
  moved_at_ms = -Infinity;

  /** Returns how many requests count now. */
  countAt(now_ms: number): number {
    this.#dropExpired(Math.max(now_ms, this.#newest_ms));
    return this.#count;
  }

  /** Takes a place while fewer than `bound` requests count. */
  take(limit: number, now_ms: number, bound = limit): WindowAnswer {
    const at_ms = Math.max(now_ms, this.#newest_ms); // a clock that steps back must not free places
    this.#dropExpired(at_ms);
    const ok = this.#count < Math.min(limit, bound);
    if (ok) this.#push(at_ms);
    const oldest_ms = this.#count > 0 ? this.#at(0) : at_ms;
    const blocking_ms = this.#count >= limit && limit > 0 ? this.#at(this.#count - limit) : at_ms;
    return {
      ok,
      limit,
      remaining: Math.max(0, limit - this.#count),
      reset_ms: oldest_ms + place_ms - at_ms,
      retry_after_ms: ok ? 0 : blocking_ms + place_ms - at_ms,
    };
  }

  /** Returns the time until the oldest counted request leaves; undefined without one. */
  freesInMs(now_ms: number): number | undefined {
    return this.countAt(now_ms) === 0 ? undefined : this.#at(0) + place_ms - Math.max(now_ms, this.#newest_ms);
  }

  get idle_at_ms(): number {
    return this.#newest_ms + place_ms;
  }

  #at(index: number): number {
    return this.#times[this.#place(index)] ?? 0;
  }

  #place(index: number): number {
    return (this.#first + index) & (this.#times.length - 1);
  }

  #dropExpired(now_ms: number): void {
    while (this.#count > 0 && this.#at(0) + place_ms <= now_ms) {
      this.#first = this.#place(1);
      this.#count -= 1;
    }
  }

  #push(now_ms: number): void {
    if (this.#count === this.#times.length) this.#grow();
    this.#times[this.#place(this.#count)] = now_ms;
    this.#count += 1;
    this.#newest_ms = now_ms;
  }

  #grow(): void {
    const times = new Float64Array(this.#times.length * 2);
    for (let index = 0; index < this.#count; index++) times[index] = this.#at(index);
    this.#times = times;
    this.#first = 0;
  }
}
