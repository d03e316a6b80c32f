import { Semaphore } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';
import { isStopped, report_connections, type Db } from './database.ts';

/** Limits lists and reports of one node: as many at once as there are connections for them, in turn between accounts. */
export function readsLimit(): { reads: Semaphore } {
  return { reads: new Semaphore({ name: 'Lists and reports', bound: report_connections, key_bound: 'fair' }) };
}

/** Whoever waits longer for a turn asks again. */
const turn_limit_ms = 10_000;

/** The parts of the app that readers of lists and reports take. */
export type ReadParts = { readonly db: Db; readonly limits: { readonly reads: Semaphore } };

/** The reader of a statement: `key` is mostly an account, `gone` is aborted when nobody waits for it any more. */
type Reader = { key: string; gone: AbortSignal };

/**
 * The same database for lists and reports: on few connections of their own, in turn between accounts, so
 * that they never keep calls and money waiting. Rejects with ApiError 429 where a statement's turn does not come,
 * and 504 where PostgreSQL ends it, for it takes too long. What has a patience of its own is as ever.
 */
export function reading({ db, limits }: ReadParts, reader: Reader): Db {
  const limit = limits.reads;
  return {
    ...db,
    query: (text, values, patience) =>
      patience ? db.query(text, values, patience) : inTurn(limit, reader, () => db.query(text, values, 'report')),
    tx: (work, patience) => (patience ? db.tx(work, patience) : inTurn(limit, reader, () => db.tx(work, 'report'))),
  };
}

async function inTurn<T>(limit: Semaphore, { key, gone }: Reader, read: () => Promise<T>): Promise<T> {
  const permit = await limit.acquire(key, { timeout_ms: turn_limit_ms, signal: gone });
  if (!permit) {
    const message = 'Too many lists and reports are being read at the moment. Try again shortly.';
    throw new ApiError('rate_limit', message, { headers: { 'retry-after': '2' } });
  }
  try {
    return await read();
  } catch (error) {
    if (!isStopped(error)) throw error;
    const message = 'Reading this took too long. Ask for less: a shorter time, or another filter.';
    throw new ApiError('timeout', message, { headers: { 'x-should-retry': 'false' } });
  } finally {
    permit.release();
  }
}
