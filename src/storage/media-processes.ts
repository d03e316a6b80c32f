import type { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import { setPriority } from 'node:os';
import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import { assert } from '../lib/assert.ts';
import { socket_descriptor } from './byte-source.ts';
import { startConfined } from './confined.ts';
import type { MediaReply, MediaRequest, MediaResult } from './media-process.ts';
import { answerReads, type Readable } from './read-requests.ts';

/** The process itself stops after seconds of a processor (media-process.ts); this is for a file that makes it wait. */
export const work_timeout_ms = { measure: 10_000, draw: 60_000 };

/** Loading the libraries takes 0.3 s; a machine that needs this long to say a word is out of order. */
const answer_timeout_ms = 30_000;

export type MediaProcessOptions = {
  /** Bounds their number. */
  limit: Semaphore;
  /** Work that can wait for everything else on the machine. */
  in_background?: boolean;
  /** A process without work ends after this time. Absent: it stays, and so does one in place of each that died. */
  rest_ms?: number;
};

/** The result of the work; or that the process took too long, or died over it. */
export type MediaAnswer = MediaResult | 'timeout' | 'crashed';

/**
 * Processes that work on files of others. They know no secrets of ours, open no files and have no network (confined.ts):
 * they are sent the bytes that they ask for. The parsers can be led into endless loops (43 bytes of FLAC do it) and
 * endless lists, and V8 ends the whole process when a heap, even that of a limited thread, overflows at once.
 */
export class MediaProcesses {
  readonly #options: MediaProcessOptions;
  /** Processes without work, some still starting. */
  readonly #idle: Promise<ChildProcess>[] = [];
  #closed = false;

  constructor(options: MediaProcessOptions) {
    this.#options = options;
  }

  /** Does the work in one of the processes, in the turn of `key`. Rejects if the bytes cannot be read. */
  async run(key: string, file: Readable, work: MediaRequest['work']): Promise<MediaAnswer> {
    // Each of the idle ones may be dead, and so may what others have put in their place meanwhile.
    for (let attempts = 0; attempts <= 2 * this.#options.limit.bound; attempts++) {
      const answer = await this.#tryRun(key, file, work);
      if (answer !== 'dead') return answer;
    }
    return 'crashed';
  }

  close(): void {
    this.#closed = true;
    for (const child of this.#idle.splice(0)) void child.then(end, () => {});
  }

  /** `dead`: the process never took the file; somebody killed it while it rested. */
  async #tryRun(key: string, file: Readable, work: MediaRequest['work']): Promise<MediaAnswer | 'dead'> {
    const { child, release } = await this.#take(key);
    let reusable = false;
    let stopReads = () => {};
    try {
      const unread = new Promise<never>((_, onFailure) => {
        stopReads = answerReads(socketOf(child), file, onFailure);
      });
      unread.catch(() => {}); // when nobody waits for it any more
      child.send({ work, size_bytes: file.size_bytes } satisfies MediaRequest);
      const answer = await Promise.race([nextAnswer(child, work_timeout_ms[work]), unread]);
      if (answer.event === 'exit') return answer.begun ? 'crashed' : 'dead';
      if (answer.event === 'timeout') return 'timeout';
      assert('done' in answer.reply, 'the process that reads media gave no result');
      const { done, spent } = answer.reply;
      reusable = !spent;
      return done;
    } finally {
      stopReads();
      release(reusable);
    }
  }

  /** An idle process, or a new one; waits while as many as there may be are at work. */
  async #take(key: string): Promise<{ child: ChildProcess; release: (reusable: boolean) => void }> {
    const permit = await this.#options.limit.acquire(key);
    assert(permit, 'a process that reads media can be waited for');
    try {
      const ready = await this.#idle.shift()?.catch(() => undefined);
      const child = ready?.connected ? ready : await this.#start();
      keepAlive(child, true);
      return { child, release: (reusable) => this.#release(child, permit, reusable) };
    } catch (error) {
      permit.release();
      throw error;
    }
  }

  /** One that cannot be used again is replaced at once, so that the next file need not wait for it. */
  #release(child: ChildProcess, permit: Permit, reusable: boolean): void {
    const { rest_ms } = this.#options;
    if (!reusable || this.#closed) end(child);
    if (!this.#closed && (reusable || rest_ms === undefined)) {
      const successor = reusable ? Promise.resolve(child) : this.#start();
      this.#idle.push(successor);
      if (rest_ms !== undefined) this.#endLater(successor, rest_ms);
      successor.then(
        (ready) => keepAlive(ready, false),
        () => {}, // whoever takes it tries again
      );
    }
    permit.release();
  }

  #endLater(resting: Promise<ChildProcess>, rest_ms: number): void {
    const onRested = () => {
      const at = this.#idle.indexOf(resting);
      if (at === -1) return; // it has work, or had some since
      this.#idle.splice(at, 1);
      void resting.then(end, () => {});
    };
    setTimeout(onRested, rest_ms).unref();
  }

  async #start(): Promise<ChildProcess> {
    const child = await startConfined(new URL('./media-process.ts', import.meta.url));
    child.on('error', () => {}); // a message to a process that has just died
    socketOf(child).on('error', () => {});
    const first = await nextAnswer(child);
    if (first.event === 'message') {
      if (this.#options.in_background) giveWay(child);
      return child;
    }
    child.kill('SIGKILL');
    throw new Error(`The process that reads media did not start (${first.event}).`);
  }
}

/** By which the process asks for bytes. */
function socketOf(child: ChildProcess): Socket {
  const socket = child.stdio[socket_descriptor];
  assert(socket instanceof Socket, 'a process that reads media has a socket');
  return socket;
}

/** `nice` of Unix: enough that everything else comes first, not so much that the work never ends. */
const low_priority = 10;

function giveWay({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, low_priority);
  } catch {
    // It has just died, or the system has no priorities.
  }
}

function end(child: ChildProcess): void {
  child.kill('SIGKILL');
}

/** An idle process does not keep the service alive. */
function keepAlive(child: ChildProcess, yes: boolean): void {
  if (yes) child.ref();
  else child.unref();
  if (yes) child.channel?.ref();
  else child.channel?.unref();
  if (yes) socketOf(child).ref();
  else socketOf(child).unref();
}

type ChildAnswer =
  | { event: 'message'; reply: MediaReply }
  /** `begun`: it had taken the file in hand. */
  | { event: 'exit'; begun: boolean }
  | { event: 'timeout' };

/** Resolves with the process's next event: it is ready, it answers, it dies, or it takes longer than this once it has begun. */
function nextAnswer(child: ChildProcess, timeout_ms = answer_timeout_ms): Promise<ChildAnswer> {
  return new Promise((resolve) => {
    let begun = false;
    const settle = (answer: ChildAnswer) => {
      clearTimeout(timer);
      child.off('message', onMessage).off('exit', onExit);
      resolve(answer);
    };
    const onTimeout = () => settle({ event: 'timeout' });
    const onExit = () => settle({ event: 'exit', begun });
    const onMessage = (message: unknown) => {
      const reply = message as MediaReply; // media-process.ts sends nothing else
      if (!('begun' in reply)) return settle({ event: 'message', reply });
      begun = true;
      clearTimeout(timer);
      timer = setTimeout(onTimeout, timeout_ms);
    };
    let timer = setTimeout(onTimeout, answer_timeout_ms);
    child.on('message', onMessage).on('exit', onExit);
  });
}
