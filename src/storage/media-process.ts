import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { openSocketSource, socket_descriptor } from './byte-source.ts';
import { keepImageThreads } from '../lib/image-threads.ts';
import type { ProbeResult } from './probe-result.ts';
import type { DrawnThumbnails } from './drawing.ts';

// The process in which files of others are read (media-processes.ts): a MediaRequest in, a MediaReply out, one at a
// time. It opens no file: the bytes come through a socket, as it asks for them. The work is done in a thread
// of it, so that the process itself, whatever the file does to the thread, notices at once when the
// service is gone, and goes too.

/** The size of the file in bytes; the bytes are read through the socket. */
export type MediaRequest = { work: 'measure' | 'draw'; size_bytes: number };

export type MediaResult = ProbeResult | DrawnThumbnails | 'timeout';

/**
 * `begun`: what follows is the file's doing. `spent`: something of the parser may still be running, and the next file
 * should be read by another process.
 */
export type MediaReply = { ready: true } | { begun: true } | { done: MediaResult; spent: boolean };

/** Honest files take 1 to 200 ms to measure, up to 2 s to draw. The time of a clock would refuse them on a busy machine. */
const processor_ms_max = { measure: 1_500, draw: 4_000 };

/** Beyond this V8 ends the process, which is why it is not the service's own. */
const heap_limit = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16 };

/** Libraries that are not V8's have no such limit. An image of the most pixels that are drawn takes 400 MB. */
const memory_bytes_max = 800_000_000;

/** Time between two looks at the memory. */
const look_ms = 50;

/** Nobody's number: below those of the system's dynamic users, above those of people. The database has `nobody`. */
const unused_user_id = 61_183;

if (isMainThread) relay();
else await work();

function relay(): void {
  keepImageThreads();
  const thread = new Worker(new URL(import.meta.url), { resourceLimits: heap_limit });
  let timer: NodeJS.Timeout | undefined;
  thread.on('message', (reply: MediaReply | 'loaded') => {
    clearTimeout(timer);
    if (reply === 'loaded') leaveRoot();
    process.send?.(reply === 'loaded' ? { ready: true } : reply);
  });
  thread.on('error', () => process.exit(1));
  process.on('message', (request: MediaRequest) => {
    process.send?.({ begun: true } satisfies MediaReply);
    thread.postMessage(request, []);
    const before = process.cpuUsage();
    const look = () => {
      const { user, system } = process.cpuUsage(before);
      if (process.memoryUsage.rss() > memory_bytes_max) process.exit(1);
      const rest_ms = processor_ms_max[request.work] - (user + system) / 1_000;
      if (rest_ms <= 0) process.send?.({ done: 'timeout', spent: true } satisfies MediaReply);
      else timer = setTimeout(look, Math.min(look_ms, Math.max(rest_ms, 10)));
    };
    timer = setTimeout(look, look_ms);
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
  const { draw } = await import('./drawing.ts');
  process.on('unhandledRejection', () => {}); // what a parser leaves behind belongs to no later file
  const works = { measure, draw };
  parentPort?.on('message', ({ work: name, size_bytes }: MediaRequest) => {
    void works[name](openSocketSource(socket_descriptor, size_bytes)).then((reply: MediaReply) =>
      parentPort?.postMessage(reply, []),
    );
  });
  parentPort?.postMessage('loaded', []);
}
