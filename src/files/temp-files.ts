import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';
import { withSpool, type Spool } from './spool.ts';

/** The parts of the service that temp files need. */
export type TempFileParts = { config: { data_dir: string }; limits: { temp_files: Semaphore } };

/** The part of a call that tells whether its caller is still there. */
export type GoneSignal = { readonly gone: AbortSignal };

/** For the files that one request needs beside its body. */
export type RequestTempFiles = GoneSignal & {
  /**
   * To be called before any other permit is taken: it waits for one, and requests that have theirs may wait for
   * others. Throws ApiError 429 if there is none for a minute, or the caller leaves.
   */
  open(): Promise<Spool>;
};

/** As long as a caller may have to wait for one file. */
const timeout_ms = 60_000;

/** Does `work` with a spool for files of a caller's, which takes a permit when it is opened. */
export async function withTempFiles<T>(
  { config, limits }: TempFileParts,
  account_id: string,
  call: GoneSignal,
  work: (files: RequestTempFiles) => Promise<T>,
): Promise<T> {
  let acquiring: Promise<Permit | undefined> | undefined;
  const open = async (spool: Spool) => {
    acquiring ??= limits.temp_files.acquire(account_id, { timeout_ms, signal: call.gone });
    if (!(await acquiring)) throw tooManyFiles();
    return spool;
  };
  try {
    return await withSpool(config.data_dir, (spool) =>
      work({
        open: () => open(spool),
        get gone() {
          return call.gone;
        },
      }),
    );
  } finally {
    (await acquiring)?.release();
  }
}

/** A permit for a request that is nothing but files: at once, or not. Throws ApiError 429. */
export function takeTempFiles({ limits }: Pick<TempFileParts, 'limits'>, account_id: string): Permit {
  const permit = limits.temp_files.tryAcquire(account_id);
  if (permit) return permit;
  throw tooManyFiles();
}

function tooManyFiles(): ApiError {
  const message = 'Too many requests with files are in progress. Try again when one of them has ended.';
  return new ApiError('rate_limit', message, { headers: { 'retry-after': '1' } });
}
