import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { access, constants, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assert } from '../lib/assert.ts';
import { failed, type ProbeResult } from './probe-result.ts';
import type { ProbeReply } from './probe-process.ts';

/** Honest files take 1 to 200 ms. */
const probe_timeout_ms = 1_500;

/** Loading the libraries takes 0.3 s; a machine that needs this long is out of order. */
const start_timeout_ms = 30_000;

/** More is handed over in a file: each MB sent takes 4 ms and is copied three times. */
const sent_bytes_max = 2 ** 18;

/** So that one hostile file does not hold up all others. */
const processes_max = 2;

/**
 * Type, size, width, height and duration of a file, from its bytes (or those at a path, of which
 * only what is needed is read), never from its name. Files that cannot be measured answer with a
 * reason, within two seconds, whatever is in them. Throws if the path cannot be read.
 *
 * It runs in processes of its own. The parsers can be led into endless loops (a FLAC file of 260
 * bytes does it) and endless lists, and V8 ends the whole process when a heap, even that of a
 * limited thread, overflows at once.
 */
export async function probeMedia(origin: string | Uint8Array): Promise<ProbeResult> {
  if (typeof origin === 'string') {
    await access(origin, constants.R_OK);
  } else if (origin.byteLength > sent_bytes_max) {
    return probeThroughFile(origin);
  }
  const child = await takeProcess();
  let reusable = false;
  try {
    const result = resultOf(await ask(child, origin));
    // What a bad file did to the process stays unknown, unless no parser has seen it.
    reusable = result.ok || ['empty', 'unrecognized', 'truncated'].includes(result.reason);
    return result;
  } finally {
    giveBack(child, reusable);
  }
}

async function probeThroughFile(bytes: Uint8Array): Promise<ProbeResult> {
  const path = join(tmpdir(), `medley-probe-${randomUUID()}`);
  try {
    await writeFile(path, bytes, { flag: 'wx', mode: 0o600 });
    return await probeMedia(path);
  } finally {
    await rm(path, { force: true });
  }
}

const idle = new Set<ChildProcess>();
const waiting: (() => void)[] = [];
let taken = 0;

/** An idle process, or a new one; waits while as many as there may be are at work. */
async function takeProcess(): Promise<ChildProcess> {
  if (taken >= processes_max) await new Promise<void>((resolve) => waiting.push(resolve));
  else taken += 1;
  try {
    const [child] = idle;
    if (!child) return await startProcess();
    idle.delete(child);
    keepsAlive(child, true);
    return child;
  } catch (error) {
    passOn();
    throw error;
  }
}

function giveBack(child: ChildProcess, reusable: boolean): void {
  if (reusable && child.connected) {
    idle.add(child);
    keepsAlive(child, false);
  } else {
    child.kill('SIGKILL');
  }
  passOn();
}

/** The place of a process goes to the next who waits. */
function passOn(): void {
  const next = waiting.shift();
  if (next) next();
  else taken -= 1;
}

/** Whether the service waits for this process before it ends; it does not for an idle one. */
function keepsAlive(child: ChildProcess, yes: boolean): void {
  if (yes) child.ref();
  else child.unref();
  if (yes) child.channel?.ref();
  else child.channel?.unref();
}

async function startProcess(): Promise<ChildProcess> {
  const source = fileURLToPath(new URL('./probe-process.ts', import.meta.url));
  const file = source.replace(/\.ts$/, extname(import.meta.url)); // `.js` once published
  const child = fork(file, { execArgv: [], serialization: 'advanced', stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  child.on('error', () => {}); // a message to a process that has just died
  child.on('exit', () => idle.delete(child));
  const first = await nextEvent(child, start_timeout_ms);
  if (first.event === 'message') return child;
  child.kill('SIGKILL');
  throw new Error(`The process that measures files did not start (${first.event}): node ${file}`);
}

function ask(child: ChildProcess, origin: string | Uint8Array): Promise<ChildEvent> {
  child.send(origin);
  return nextEvent(child, probe_timeout_ms);
}

function resultOf(answer: ChildEvent): ProbeResult {
  if (answer.event === 'timeout') return failed('timeout', `Measuring took longer than ${probe_timeout_ms} ms.`);
  if (answer.event === 'exit') return failed('crashed', 'The parser crashed or ran out of memory.');
  if ('unreadable' in answer.reply) throw new Error(answer.reply.unreadable);
  assert('result' in answer.reply, 'the process that measures files gave no result');
  return answer.reply.result;
}

type ChildEvent = { event: 'message'; reply: ProbeReply } | { event: 'exit' } | { event: 'timeout' };

/** What the process does first. */
function nextEvent(child: ChildProcess, timeout_ms: number): Promise<ChildEvent> {
  return new Promise((resolve) => {
    const onMessage = (reply: unknown) => settle({ event: 'message', reply: reply as ProbeReply }); // see probe-process.ts
    const onExit = () => settle({ event: 'exit' });
    const timer = setTimeout(() => settle({ event: 'timeout' }), timeout_ms);
    const settle = (event: ChildEvent) => {
      clearTimeout(timer);
      child.off('message', onMessage).off('exit', onExit);
      resolve(event);
    };
    child.on('message', onMessage).on('exit', onExit);
  });
}
