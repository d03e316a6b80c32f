import { assert } from '../lib/assert.ts';

export type SemaphoreOptions = {
  /** For the operator's page. */
  name: string;
  /** The counted thing: work, or the bytes of a memory quota. */
  unit?: 'bytes';
  /** The number of permits of all keys together. */
  bound?: number;
  /**
   * Of one key; a function where it may change. `fair`: as much as is left free, so one key alone has half of the
   * bound, two have a third each, and there is always room for the next.
   */
  key_bound?: number | 'fair' | (() => number);
  /** Requests that may wait. Others are refused at once. */
  queue_bound?: number;
};

/** Part of a semaphore, until it is released. */
export type Permit = {
  /** Keeps this much and gives back the rest. */
  shrink(weight: number): void;
  /** Gives back what is left; more than once is the same as once. */
  release(): void;
};

export type AcquireOptions = {
  weight?: number;
  signal?: AbortSignal;
  /** Without it a request waits until it is cancelled. */
  timeout_ms?: number;
};

/** A semaphore at one moment. */
export type SemaphoreState = {
  name: string;
  unit: 'bytes' | null;
  in_use: number;
  /** Requests. */
  waiting: number;
  bound: number | null;
  key_bound: number | 'fair' | null;
};

/** `overtaken`: how much was given to later requests since this one could have had it. */
type Request = { weight: number; overtaken: number; end: (permit: Permit | undefined) => void };

type Key = { readonly name: string; in_use: number; readonly queue: Request[] };

/**
 * Limits work, or memory, in this process. Each request has a key, mostly an account. Keys take turns, and the requests
 * of one key are served in the order in which they came, so nobody starves:
 *
 * - A key whose next request is beyond its own bound is passed over: it waits for its own permits.
 * - A request that does not fit beside those of others is overtaken only by keys that hold nothing, and by no more than
 *   its own weight together.
 */
export class Semaphore {
  readonly name: string;
  readonly #unit: 'bytes' | null;
  readonly bound: number;
  readonly #key_bound: SemaphoreOptions['key_bound'];
  readonly #queue_bound: number;
  readonly #keys = new Map<string, Key>();
  /** The keys with waiting requests; whose turn was last is last. */
  readonly #round = new Set<Key>();
  #in_use = 0;
  #waiting = 0;

  constructor({ name, unit, bound = Infinity, key_bound, queue_bound = Infinity }: SemaphoreOptions) {
    this.name = name;
    this.#unit = unit ?? null;
    this.bound = bound;
    this.#key_bound = key_bound;
    this.#queue_bound = queue_bound;
  }

