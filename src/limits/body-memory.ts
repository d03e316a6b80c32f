import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';

const retry_after_s = 2;

/** Waits for the memory of a large request. Rejects with ApiError 429 where that takes too long, or its caller leaves. */
export async function acquireBodyMemory(
  quota: Semaphore,
  sender: string,
  bytes: number,
  { timeout_ms, signal }: { timeout_ms: number; signal: AbortSignal },
): Promise<Permit> {
  const permit = await quota.acquire(sender, { weight: bytes, timeout_ms, signal });
  if (permit && !signal.aborted) return permit;
  permit?.release(); // both in one turn: nobody will say any more that it is over
  throw tooManyLarge();
}

/** The error of a request that finds no memory in its time. */
export function tooManyLarge(): ApiError {
  const message = 'Too many large requests are in progress. Try again when one of them has ended.';
  return new ApiError('rate_limit', message, { headers: { 'retry-after': String(retry_after_s) } });
}
