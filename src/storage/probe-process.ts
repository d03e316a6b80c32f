import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import type { Measurement } from './measure.ts';

// The process in which probe.ts has files measured: a path or bytes in, a ProbeReply out, one at a
// time. The work is done in a thread of it, so that the process itself, whatever the file does to
// the thread, notices at once when the service is gone, and goes too.

/** `begun`: what follows is the file's doing. `unreadable`: the file could not be opened. */
export type ProbeReply = { ready: true } | { begun: true } | Measurement | { unreadable: string };

/** Beyond this V8 ends the process, which is why it is not the service's own. */
const heap_limit = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16 };

if (isMainThread) relay();
else await work();

function relay(): void {
  const thread = new Worker(new URL(import.meta.url), { resourceLimits: heap_limit });
  thread.on('message', (reply: ProbeReply) => process.send?.(reply));
  thread.on('error', () => process.exit(1));
  process.on('message', (origin) => {
    process.send?.({ begun: true } satisfies ProbeReply);
    thread.postMessage(origin, []);
  });
  process.on('disconnect', () => process.exit());
  // A terminal's Ctrl-C and a service manager's stop reach us too, while the service still drains.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
}

async function work(): Promise<void> {
  const { measure } = await import('./measure.ts'); // 40 MB of code that relay() has no use for
  const reply = (message: ProbeReply) => parentPort?.postMessage(message, []);
  process.on('unhandledRejection', () => {}); // what a parser leaves behind belongs to no later file
  parentPort?.on('message', (origin: string | Uint8Array) => {
    void measure(origin).then(
      (measurement) => reply(measurement),
      (error: unknown) => reply({ unreadable: String(error) }),
    );
  });
  reply({ ready: true });
}
