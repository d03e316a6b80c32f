import type { IncomingMessage } from 'node:http';
import { ApiError } from '../errors.ts';
import { isEncoded } from './decoder.ts';

/** Bodies that go to the disk as they arrive. */

/** A file is compressed by itself. Throws ApiError 415. */
export function refuseEncoding(encoding: string | undefined): void {
  if (!isEncoded(encoding)) return;
  const message = `Send files without content-encoding (got ${JSON.stringify(encoding.slice(0, 60))}).`;
  throw new ApiError('unsupported_media_type', message);
}

/** The body did not arrive to its end: the sender is gone, or too slow. What has arrived is as it was sent. */
export class BodyBroken extends ApiError {
  override name = 'BodyBroken';

  constructor(message: string) {
    super('invalid_request', message);
  }
}

export type ArrivalLimits = { bytes_max: number; idle_ms: number; tooLarge: () => ApiError };

/** Looks after the body as it comes: its size, its pace, its end. Answers how to stop that. */
export function watchArrival(
  raw: IncomingMessage,
  { bytes_max, idle_ms, tooLarge }: ArrivalLimits,
  fail: (error: ApiError) => void,
): () => void {
  let size_bytes = 0;
  const timer = setTimeout(() => fail(new BodyBroken('The body arrives too slowly.')), idle_ms);
  const onData = (chunk: Buffer) => {
    timer.refresh();
    size_bytes += chunk.length;
    if (size_bytes > bytes_max) fail(tooLarge());
  };
  const onClose = () => {
    if (!raw.complete) fail(new BodyBroken('The connection ended before the body did.'));
  };
  raw.on('data', onData).on('close', onClose).on('error', onClose);
  return () => {
    clearTimeout(timer);
    raw.off('data', onData).off('close', onClose).off('error', onClose);
    if (!raw.complete) raw.on('error', () => {}); // an abort after our answer is nobody's surprise
  };
}
