import type { ServerResponse } from 'node:http';
import { totalmem } from 'node:os';
import { ApiError } from '../errors.ts';
import { makeFairBudget, type Share } from '../lib/budget.ts';

/** Memory for large bodies, from before they are read until they are done with. */
export type BodyRooms = {
  /**
   * Waits until there is room for so many bytes beside the others of the same sender, and of all. Rejects with
   * ApiError 429 where that takes too long, and when `response` is closed meanwhile.
   */
  take(sender: string, bytes: number, response: ServerResponse): Promise<Share>;
};

/**
 * A body of 31 MB takes 100 to 150 MB while it is on its way: its bytes, what is parsed of them, and what is sent on.
 * So all of them take a third of the memory at most. Thirty that hung took 4.3 GB before they were counted, 1.3 since.
 */
export function bodiesBytesMax(): number {
  const memory_bytes = Math.min(totalmem(), process.constrainedMemory() || Infinity);
  return Math.max(bytes_min, Math.min(bytes_max, memory_bytes / 16));
}

/** Two of the largest that there may be. */
const bytes_min = 64_000_000;
const bytes_max = 512_000_000;

export function openBodyRooms(total_bytes: number, patience_ms: number): BodyRooms {
  const budget = makeFairBudget(total_bytes);
  return {
    async take(sender, bytes, response) {
      const waiting = new AbortController();
      const giveUp = () => waiting.abort(noRoom());
      const timer = setTimeout(giveUp, patience_ms);
      response.on('close', giveUp);
      try {
        const share = await budget.take(sender, bytes, waiting.signal);
        if (!response.destroyed) return share;
        share.release(); // both in one turn: nobody will say any more that it is over
        throw noRoom();
      } finally {
        clearTimeout(timer);
        response.off('close', giveUp);
      }
    },
  };
}

const retry_after_s = 2;

function noRoom(): ApiError {
  const message = 'Too many large requests are under way. Try again when one of them has ended.';
  return new ApiError('rate_limit', message, { headers: { 'retry-after': String(retry_after_s) } });
}
