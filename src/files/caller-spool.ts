import { ApiError } from '../errors.ts';
import { withSpool, type Spool } from './spool.ts';

/** What this needs of the service; its places are counted by it. */
export type SpoolParts = { config: { data_dir: string } };

/**
 * Does `work` with a spool for files of a caller's, which takes a place when the first of them comes. Throws ApiError
 * 429 then, if there is none.
 */
export async function withCallerSpool<T>(
  parts: SpoolParts,
  account_id: string,
  work: (spool: Spool) => Promise<T>,
): Promise<T> {
  let leave: (() => void) | undefined;
  try {
    return await withSpool(parts.config.data_dir, ({ add }) =>
      work({
        async add(fill) {
          leave ??= takePlace(parts, account_id);
          return add(fill);
        },
      }),
    );
  } finally {
    leave?.();
  }
}

const at_once_per_account = 8;
const at_once = 64;

const taken = new WeakMap<SpoolParts, Map<string, number>>();

/**
 * A place for a request with files, which lie on the disk before anything counts them: so many at once, and no more.
 * Answers how to leave it; throws ApiError 429 if there is none.
 */
export function takePlace(parts: SpoolParts, account_id: string): () => void {
  const counts = taken.get(parts) ?? new Map<string, number>();
  taken.set(parts, counts);
  const own = counts.get(account_id) ?? 0;
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  if (own >= at_once_per_account || all >= at_once) {
    const message = 'Too many uploads are under way. Try again when one of them has ended.';
    throw new ApiError('rate_limit', message, { headers: { 'retry-after': '1' } });
  }
  counts.set(account_id, own + 1);
  return () => {
    const left = (counts.get(account_id) ?? 1) - 1;
    if (left > 0) counts.set(account_id, left);
    else counts.delete(account_id);
  };
}
