import type { Json, JsonObject, ToolUnit } from '../catalog/model.ts';
import { checkShape } from '../lib/json-shape.ts';
import { parseExactly } from '../lib/long-integers.ts';
import type { Line, SseFrame } from '../net/sse.ts';
import type { ChatEvent, Usage } from './conversation.ts';
import { isObject } from './fields.ts';
import { edited, memberEdits, type Edit, type OwnMembers } from './model-name.ts';
import { addText, type TextSize, chargedUsage } from './usage.ts';

/** Streams of all styles: their state, and the interfaces to read, write and relay them. */

/** Reads an upstream's stream, frame by frame, into events. */
export type ChatEventReader = {
  read(frame: SseFrame): ChatEvent[];
  /** The connection has ended: what follows from that. */
  end(): ChatEvent[];
};

/** Writes events in the caller's style. */
export type ChatEventWriter = {
  /** The bytes of an event; empty where the style has no word for it, or says it later. `usage`: as it is now. */
  write(event: ChatEvent, usage: () => Usage): string;
  /** The finish reason, once it has come. */
  readonly finish: string | undefined;
  /** The whole answer, in a style whose last event has it. */
  readonly answer?: JsonObject | undefined;
};

/**
 * A stream that keeps its style: the bytes of each event go on as they came, but for the model's name and the answer's
 * id. What they mean is noted on the way. Answers the bytes to send for a frame; undefined for none.
 */
export type SameStream = {
  take(frame: SseFrame): Buffer | undefined;
  /** The connection has ended: bytes that are still missing, or a failure noted. */
  end(): Buffer | undefined;
};

/** An upstream's error in a stream, in its words. */
export type StreamFailure = { type: string; message: string; code?: string };

/** The state of a stream so far; see Relay. */
export type StreamState = {
  has_begun: boolean;
  has_content: boolean;
  is_ending: boolean;
  reasons: boolean;
  is_complete: boolean;
  failure: StreamFailure | undefined;
  usage: Partial<Usage> | undefined;
  delivered: TextSize;
  finish: string | undefined;
  upstream_id: string | undefined;
  answer: JsonObject | undefined;
};

export function newStreamState(): StreamState {
  return {
    has_begun: false,
    has_content: false,
    is_ending: false,
    reasons: false,
    is_complete: false,
    failure: undefined,
    usage: undefined,
    delivered: { ascii_bytes: 0, other_bytes: 0 },
    finish: undefined,
    upstream_id: undefined,
    answer: undefined,
  };
}

export function fail(state: StreamState, message: string, type = 'upstream_error', code?: string): void {
  state.failure ??= { type, message, ...(code !== undefined && { code }) };
}

/** Text, thinking or arguments have come; an empty piece is none. */
export function deliver(state: StreamState, text: string): void {
  if (text === '') return;
  state.has_content = true;
  addText(state.delivered, text);
}

/**
 * Later values replace earlier ones, kind by kind. Only input is reported as a whole: a part of an earlier report, beside
 * the input of a later one, would be charged twice.
 */
export function learnUsage(state: StreamState, usage: Partial<Usage> | undefined): void {
  if (!usage) return;
  const earlier = usage.input_tokens === undefined ? state.usage : withoutInput(state.usage);
  state.usage = { ...earlier, ...usage };
  if ((usage.reasoning_tokens ?? 0) > 0) state.reasons = true;
}

function withoutInput(usage: Partial<Usage> | undefined): Partial<Usage> {
  const {
    input_tokens: _,
    cached_input_tokens: __,
    cache_write_tokens: ___,
    cache_write_1h_tokens: ____,
    ...rest
  } = usage ?? {};
  return rest;
}

/** A tool of the provider's was used: the upstream may say at the end how often, and a stream that breaks off does not. */
export function noteToolCall(state: StreamState, unit: ToolUnit): void {
  const tool_calls = { ...state.usage?.tool_calls };
  tool_calls[unit] = (tool_calls[unit] ?? 0) + 1;
  state.usage = { ...state.usage, tool_calls };
}

/** Notes what an event means for the state. */
export function note(state: StreamState, event: ChatEvent): void {
  switch (event.type) {
    case 'text':
    case 'refusal':
      return deliver(state, event.text);
    case 'thinking':
      state.reasons = true;
      return deliver(state, event.text);
    case 'tool_arguments':
      return deliver(state, event.json);
    case 'tool_call':
      state.has_content = true;
      return addText(state.delivered, event.name); // as in whole answers: a call without arguments is output, too
    case 'redacted_thinking':
      state.reasons = true;
      state.has_content = true;
      return;
    case 'signature':
      state.reasons = true;
      return;
    case 'ending':
      state.is_ending = true;
      return;
    case 'usage':
      return learnUsage(state, event.usage);
    case 'start':
      state.has_begun = true;
      state.upstream_id ??= event.id;
      return;
    case 'end':
      state.is_complete = true;
      return;
    case 'error':
      return fail(state, event.message, event.error_type, event.code);
    default:
  }
}

