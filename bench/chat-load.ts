/**
 * The callers, in a process of its own: written requests on raw sockets, so that they cost a small part of what
 * they measure. Closed loop (as fast as answers come), at a fixed rate (waits in our own queue count),
 * or streams whose every gap is looked at.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { first_words } from './chat-upstream.ts';
import { quantile } from './service.ts';

/** Whole requests as text, sent one after the other in a circle. */
type Asks = { port: number; requests: string[] };

export type Job =
  | ({ kind: 'closed'; connections: number; duration_ms: number } & Asks)
  | ({ kind: 'paced'; connections: number; duration_ms: number; per_s: number } & Asks)
  | ({ kind: 'streams'; count: number; starts_per_s: number } & Asks);

/** Times in ms. `first`: until the first words of a stream. `cpu_us`: of this process, per request. */
export type Load = {
  count: number;
  per_s: number;
  p50_ms: number;
  p99_ms: number;
  first_p50_ms: number;
  first_p99_ms: number;
  frames: number;
  stalls: number;
  longest_gap_ms: number;
  cpu_us: number;
  /** Of one core, while it ran. */
  cpu_share: number;
};

export type Loader = { child: ChildProcess; run(job: Job): Promise<Load>; stop(): void };

export function startLoader(): Loader {
  const child = fork(import.meta.filename, ['--load']);
  const run = async (job: Job): Promise<Load> => {
    child.send(job);
    const [answer] = (await once(child, 'message')) as [{ load: Load } | { error: string }];
    if ('error' in answer) throw new Error(answer.error);
    return answer.load;
  };
  return { child, run, stop: () => void child.kill('SIGKILL') };
}

/** A gap in a stream that a reader would notice. */
const stall_ms = 100;

type Tally = {
  latencies: number[];
  firsts: number[];
  frames: number;
  stalls: number;
  longest_gap_ms: number;
};

async function work(job: Job): Promise<Load> {
  const tally: Tally = { latencies: [], firsts: [], frames: 0, stalls: 0, longest_gap_ms: 0 };
  const started_ms = performance.now();
  const cpu = process.cpuUsage();
  let per_s: number | undefined;
  if (job.kind === 'closed') per_s = await runClosed(job, tally);
  else if (job.kind === 'paced') await runPaced(job, tally);
  else await runStreams(job, tally);
  const elapsed_ms = performance.now() - started_ms;
  const { user, system } = process.cpuUsage(cpu);
  const { latencies, firsts, ...rest } = tally;
  return {
    ...rest,
    count: latencies.length,
    per_s: per_s ?? latencies.length / (elapsed_ms / 1000),
    p50_ms: quantile(latencies, 0.5),
    p99_ms: quantile(latencies, 0.99),
    first_p50_ms: quantile(firsts, 0.5),
    first_p99_ms: quantile(firsts, 0.99),
    cpu_us: (user + system) / latencies.length,
    cpu_share: (user + system) / 1000 / elapsed_ms,
  };
}

/** Answers per second while all connections were busy: to open them, and the last answer of each, is no part of it. */
async function runClosed(job: Extract<Job, { kind: 'closed' }>, tally: Tally): Promise<number> {
  const next = circle(job.requests);
  const lines = await Promise.all(Array.from({ length: job.connections }, () => openLine(job.port)));
  const end_ms = performance.now() + job.duration_ms;
  let in_time = 0;
  const loop = async (line: Line) => {
    for (let now_ms = performance.now(); now_ms < end_ms;) {
      await line.ask(next());
      const answered_ms = performance.now();
      tally.latencies.push(answered_ms - now_ms);
      if (answered_ms <= end_ms) in_time += 1;
      now_ms = answered_ms;
    }
    line.close();
  };
  await Promise.all(lines.map(loop));
  return in_time / (job.duration_ms / 1000);
}

/** Sends requests at a fixed rate. One that is due while every connection is busy waits, and its waiting counts. */
async function runPaced(job: Extract<Job, { kind: 'paced' }>, tally: Tally): Promise<void> {
  const next = circle(job.requests);
  const lines = await Promise.all(Array.from({ length: job.connections }, () => openLine(job.port)));
  const idle = [...lines];
  const due_ms: number[] = [];
  const total = Math.round((job.per_s * job.duration_ms) / 1000);
  const started_ms = performance.now();
  let planned = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const pump = () => {
    while (idle.length > 0 && due_ms.length > 0) {
      const line = idle.pop();
      const since_ms = due_ms.shift() ?? 0;
      line?.ask(next()).then(() => {
        tally.latencies.push(performance.now() - since_ms);
        idle.push(line);
        if (tally.latencies.length === total) resolve();
        else pump();
      }, reject);
    }
  };
  const timer = setInterval(() => {
    for (; planned < total && performance.now() - started_ms >= (planned * 1000) / job.per_s; planned++) {
      due_ms.push(performance.now());
    }
    pump();
  }, 1);
  await promise.finally(() => clearInterval(timer));
  for (const line of lines) line.close();
}

