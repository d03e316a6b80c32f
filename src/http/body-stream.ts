import type { IncomingMessage } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';
import type { ApiError } from '../errors.ts';
import { refuseEncoding, watchArrival } from './arriving.ts';

export type StreamLimits = { bytes_max: number; tooLarge: () => ApiError };

/**
 * A body that has not been read yet: hands its bytes on while they arrive, whatever its type is. `take` must read them to
 * their end, or throw; they end with a BodyBroken if the rest does not come.
 */
export type BodyStreamReader = <T>(limits: StreamLimits, take: (stream: Readable) => Promise<T>) => Promise<T>;

/** Refuses by the headers alone where they say enough, then lets the body be read once. Throws ApiError 413, 415 or 400. */
export function openBodyStream(raw: IncomingMessage, idle_ms: number, sendContinue: () => void): BodyStreamReader {
  refuseEncoding(raw.headers['content-encoding']);
  return async (limits, take) => {
    if (Number(raw.headers['content-length'] ?? 0) > limits.bytes_max) throw limits.tooLarge();
    const stream = new PassThrough();
    stream.on('error', () => {}); // whoever reads it hears of it
    const stopWatching = watchArrival(raw, { ...limits, idle_ms }, (error) => stream.destroy(error));
    sendContinue();
    raw.pipe(stream);
    try {
      return await take(stream);
    } finally {
      raw.unpipe(stream);
      stopWatching();
      stream.destroy();
    }
  };
}
