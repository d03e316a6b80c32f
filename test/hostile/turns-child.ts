/**
 * Loaded into the service's process before the service itself (`node --import`): reports turns of the main thread's
 * event loop that use much CPU, and the memory when asked. Time of the CPU and not of the clock: what other processes
 * of the machine take is no delay of the service's own.
 */
import { existsSync, readdirSync } from 'node:fs';
import { Socket } from 'node:net';
import { isMainThread } from 'node:worker_threads';

/** Both ends speak in lines of JSON over this descriptor, which only the service itself inherits. */
const descriptor = 3;

const every_ms = 5;

/** Shorter turns are reported by nobody: the limit is in turns.ts. */
const report_ms = 100;

/** Linux alone has it. */
const threads_folder = '/proc/self/task';

// Threads and processes of the service's own inherit the option.
if (isMainThread && process.argv[1]?.endsWith('src/main.ts') === true) watchTurns();

function watchTurns(): void {
  const parent = new Socket({ fd: descriptor });
  parent.unref();
  parent.on('error', () => {}); // the parent is gone
  parent.on('data', () => parent.write(`${JSON.stringify({ memory: memoryAfterCollection() })}\n`));
  let cpu_before_ms = cpuMs();
  let at_before_ms = Date.now();
  setInterval(() => {
    const cpu_now_ms = cpuMs();
    const now_ms = Date.now();
    const cpu_ms = cpu_now_ms - cpu_before_ms;
    if (cpu_ms > report_ms)
      parent.write(`${JSON.stringify({ turn: { from_ms: at_before_ms, to_ms: now_ms, cpu_ms } })}\n`);
    cpu_before_ms = cpu_now_ms;
    at_before_ms = now_ms;
  }, every_ms).unref();
}

/** Of this thread alone: collecting garbage beside it, and threads that hash and draw, delay nobody. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function memoryAfterCollection(): { heap_mb: number; external_mb: number; resident_mb: number; threads: number } {
  globalThis.gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  const megabytes = (bytes: number) => Math.round(bytes / 1_000_000);
  return {
    heap_mb: megabytes(heapUsed),
    external_mb: megabytes(external),
    resident_mb: megabytes(rss),
    threads: existsSync(threads_folder) ? readdirSync(threads_folder).length : 0,
  };
}