  /** Returns a permit, or undefined if it would have to wait. More weight than there is counts as all of it. */
  tryAcquire(name: string, weight = 1): Permit | undefined {
    assert(weight > 0, 'a permit has a weight');
    const key = this.#keys.get(name) ?? { name, in_use: 0, queue: [] };
    const amount = Math.min(weight, this.bound);
    const blocked = this.#round.size > 0 ? this.#firstBlocked() : undefined;
    if (key.queue.length > 0 || !this.#fits(key, amount, blocked)) return undefined;
    return this.#grant(key, amount, blocked);
  }

  /** Waits for a permit. Resolves to undefined when it is cancelled, takes too long, or too many wait already. */
  async acquire(name: string, options: AcquireOptions = {}): Promise<Permit | undefined> {
    const { weight = 1, signal } = options;
    if (signal?.aborted) return undefined;
    const permit = this.tryAcquire(name, weight);
    if (permit || this.#waiting >= this.#queue_bound) return permit;
    return this.#wait(name, Math.min(weight, this.bound), options);
  }

  /** Does `work` with a permit, however long it has to wait for one. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const permit = await this.acquire(name);
    assert(permit, `too much waits for ${this.name}`);
    try {
      return await work();
    } finally {
      permit.release();
    }
  }

  /** Cancels what waits under this key now, in its order. */
  cancelWaiting(name: string): void {
    const key = this.#keys.get(name);
    if (!key) return;
    const requests = key.queue.splice(0);
    this.#waiting -= requests.length;
    for (const { end } of requests) end(undefined);
    this.#leave(key);
  }

  /** The amount that is in use under this key. */
  inUse(name: string): number {
    return this.#keys.get(name)?.in_use ?? 0;
  }

  /** The number of requests of this key that wait. */
  waiting(name: string): number {
    return this.#keys.get(name)?.queue.length ?? 0;
  }

  /** The number of keys that hold something or wait: all that is remembered. */
  get size(): number {
    return this.#keys.size;
  }

  get state(): SemaphoreState {
    return {
      name: this.name,
      unit: this.#unit,
      in_use: this.#in_use,
      waiting: this.#waiting,
      bound: Number.isFinite(this.bound) ? this.bound : null,
      key_bound: (typeof this.#key_bound === 'function' ? this.#key_bound() : this.#key_bound) ?? null,
    };
  }

  #wait(name: string, weight: number, { signal, timeout_ms }: AcquireOptions): Promise<Permit | undefined> {
    return new Promise((resolve) => {
      const key = this.#keys.get(name) ?? { name, in_use: 0, queue: [] };
      const end = (permit: Permit | undefined) => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', cancel);
        resolve(permit);
      };
      const cancel = () => {
        key.queue.splice(key.queue.indexOf(request), 1);
        this.#waiting -= 1;
        end(undefined);
        this.#leave(key);
      };
      const request: Request = { weight, overtaken: 0, end };
      const timer = timeout_ms === undefined ? undefined : setTimeout(cancel, timeout_ms);
      signal?.addEventListener('abort', cancel);
      key.queue.push(request);
      this.#keys.set(name, key);
      this.#round.add(key);
      this.#waiting += 1;
    });
  }

  #leave(key: Key): void {
    if (key.queue.length === 0) this.#round.delete(key);
    this.#forget(key);
    this.#admit(); // what is gone may have been in the way
  }

  #grant(key: Key, weight: number, blocked: Request | undefined): Permit {
    if (blocked) blocked.overtaken += weight;
    if (key.in_use === 0) this.#keys.set(key.name, key);
    key.in_use += weight;
    this.#in_use += weight;
    let held = weight;
    const shrink = (to: number) => {
      if (to >= held) return;
      key.in_use -= held - to;
      this.#in_use -= held - to;
      held = to;
      this.#forget(key);
      if (this.#waiting > 0) this.#admit();
    };
    return { shrink, release: () => shrink(0) };
  }

  #forget(key: Key): void {
    if (key.in_use === 0 && key.queue.length === 0) this.#keys.delete(key.name);
  }

  /** Gives what is free to those whose turn it is. A key that is served goes to the end of the round. */
  #admit(): void {
    let blocked: Request | undefined;
    for (const key of this.#round) {
      const [request] = key.queue;
      if (!request || !this.#isWithinItsBound(key, request.weight)) continue;
      if (this.#fits(key, request.weight, blocked)) {
        key.queue.shift();
        this.#waiting -= 1;
        this.#round.delete(key);
        if (key.queue.length > 0) this.#round.add(key);
        request.end(this.#grant(key, request.weight, blocked)); // at once: whoever comes now must not take it
      } else blocked ??= request;
    }
  }

  #firstBlocked(): Request | undefined {
    for (const key of this.#round) {
      const [request] = key.queue;
      if (request && this.#isWithinItsBound(key, request.weight)) return request;
    }
    return undefined;
  }

  #fits(key: Key, weight: number, blocked: Request | undefined): boolean {
    if (weight > this.bound - this.#in_use || !this.#isWithinItsBound(key, weight)) return false;
    return !blocked || (key.in_use === 0 && blocked.overtaken + weight <= blocked.weight);
  }

  #isWithinItsBound({ in_use }: Key, weight: number): boolean {
    if (this.#key_bound === undefined) return true;
    if (this.#key_bound === 'fair') return in_use === 0 || in_use + weight <= this.bound - this.#in_use - weight;
    return in_use + weight <= (typeof this.#key_bound === 'function' ? this.#key_bound() : this.#key_bound);
  }
}
