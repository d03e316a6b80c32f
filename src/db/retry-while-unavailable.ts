import { setTimeout as sleep } from 'node:timers/promises';
import { isUnavailable } from './database.ts';

/** A PostgreSQL that restarts is back within seconds, one that fails over within half a minute. */
const patience_ms = 60_000;
const pause_ms = 100;

/**
 * Repeats a call that is safe to repeat for as long as the database is away. For what nobody else
 * knows: an upstream's answer that is not written down is lost, and the run with it. Once `given_up` is aborted, it is
 * not repeated any more.
 */
export async function retryWhileUnavailable<T>(call: () => Promise<T>, given_up?: AbortSignal): Promise<T> {
  const give_up_at_ms = performance.now() + patience_ms;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isUnavailable(error) || given_up?.aborted || performance.now() > give_up_at_ms) throw error;
    }
    await sleep(pause_ms);
  }
}
