import { setTimeout as sleep } from 'node:timers/promises';

/** The system has not answered in time, as on a network mount that is away, or a pipe that nobody writes to. */
export class NoAnswer extends Error {
  override name = 'NoAnswer';
}

/** Returns the result of `work`. Throws NoAnswer with `message` after `limit_ms`; the work itself goes on. */
export async function withTimeLimit<T>(limit_ms: number, work: Promise<T>, message: string): Promise<T> {
  const over = new AbortController();
  const late = sleep(limit_ms, undefined, { signal: over.signal }).then(() => {
    throw new NoAnswer(message);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort();
    late.catch(() => undefined);
    work.catch(() => undefined);
  }
}

/**
 * Ends the process after an error. After NoAnswer a thread is still inside the system, and exit() would wait for it
 * for ever: only SIGKILL does not.
 */
export function endAfter(error: unknown, exit_code: number): never {
  if (error instanceof NoAnswer) process.kill(process.pid, 'SIGKILL');
  process.exit(exit_code);
}
