import type { Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { ApiError } from '../errors.ts';

/** A decoder of zstd may otherwise be told to keep 128 MB. */
const zstd_window_log_max = 23;

const decoders = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
  ['zstd', () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: zstd_window_log_max } })],
]);

/** Returns whether a `content-encoding` leaves anything to decode. */
export function isEncoded(encoding: string | undefined): encoding is string {
  return encoding !== undefined && encoding.trim().toLowerCase() !== 'identity';
}

/**
 * Returns a new decoder of a `content-encoding`; undefined where there is nothing to decode. Throws ApiError 415 for any
 * other, and for several: each would multiply what the one before has multiplied.
 */
export function decoderOf(encoding: string | undefined): Transform | undefined {
  if (!isEncoded(encoding)) return undefined;
  const makeDecoder = decoders.get(encoding.trim().toLowerCase());
  if (makeDecoder) return makeDecoder();
  const got = JSON.stringify(encoding.slice(0, 60));
  const message = `Send the body with one content-encoding of gzip, deflate, br and zstd, or without (got ${got}).`;
  throw new ApiError('unsupported_media_type', message);
}
