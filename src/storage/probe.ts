import type { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import { Semaphore, type Permit } from '../concurrency/semaphore.ts';
import { assert } from '../lib/assert.ts';
import { socket_descriptor } from './byte-source.ts';
import { startConfined } from './confined.ts';
import { failed, type ProbeResult } from './probe-result.ts';
import type { Measurement } from './measure.ts';
import type { ProbeReply, ProbeRequest } from './probe-process.ts';
import { answerReads, openReadable, type Readable } from './read-requests.ts';

/** The process itself stops after 1.5 s of a processor (probe-process.ts); this is for a file that makes it wait. */
const probe_timeout_ms = 10_000;

/** Loading the libraries takes 0.3 s; a machine that needs this long to say a word is out of order. */
const answer_timeout_ms = 30_000;

const crashed = failed('crashed', 'The parser crashed or ran out of memory.');

/** So that one hostile file does not hold up all others: 3 s each, and callers can send sixty a minute. */
const processes_max = 3;

export type ProbeLimits = { measuring_processes: Semaphore; caller_files: Semaphore };

/** Files of callers never have all processes, and those of one account never all of the others: results must be measured. */
export function probeLimits(): ProbeLimits {
  return {
    measuring_processes: new Semaphore({ name: 'Processes that measure files', bound: processes_max }),
    caller_files: new Semaphore({ name: 'Measurements of input files', bound: processes_max - 1, key_bound: 1 }),
  };
}

/** Measures files, in processes of its own. */
export type Prober = {
  /**
   * Type, size, width, height and duration of a file, from its bytes (or those at a path, of which
   * only what is needed is read), never from its name. Files that cannot be measured answer with a
   * reason, within 1.5 s of a processor's time and 10 s of a clock's, and what a process needs to start,
   * whatever is in them. Rejects if the path cannot be read.
   */
  probe(origin: string | Uint8Array): Promise<ProbeResult>;
  /** The same, once more when it took too long or crashed: a busy machine does that, too. */
  probeAgain(origin: string | Uint8Array): Promise<ProbeResult>;
  /** The same for a file of a caller's, in the turn of its account. */
  probeForCaller(account_id: string, origin: string | Uint8Array): Promise<ProbeResult>;
  close(): void;
};

/**
 * The processes know no secrets of ours, open no files and have no network (confined.ts): they are sent the bytes that
 * they ask for. The parsers can be led into endless loops (43 bytes of FLAC do it) and endless lists, and V8 ends the
 * whole process when a heap, even that of a limited thread, overflows at once.
 */
export function openProber({ measuring_processes, caller_files }: ProbeLimits = probeLimits()): Prober {
  const processes = new Processes(measuring_processes);
  const probe = async (origin: string | Uint8Array): Promise<ProbeResult> => {
    const file = await openReadable(origin);
    try {
      // Each of the idle ones may be dead, and so may what others have put in their place meanwhile.
      for (let attempts = 0; attempts <= 2 * processes_max; attempts++) {
        const measured = await measureInProcess(processes, file);
        if (measured !== 'dead') return measured;
      }
      return crashed;
    } finally {
      await file.close();
    }
  };
  const probeAgain = async (origin: string | Uint8Array) => {
    const first = await probe(origin);
    const uncertain = !first.ok && (first.reason === 'timeout' || first.reason === 'crashed');
    return uncertain ? probe(origin) : first;
  };
  return {
    probe,
    probeAgain,
    probeForCaller: (account_id, origin) => caller_files.run(account_id, () => probeAgain(origin)),
    close: () => processes.close(),
  };
}

/** `dead`: the process never took the file; somebody killed it while it rested. */
async function measureInProcess(processes: Processes, file: Readable): Promise<ProbeResult | 'dead'> {
  const { child, release } = await processes.take();
  let reusable = false;
  let stopReads = () => {};
  try {
    const unread = new Promise<never>((_, onFailure) => {
      stopReads = answerReads(socketOf(child), file, onFailure);
    });
    unread.catch(() => {}); // when nobody waits for it any more
    child.send({ size_bytes: file.size_bytes } satisfies ProbeRequest);
    const answer = await Promise.race([nextAnswer(child), unread]);
    if (answer.event === 'exit' && !answer.begun) return 'dead';
    const { result, spent } = measurementOf(answer);
    reusable = !spent;
    return result;
  } finally {
    stopReads();
    release(reusable);
  }
}

/** By which the process asks for bytes. */
function socketOf(child: ChildProcess): Socket {
  const socket = child.stdio[socket_descriptor];
  assert(socket instanceof Socket, 'a process that measures files has a socket');
  return socket;
}

class Processes {
  readonly #limit: Semaphore;
  /** Processes without work, some still starting. */
  readonly #idle: Promise<ChildProcess>[] = [];
  #closed = false;

  constructor(limit: Semaphore) {
    this.#limit = limit;
  }

  /** An idle process, or a new one; waits while as many as there may be are at work. */
  async take(): Promise<{ child: ChildProcess; release: (reusable: boolean) => void }> {
    const permit = await this.#limit.acquire('');
    assert(permit, 'a process that measures files can be waited for');
    try {
      const ready = await this.#idle.shift()?.catch(() => undefined);
      const child = ready?.connected ? ready : await startProcess();
      keepAlive(child, true);
      return { child, release: (reusable) => this.#release(child, permit, reusable) };
    } catch (error) {
      permit.release();
      throw error;
    }
  }

  close(): void {
    this.#closed = true;
    for (const child of this.#idle.splice(0)) void child.then(end, () => {});
  }

  /** One that cannot be used again is replaced at once, so that the next file need not wait for it. */
  #release(child: ChildProcess, permit: Permit, reusable: boolean): void {
    if (!reusable || this.#closed) end(child);
    if (!this.#closed) {
      const successor = reusable ? Promise.resolve(child) : startProcess();
      this.#idle.push(successor);
      successor.then(
        (ready) => keepAlive(ready, false),
        () => {}, // whoever takes it tries again
      );
    }
    permit.release();
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

async function startProcess(): Promise<ChildProcess> {
  const child = await startConfined(new URL('./probe-process.ts', import.meta.url));
  child.on('error', () => {}); // a message to a process that has just died
  socketOf(child).on('error', () => {});
  const first = await nextAnswer(child);
  if (first.event === 'message') return child;
  child.kill('SIGKILL');
  throw new Error(`The process that measures files did not start (${first.event}).`);
}

function measurementOf(answer: ChildAnswer): Measurement {
  if (answer.event === 'timeout') {
    return { result: failed('timeout', `Measuring took longer than ${probe_timeout_ms} ms.`), spent: true };
  }
  if (answer.event === 'exit') {
    return { result: crashed, spent: true };
  }
  assert('result' in answer.reply, 'the process that measures files gave no result');
  return answer.reply;
}

type ChildAnswer =
  | { event: 'message'; reply: ProbeReply }
  /** `begun`: it had taken the file in hand. */
  | { event: 'exit'; begun: boolean }
  | { event: 'timeout' };

/** Resolves with the process's next event: it is ready, it answers, it dies, or it takes too long. */
function nextAnswer(child: ChildProcess): Promise<ChildAnswer> {
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
      const reply = message as ProbeReply; // probe-process.ts sends nothing else
      if (!('begun' in reply)) return settle({ event: 'message', reply });
      begun = true;
      clearTimeout(timer);
      timer = setTimeout(onTimeout, probe_timeout_ms);
    };
    let timer = setTimeout(onTimeout, answer_timeout_ms);
    child.on('message', onMessage).on('exit', onExit);
  });
}
