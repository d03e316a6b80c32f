/** Hands orders to the thread that makes files; starts it when it is needed. */
import { Worker } from 'node:worker_threads';
import { keepImageThreads } from '../../lib/image-threads.ts';
import type { Answer, Question } from './maker-thread.ts';
import type { MediaRequest } from './media-request.ts';

/** The order could not be made and would not be the next time. */
export class CannotMake extends Error {
  override name = 'CannotMake';
}

type Work = {
  kind: MediaRequest['kind'];
  is_done: boolean;
  /** Runs once the files are made, until somebody takes them. */
  unclaimed: NodeJS.Timeout | undefined;
  files: Promise<Buffer[]>;
  resolve: (files: Buffer[]) => void;
  reject: (reason: unknown) => void;
};

/**
 * Whoever comes beyond these comes again later instead of holding on. A video takes one to four
 * seconds of a core; 40 images at once take 100 MB more than 2 at once and are no faster than 32.
 */
const videos_max = 4;
const works_max = 32;

/** Files whose asker gave up waiting are kept this long for the next time that it asks. */
const unclaimed_ms_max = 60_000;

const thread_file = new URL(
  import.meta.url.endsWith('.ts') ? './maker-thread.ts' : './maker-thread.js',
  import.meta.url,
);

/** Makes files in a thread of its own, so that the service goes on answering meanwhile. */
export class Maker {
  #thread: Worker | undefined;
  readonly #works = new Map<string, Work>();

  /**
   * The files of an order; `busy` when so much is being made that the caller had better come again
   * later. Throws CannotMake, or something else if the thread dies or `signal` aborts; the work goes
   * on then, and who asks for the same again gets it.
   */
  async make(request: MediaRequest, signal: AbortSignal): Promise<Buffer[] | 'busy'> {
    signal.throwIfAborted();
    const key = JSON.stringify(request);
    if (!this.#works.has(key) && this.#busy(request.kind)) return 'busy';
    const work = this.#works.get(key) ?? this.#begin(key, request);
    const files = await unlessAborted(work.files, signal);
    this.#forget(key, work);
    return files;
  }

  async close(): Promise<void> {
    await this.#letGo(new Error('the sandbox was closed'));
  }

  #busy(kind: MediaRequest['kind']): boolean {
    const open = [...this.#works.values()].filter((work) => !work.is_done);
    return (
      open.length >= works_max || (kind === 'video' && open.filter((work) => work.kind === kind).length >= videos_max)
    );
  }

  #begin(key: string, request: MediaRequest): Work {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer[]>();
    promise.catch(() => undefined); // perhaps nobody waits any more
    const work: Work = { kind: request.kind, is_done: false, unclaimed: undefined, files: promise, resolve, reject };
    this.#works.set(key, work);
    this.#thread ??= this.#start();
    this.#thread.ref();
    this.#thread.postMessage({ key, request } satisfies Question, []);
    return work;
  }

  #start(): Worker {
    keepImageThreads();
    const thread = new Worker(thread_file, { execArgv: [] });
    const died = (cause: unknown) => {
      if (this.#thread === thread) void this.#letGo(new Error('the sandbox thread ended', { cause }));
    };
    thread.on('message', (answer: Answer) => this.#answered(answer));
    thread.on('error', died);
    thread.on('exit', died);
    return thread;
  }

  #answered(answer: Answer): void {
    const work = this.#works.get(answer.key);
    if (!work) return;
    work.is_done = true;
    if ('error' in answer) {
      this.#works.delete(answer.key);
      work.reject(new CannotMake(answer.error));
    } else {
      work.resolve(answer.files.map((file) => Buffer.from(file.buffer)));
      work.unclaimed = setTimeout(() => this.#forget(answer.key, work), unclaimed_ms_max).unref();
    }
    if ([...this.#works.values()].every((other) => other.is_done)) this.#thread?.unref(); // idle: keeps no process alive
  }

  #forget(key: string, work: Work): void {
    clearTimeout(work.unclaimed); // else the timer would hold the files
    if (this.#works.get(key) === work) this.#works.delete(key);
  }

  async #letGo(reason: Error): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    for (const [key, work] of this.#works) {
      work.reject(reason);
      this.#forget(key, work);
    }
    await thread?.terminate();
  }
}

async function unlessAborted<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([result, promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
