import type { Json, JsonObject } from '../catalog/model.ts';
import { checkShape } from '../lib/json-shape.ts';
import { parseExactly } from '../lib/long-integers.ts';
import type { SseFrame } from '../net/sse.ts';
import type { ChatEvent } from './conversation.ts';
import { isObject } from './fields.ts';

/** Reads an upstream's stream, frame by frame, into what happens in it. */
export type StreamReader = {
  read(frame: SseFrame): ChatEvent[];
  /** The connection has ended: what follows from that. */
  end(): ChatEvent[];
};

/** What an error inside a stream says. */
export function errorEventOf(error: Json | undefined): ChatEvent & { type: 'error' } {
  const details = isObject(error) ? error : {};
  const message = typeof details['message'] === 'string' ? details['message'] : 'The upstream sent an error.';
  return { type: 'error', error_type: String(details['type'] ?? details['code'] ?? 'error'), message };
}

export const empty: ChatEvent = { type: 'error', error_type: 'cut', message: 'The stream was empty.' };
export const cut: ChatEvent = { type: 'error', error_type: 'cut', message: 'The stream was cut off.' };

/** The JSON object of a frame's data. Throws SyntaxError, or Error for other JSON, and for what takes long to read. */
export function objectOf(data: string): JsonObject {
  checkShape(data);
  const value = parseExactly(data);
  if (!isObject(value)) throw new Error('An event is no JSON object.');
  return value;
}

export function start(id: Json | undefined): ChatEvent {
  return typeof id === 'string' && id !== '' ? { type: 'start', id } : { type: 'start' };
}