/** Returns the caller's charge if the response is complete here. */
export function chargedIn(
  { usage, delivered }: Pick<StreamState, 'usage' | 'delivered'>,
  options: { input_tokens_estimated: number; writes_for_an_hour?: boolean },
): Usage {
  const { input_tokens_estimated: input_tokens_counted, writes_for_an_hour } = options;
  return chargedUsage(usage, delivered, { input_tokens_counted, writes_for_an_hour }).usage;
}

/** Reads an error of an upstream's stream. */
export function errorEventOf(error: Json | undefined): ChatEvent & { type: 'error' } {
  const details = isObject(error) ? error : {};
  const message = typeof details['message'] === 'string' ? details['message'] : 'The upstream sent an error.';
  const { type, code } = details;
  const has_code = typeof code === 'string' || typeof code === 'number';
  return {
    type: 'error',
    error_type: String(type ?? code ?? 'error'),
    message,
    ...(has_code && { code: String(code) }),
  };
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

/** An id of an upstream, if it is one. */
export function upstreamIdOf(id: unknown): string | undefined {
  return typeof id === 'string' && id !== '' ? id : undefined;
}

/** An end of which nothing came before, neither content nor a reason, is no answer: another route may have one. */
export function complete(state: StreamState, raw: Buffer): Buffer | undefined {
  if (!state.has_content && state.finish === undefined) return void fail(state, 'The stream was empty.', 'cut');
  state.is_complete = true;
  return raw;
}

/** An error of the upstream's, which ends the stream. */
export function refuse(state: StreamState, error: Json): undefined {
  const { error_type, message, code } = errorEventOf(error);
  fail(state, message, error_type, code);
}

/** Notes a piece of text, if it is one. */
export function deliverText(state: StreamState, text: Json | undefined): void {
  if (typeof text === 'string') deliver(state, text);
}

/** The bytes of a frame with an edit to its data, which may stand in several lines. */
export function changed(frame: SseFrame, find: (data: Buffer) => Edit[]): Buffer {
  return edited(frame.raw, editsOf(frame, find));
}

/** Edits to the data of a frame, as those to its bytes. */
function editsOf({ raw, data_lines }: SseFrame, find: (data: Buffer) => Edit[]): Edit[] {
  const pieces = data_lines.map(({ from, to }) => raw.subarray(from, to));
  const [only] = pieces;
  const data = pieces.length === 1 && only ? only : Buffer.concat(pieces.flatMap((piece) => [piece, line_feed]));
  return find(data).map(({ from, to, value }) => ({
    from: placeIn(data_lines, from),
    to: placeIn(data_lines, to),
    value,
  }));
}

/**
 * Puts the model's name and the answer's id in place. The frames of a stream begin with the same bytes up to both:
 * those of the last one are compared rather than read again.
 */
export function makeRenamer(own: OwnMembers): (frame: SseFrame) => Buffer {
  let received: Buffer = Buffer.alloc(0);
  let sent: Buffer = Buffer.alloc(0);
  return (frame) => {
    const { raw } = frame;
    const is_same =
      received.length > 0 &&
      raw.length > received.length &&
      raw.compare(received, 0, received.length, 0, received.length) === 0;
    if (is_same) return edited(raw, [{ from: 0, to: received.length, value: sent }]);
    const edits = editsOf(frame, (data) => memberEdits(data, own));
    const end = edits.at(-1)?.to ?? 0;
    const renamed = edited(raw, edits);
    // What is missing here may come after these bytes in the next frame, where also another word might go on.
    const is_whole = edits.every(({ from, to }) => to > from) && raw[end - 1] === quote;
    received = is_whole ? raw.subarray(0, end) : Buffer.alloc(0);
    sent = renamed.subarray(0, renamed.length - (raw.length - end));
    return renamed;
  };
}

const quote = 0x22;
const line_feed = Buffer.from('\n');

/**
 * Returns the position in the frame of a byte of its data. JSON strings contain no line ends, so a value is in
 * one line.
 */
function placeIn(lines: readonly Line[], at: number): number {
  let rest = at;
  for (const { from, to } of lines) {
    if (rest <= to - from) return from + rest;
    rest -= to - from + 1;
  }
  throw new Error('an edit is within the data');
}

/** An event by its name, for what the upstream's own bytes do not say. */
export function frameOf(name: string, event: JsonObject): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify(event)}\n\n`);
}
