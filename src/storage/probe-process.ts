import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { openSocketSource, socket_descriptor } from './byte-source.ts';
import { failed } from './probe-result.ts';
import type { Measurement } from './measure.ts';

// The process in which probe.ts has files measured: a size in, a ProbeReply out, one at a time. It
// opens no file: the bytes come through a socket, as it asks for them. The work is done in a thread
// of it, so that the process itself, whatever the file does to the thread, notices at once when the
// service is gone, and goes too.

/** `begun`: what follows is the file's doing. */
export type ProbeReply = { ready: true } | { begun: true } | Measurement;

/** Size of the file in bytes; the bytes are read through the socket. */
export type ProbeRequest = { size_bytes: number };

/** Honest files take 1 to 200 ms of a processor. The time of a clock would refuse them on a busy machine. */
const processor_ms_max = 1_500;

/** Beyond this V8 ends the process, which is why it is not the service's own. */
const heap_limit = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16 };

/** Nobody's number: below those of the system's dynamic users, above those of people. The database has `nobody`. */
const unused_user_id = 61_183;

const took_too_long: Measurement = {
  result: failed('timeout', `Measuring took longer than ${processor_ms_max} ms of a processor.`),
  spent: true,
};

if (isMainThread) relay();
else await work();

function relay(): void {
  const thread = new Worker(new URL(import.meta.url), { resourceLimits: heap_limit });
  let timer: NodeJS.Timeout | undefined;
  thread.on('message', (reply: ProbeReply | 'loaded') => {
    clearTimeout(timer);
    if (reply === 'loaded') leaveRoot();
    process.send?.(reply === 'loaded' ? { ready: true } : reply);
  });
  thread.on('error', () => process.exit(1));
  process.on('message', (request: ProbeRequest) => {
    process.send?.({ begun: true } satisfies ProbeReply);
    thread.postMessage(request, []);
    const before = process.cpuUsage();
    const check = () => {
      const { user, system } = process.cpuUsage(before);
      const rest_ms = processor_ms_max - (user + system) / 1_000;
      if (rest_ms <= 0) process.send?.(took_too_long);
      else timer = setTimeout(check, Math.max(rest_ms, 10));
    };
    timer = setTimeout(check, processor_ms_max);
  });
  process.on('disconnect', () => process.exit());
  // A terminal's Ctrl-C and a service manager's stop reach us too, while the service still drains.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
}

/**
 * Root becomes a user who owns nothing, in all threads, once the libraries are loaded: that user
 * need not be able to read them. Root without the right to become anybody, as in some containers,
 * stays what it is.
 */
function leaveRoot(): void {
  try {
    if (process.getuid?.() === 0) {
      process.setgroups?.([]);
      process.setgid?.(unused_user_id);
      process.setuid?.(unused_user_id);
    }
  } catch {
    // A root that may not do that may not do much else.
  }
}

async function work(): Promise<void> {
  const { measure } = await import('./measure.ts'); // 40 MB of code that relay() has no use for
  process.on('unhandledRejection', () => {}); // what a parser leaves behind belongs to no later file
  parentPort?.on('message', ({ size_bytes }: ProbeRequest) => {
    void measure(openSocketSource(socket_descriptor, size_bytes)).then((measurement) =>
      parentPort?.postMessage(measurement, []),
    );
  });
  parentPort?.postMessage('loaded', []);
}