/** Each stream on a connection of its own, started one after the other. */
async function runStreams(job: Extract<Job, { kind: 'streams' }>, tally: Tally): Promise<void> {
  const next = circle(job.requests);
  let broken = false;
  const one = async (i: number) => {
    await sleep((i * 1000) / job.starts_per_s);
    if (broken) return;
    const line = await openLine(job.port);
    const sent_ms = performance.now();
    let last_ms = Number.NaN;
    let tail = '';
    await line.ask(next(), (chunk) => {
      const now_ms = performance.now();
      const gap_ms = now_ms - last_ms;
      if (gap_ms > stall_ms) tally.stalls += 1;
      if (gap_ms > tally.longest_gap_ms) tally.longest_gap_ms = gap_ms;
      if (Number.isNaN(last_ms)) {
        if (!chunk.includes(first_words)) return;
        tally.firsts.push(now_ms - sent_ms);
      }
      last_ms = now_ms;
      tally.frames += countFrames(chunk);
      tail = (tail + chunk.toString('latin1')).slice(-400);
    });
    if (!/\[DONE\]|message_stop/.test(tail)) throw new Error(`a stream ended with ${JSON.stringify(tail)}`);
    tally.latencies.push(performance.now() - sent_ms);
    line.close();
  };
  const all = Promise.all(Array.from({ length: job.count }, (_, i) => one(i)));
  await all.catch((error: unknown) => {
    broken = true;
    throw error;
  });
}

function countFrames(chunk: Buffer): number {
  let count = 0;
  for (let at = chunk.indexOf('\n\n'); at !== -1; at = chunk.indexOf('\n\n', at + 2)) count += 1;
  return count;
}

function circle(requests: readonly string[]): () => Buffer {
  const bytes = requests.map((text) => Buffer.from(text));
  let at = 0;
  return () => bytes[at++ % bytes.length] ?? Buffer.alloc(0);
}

/** One connection: one request at a time. */
type Line = { ask(request: Buffer, onData?: (chunk: Buffer) => void): Promise<void>; close(): void };

async function openLine(port: number): Promise<Line> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  let current: Pending | undefined;
  socket.on('data', (chunk) => {
    if (!current || typeof chunk === 'string') return;
    current.onData?.(chunk);
    const { resolve } = current;
    try {
      if (!isOver(current, chunk)) return;
    } catch (error) {
      return fail(String(error));
    }
    current = undefined;
    resolve();
  });
  const fail = (reason: string) => current?.reject(new Error(reason));
  socket.on('error', (error) => fail(error.message));
  socket.on('close', () => fail('the connection was closed'));
  return {
    ask: (request, onData) =>
      new Promise<void>((resolve, reject) => {
        current = { resolve, reject, onData, head: undefined, left: 0, seen: [] };
        socket.write(request);
      }),
    close: () => close(socket),
  };
}

function close(socket: Socket): void {
  socket.removeAllListeners('close').on('error', () => undefined);
  socket.destroy();
}

type Pending = {
  resolve: () => void;
  reject: (error: Error) => void;
  onData: ((chunk: Buffer) => void) | undefined;
  head: 'sized' | 'chunked' | undefined;
  /** Bytes of a sized answer that are still to come. */
  left: number;
  seen: Buffer[];
};

/** True once the answer is whole. Chunked ones end with the last chunk, since nothing is pipelined. */
function isOver(pending: Pending, chunk: Buffer): boolean {
  if (pending.head === 'sized') return (pending.left -= chunk.length) <= 0;
  if (pending.head === 'chunked') return endsChunks(pending, chunk);
  pending.seen.push(chunk);
  const bytes = pending.seen.length === 1 ? chunk : Buffer.concat(pending.seen);
  const head_end = bytes.indexOf('\r\n\r\n');
  if (head_end === -1) return false;
  const head = bytes.toString('latin1', 0, head_end);
  if (!head.startsWith('HTTP/1.1 20')) throw new Error(bytes.toString('latin1', 0, 600));
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  pending.seen = [];
  if (length === undefined) {
    pending.head = 'chunked';
    return endsChunks(pending, bytes.subarray(head_end + 4));
  }
  pending.head = 'sized';
  pending.left = Number(length) - (bytes.length - head_end - 4);
  return pending.left <= 0;
}

const chunks_end = '0\r\n\r\n';

/** The end itself may come in two pieces. */
function endsChunks(pending: Pending, chunk: Buffer): boolean {
  const short = chunk.length < chunks_end.length;
  const tail = short ? Buffer.concat([...pending.seen, chunk]) : chunk;
  pending.seen = [Buffer.from(tail.subarray(-chunks_end.length))];
  return tail.toString('latin1', Math.max(0, tail.length - chunks_end.length)) === chunks_end;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (process.argv.includes('--load')) {
  process.on('disconnect', () => process.exit());
  process.on('uncaughtException', (error) => {
    process.send?.({ error: String(error) });
  });
  process.on('message', (job: Job) => {
    work(job).then(
      (load) => process.send?.({ load }),
      (error: unknown) => process.send?.({ error: String(error) }),
    );
  });
}
