import type { ServerResponse } from 'node:http';
import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import { acquireBodyMemory } from '../limits/body-memory.ts';

/**
 * Waits for the memory of a large body, which is taken before it is read. Rejects with ApiError 429 where that takes
 * too long, and when `response` is closed meanwhile.
 */
export async function takeBodyMemory(
  quota: Semaphore,
  sender: string,
  bytes: number,
  { response, timeout_ms }: { response: ServerResponse; timeout_ms: number },
): Promise<Permit> {
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  if (response.destroyed) leave();
  response.on('close', leave);
  try {
    return await acquireBodyMemory(quota, sender, bytes, { timeout_ms, signal: leaving.signal });
  } finally {
    response.off('close', leave);
  }
}
