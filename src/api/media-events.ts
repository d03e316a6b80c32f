import { own } from '../catalog/input-schema.ts';
import type { JsonObject } from '../catalog/model.ts';
import { invalidField } from '../errors.ts';

/**
 * Streams of media calls. A task has its result when it is final, so a stream is what SDKs read from their first event to
 * the last, all at once: one completed event for each image, one piece of speech, one of a transcript.
 */

/** Parameters by which a stream is asked for; no model gets them. */
export const stream_parameters: readonly string[] = ['stream', 'partial_images', 'stream_format'];

const yes: readonly unknown[] = [true, 'true'];
const no: readonly unknown[] = [undefined, null, false, 'false'];
const plain_formats: readonly unknown[] = [undefined, null, 'audio'];

/** Tells whether a stream is asked for; forms have texts. Throws ApiError 400 naming the parameter. */
export function readStream(parameters: JsonObject): boolean {
  const stream = own(parameters, 'stream');
  if (!yes.includes(stream) && !no.includes(stream)) throw invalidField('stream', 'stream must be true or false.');
  const format = own(parameters, 'stream_format');
  if (format !== 'sse' && !plain_formats.includes(format))
    throw invalidField('stream_format', 'stream_format must be "audio" or "sse".');
  const images = own(parameters, 'partial_images') ?? 0;
  if (!/^[0-3]$/.test(String(images)))
    throw invalidField('partial_images', 'partial_images must be a number from 0 to 3.');
  return yes.includes(stream) || format === 'sse';
}

/** The headers and the body of an answer that is these events. */
export function eventsAnswer(events: readonly (JsonObject & { type: string })[]): {
  headers: Record<string, string>;
  body: string;
} {
  const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
  return {
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache, no-transform' },
    body,
  };
}
