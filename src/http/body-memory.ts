import type { ServerResponse } from 'node:http';
import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';

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
  response.on('close', leave);
  try {
    const permit = await quota.acquire(sender, { weight: bytes, timeout_ms, signal: leaving.signal });
    if (permit && !response.destroyed) return permit;
    permit?.release(); // both in one turn: nobody will say any more that it is over
  } finally {
    response.off('close', leave);
  }
  const message = 'Too many large requests are in progress. Try again when one of them has ended.';
  throw new ApiError('rate_limit', message, { headers: { 'retry-after': String(retry_after_s) } });
}

const retry_after_s = 2;
