/** Hashes of passwords: made in threads of their own, few at once, and the backlog has an end. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { Semaphore } from '../../concurrency/semaphore.ts';
import type { HashJob, HashResult } from './hashing-thread.ts';

/** The N of scrypt, as the login library has it: passwords that it has hashed stay valid. */
export const usual_cost = 16_384;

/** Each takes a core for 60 ms and 32 MB: more at once would take the cores that serve everybody else. */
const threads_max = 2;

/** Beyond these, and after this time, a sign-in is refused for now. */
export const backlog_max = 64;
const usual_timeout_ms = 10_000;

export function hashingLimit(): Semaphore {
  return new Semaphore({ name: 'Hashes of passwords', bound: threads_max, queue_bound: backlog_max });
}

/** So many passwords are waiting that this one is not looked at. */
export class HashingBusy extends Error {
  override name = 'HashingBusy';
}

export type Hashing = {
  /** `salt:key`, both in hex, with a fresh salt. Throws HashingBusy. */
  hash(password: string): Promise<string>;
  /** Returns true if `stored` was made of this password. Throws HashingBusy. */
  verify(stored: string, password: string): Promise<boolean>;
  close(): Promise<void>;
};

type Work = { job: HashJob; resolve: (key: string) => void; reject: (reason: Error) => void };

type Thread = { worker: Worker; current: Work | undefined };

const thread_file = new URL(
  import.meta.url.endsWith('.ts') ? './hashing-thread.ts' : './hashing-thread.js',
  import.meta.url,
);

export type HashingOptions = { limit?: Semaphore; timeout_ms?: number; cost?: number };

/** Starts its threads when there is something to hash. */
export function openHashing(options: HashingOptions = {}): Hashing {
  const pool = new HashingPool(options);
  return {
    hash: async (password) => {
      const salt = randomBytes(16).toString('hex');
      return `${salt}:${await pool.derive(password, salt)}`;
    },
    verify: async (stored, password) => {
      const [salt, key] = stored.split(':');
      if (!salt || !key) throw new Error('a stored password is no hash');
      const [expected, derived] = [Buffer.from(key), Buffer.from(await pool.derive(password, salt))];
      return expected.length === derived.length && timingSafeEqual(expected, derived);
    },
    close: () => pool.close(),
  };
}

const retry_after_s = 5;

/**
 * `hashing` as the login library takes it: who comes while it is busy is answered 503, with a time to wait. A password
 * that is replaced while it waits is wrong: `isStored` says whether somebody has the hash.
 */
export async function passwordsOf(hashing: Hashing, isStored: (hash: string) => Promise<boolean>) {
  const { APIError } = await import('better-auth/api');
  const unlessBusy = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof HashingBusy)) throw error;
      const message = `Too many people are signing in at this moment. Try again in ${retry_after_s} s.`;
      throw new APIError('SERVICE_UNAVAILABLE', { message }, { 'x-retry-after': String(retry_after_s) });
    }
  };
  return {
    hash: (password: string) => unlessBusy(hashing.hash(password)),
    verify: async ({ hash, password }: { hash: string; password: string }) =>
      (await unlessBusy(hashing.verify(hash, password))) && isStored(hash),
  };
}

class HashingPool {
  readonly #threads: Thread[] = [];
  readonly #limit: Semaphore;
  readonly #timeout_ms: number;
  readonly #cost: number;
  readonly #closing = new AbortController();
  #ids = 0;

  constructor({ limit = hashingLimit(), timeout_ms = usual_timeout_ms, cost = usual_cost }: HashingOptions) {
    this.#limit = limit;
    this.#timeout_ms = timeout_ms;
    this.#cost = cost;
  }

  async derive(password: string, salt: string): Promise<string> {
    const { signal } = this.#closing;
    const permit = await this.#limit.acquire('', { timeout_ms: this.#timeout_ms, signal });
    try {
      if (!permit || signal.aborted) throw new HashingBusy();
      return await this.#hash({ id: ++this.#ids, password, salt });
    } finally {
      permit?.release();
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#threads.splice(0).map((thread) => end(thread, new HashingBusy())));
  }

  #hash(job: HashJob): Promise<string> {
    return new Promise((resolve, reject) => {
      const thread = this.#threads.find(({ current }) => current === undefined) ?? this.#start();
      thread.current = { job, resolve, reject };
      thread.worker.ref();
      thread.worker.postMessage(job, []);
    });
  }

  #start(): Thread {
    const worker = new Worker(thread_file, { execArgv: [], workerData: this.#cost });
    const thread: Thread = { worker, current: undefined };
    const died = (cause: unknown) => {
      const at = this.#threads.indexOf(thread);
      if (at === -1) return;
      this.#threads.splice(at, 1);
      void end(thread, new Error('a hashing thread ended', { cause }));
    };
    thread.worker.on('message', (result: HashResult) => this.#take(thread, result));
    thread.worker.on('error', died);
    thread.worker.on('exit', died);
    this.#threads.push(thread);
    return thread;
  }

  #take(thread: Thread, result: HashResult): void {
    const { current } = thread;
    if (current?.job.id !== result.id) return;
    thread.current = undefined;
    thread.worker.unref(); // idle: keeps no process alive
    if ('key' in result) current.resolve(result.key);
    else current.reject(new Error(`a password cannot be hashed: ${result.error}`));
  }
}

async function end(thread: Thread, reason: Error): Promise<void> {
  const { current } = thread;
  thread.current = undefined;
  current?.reject(reason);
  await thread.worker.terminate();
}
