import type { Json, JsonObject } from '../catalog/model.ts';
import type { Line, SseFrame } from '../net/sse.ts';
import { answerId, upstreamIdOf } from './answer-id.ts';
import { textOf } from './completions/response.ts';
import type { Usage } from './conversation.ts';
import { isObject } from './fields.ts';
import { edited, innerMemberEdits, memberEdits, type Edit, type OwnMembers } from './model-name.ts';
import type { RelayOptions } from './relay.ts';
import { errorEventOf, objectOf } from './stream-reader.ts';
import { deliver, fail, learnUsage, type StreamState } from './stream-state.ts';
import { chargedUsage, correctUsage, readStartUsage, readUsage, tellsUsage } from './usage.ts';

/**
 * Streams that keep their style: the bytes of each event go on as they came, but for the model's name and
 * the answer's id. What they mean is noted on the way.
 */

/** Answers the bytes to send for a frame; undefined for none. */
export type SameStream = {
  take(frame: SseFrame): Buffer | undefined;
  /** The connection has ended: bytes that are still missing, or a failure noted. */
  end(): Buffer | undefined;
};

export function sameCompletions(options: RelayOptions, state: StreamState): SameStream {
  /** Answers by their index: how many of `n` have begun, and whether they have ended. */
  const ended = new Map<Json, boolean>();
  const own = { id: answerId('completions', options.request_id), model: options.model };
  const rename = makeRenamer(own);
  let created: Json = null;
  /** The `usage` that the caller was sent. */
  let told_usage: Json | undefined;
  /** The caller wants to know, and the upstream did not tell: what was counted here, which is what it pays. */
  const withUsage = (end: Buffer): Buffer => {
    const charged = chargedIn(state, options);
    if (!options.wants_usage || tellsUsage('completions', told_usage, charged)) return end;
    const usage = correctUsage('completions', told_usage, charged);
    const chunk = { ...own, created, object: 'chat.completion.chunk', choices: [], usage };
    return Buffer.concat([Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`), end]);
  };
  const take = (frame: SseFrame): Buffer | undefined => {
    const { raw, data } = frame;
    if (data === undefined) return raw;
    if (data.trim() === '') return undefined; // some servers' sign of life; callers would fail to parse it
    if (data.startsWith('[DONE]')) return complete(state, withUsage(raw));
    const chunk = objectOf(data);
    if (chunk['error'] !== undefined && chunk['error'] !== null) return refuse(state, chunk['error']);
    learnUsage(state, readUsage('completions', chunk['usage']));
    created = chunk['created'] ?? null;
    state.upstream_id ??= upstreamIdOf(chunk['id']);
    const choices = Array.isArray(chunk['choices']) ? chunk['choices'].filter(isObject) : [];
    state.has_begun ||= choices.length > 0;
    for (const choice of choices) {
      const { index = 0, finish_reason } = choice;
      ended.set(index, ended.get(index) === true || typeof finish_reason === 'string');
      noteChoice(state, choice);
    }
    state.is_ending ||= ended.size > 0 && [...ended.values()].every(Boolean);
    if (!options.wants_usage && isObject(chunk['usage'])) {
      if (choices.length === 0) return undefined;
      const { usage: _, ...rest } = chunk;
      return Buffer.from(`data: ${JSON.stringify({ ...rest, ...own })}\n\n`);
    }
    if (isObject(chunk['usage'])) {
      told_usage = chunk['usage'];
      const charged = chargedIn(state, options);
      if (state.is_ending && !tellsUsage('completions', told_usage, charged)) {
        told_usage = correctUsage('completions', told_usage, charged);
        return Buffer.from(`data: ${JSON.stringify({ ...chunk, ...own, usage: told_usage })}\n\n`);
      }
    }
    const named = rename(frame);
    return options.wants_usage || chunk['usage'] !== null ? named : withoutNull(named);
  };
  return {
    take,
    end: () => {
      if (state.is_complete) return undefined;
      if (ended.size === 0 || [...ended.values()].includes(false))
        return void fail(state, 'The stream was cut off.', 'cut');
      state.is_complete = true; // some servers leave [DONE] out
      return withUsage(Buffer.from('data: [DONE]\n\n'));
    },
  };
}

/** What the caller pays for, if the answer is complete here. */
export function chargedIn(
  { usage, delivered }: StreamState,
  {
    input_tokens_estimated: input_tokens_counted,
    writes_for_an_hour,
  }: Pick<RelayOptions, 'input_tokens_estimated' | 'writes_for_an_hour'>,
): Usage {
  return chargedUsage(usage, delivered, { input_tokens_counted, writes_for_an_hour }).usage;
}

const null_usages = [Buffer.from(',"usage":null'), Buffer.from(', "usage": null')];

/** The sign that usage comes later, which is told only to those who asked for it. */
function withoutNull(raw: Buffer): Buffer {
  for (const sign of null_usages) {
    const from = raw.indexOf(sign);
    if (from === -1 || raw.indexOf(sign, from + 1) !== -1) continue; // of two nobody knows which it is
    return Buffer.concat([raw.subarray(0, from), raw.subarray(from + sign.length)]);
  }
  return raw;
}

/** An end of which nothing came before, neither content nor a reason, is no answer: another route may have one. */
function complete(state: StreamState, raw: Buffer): Buffer | undefined {
  if (!state.has_content && state.finish === undefined) return void fail(state, 'The stream was empty.', 'cut');
  state.is_complete = true;
  return raw;
}

/** An error of the upstream's, which ends the stream. */
export function refuse(state: StreamState, error: Json): undefined {
  const { error_type, message } = errorEventOf(error);
  fail(state, message, error_type);
}

function noteChoice(state: StreamState, choice: JsonObject): void {
  if (typeof choice['finish_reason'] === 'string') state.finish = choice['finish_reason'];
  const { delta } = choice;
  if (!isObject(delta)) return;
  deliver(state, textOf(delta['content']));
  deliverText(state, delta['refusal']);
  deliverThought(
    state,
    typeof delta['reasoning_content'] === 'string' ? delta['reasoning_content'] : delta['reasoning'],
  );
  if (Array.isArray(delta['reasoning_details']) && delta['reasoning_details'].length > 0) {
    state.has_content = true;
    state.reasons = true;
  }
  if (isObject(delta['audio'])) state.has_content = true;
  noteArguments(state, delta['function_call']);
  if (!Array.isArray(delta['tool_calls'])) return;
  for (const call of delta['tool_calls']) if (isObject(call)) noteArguments(state, call['function'] ?? call['custom']);
}

function noteArguments(state: StreamState, call: Json | undefined): void {
  if (!isObject(call)) return;
  state.has_content = true;
  deliverText(state, call['name']);
  deliverText(state, call['arguments'] ?? call['input']);
}

function deliverText(state: StreamState, text: Json | undefined): void {
  if (typeof text === 'string') deliver(state, text);
}

function deliverThought(state: StreamState, text: Json | undefined): void {
  if (typeof text !== 'string' || text === '') return;
  state.reasons = true;
  deliver(state, text);
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
function makeRenamer(own: OwnMembers): (frame: SseFrame) => Buffer {
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
    // What is missing here may come behind these bytes in the next frame, where also another word might go on.
    const is_whole = edits.every(({ from, to }) => to > from) && raw[end - 1] === quote;
    received = is_whole ? raw.subarray(0, end) : Buffer.alloc(0);
    sent = renamed.subarray(0, renamed.length - (raw.length - end));
    return renamed;
  };
}

const quote = 0x22;
const line_feed = Buffer.from('\n');

/** Where in the frame a byte of its data stands. JSON strings hold no line ends, so values stand in one line. */
function placeIn(lines: readonly Line[], at: number): number {
  let rest = at;
  for (const { from, to } of lines) {
    if (rest <= to - from) return from + rest;
    rest -= to - from + 1;
  }
  throw new Error('an edit is within the data');
}

export function sameMessages(options: RelayOptions, state: StreamState): SameStream {
  const usage = new ToldUsage(options, state);
  const own = { id: answerId('messages', options.request_id), model: options.model };
  const take = (frame: SseFrame): Buffer | undefined => {
    if (frame.data === undefined) return frame.raw;
    if (frame.data.trim() === '') return undefined;
    const event = objectOf(frame.data);
    const named = withName(frame, event['type']);
    const { raw } = named;
    switch (event['type']) {
      case 'message_start':
        state.has_begun = true;
        if (isObject(event['message'])) {
          const { message } = event;
          state.upstream_id ??= upstreamIdOf(message['id']);
          learnUsage(state, readStartUsage(message['usage']));
          const started = usage.start(message);
          if (started) return frameOf('message_start', { ...event, message: { ...started, ...own } });
        }
        return changed(named, (bytes) => innerMemberEdits(bytes, own));
      case 'content_block_start':
        noteBlock(state, event['content_block']);
        return raw;
      case 'content_block_delta':
        noteDelta(state, event['delta']);
        return raw;
      case 'message_delta':
        learnUsage(state, readUsage('messages', event['usage']));
        if (isObject(event['delta']) && typeof event['delta']['stop_reason'] === 'string')
          [state.finish, state.is_ending] = [event['delta']['stop_reason'], true];
        return usage.correct(event) ?? raw;
      case 'message_stop': {
        const bytes = complete(state, raw);
        const missing = bytes && usage.correct({ delta: { stop_reason: state.finish ?? null, stop_sequence: null } });
        return bytes && missing ? Buffer.concat([missing, bytes]) : bytes;
      }
      case 'error':
        return refuse(state, event['error'] ?? null);
      default:
        return raw;
    }
  };
  return {
    take,
    end: () => {
      if (!state.is_complete) fail(state, 'The stream was cut off.', 'cut');
      return undefined;
    },
  };
}

/** The usage that a caller reads from the events of a messages stream: of the start, with that of each delta over it. */
class ToldUsage {
  readonly #options: RelayOptions;
  readonly #state: StreamState;
  #told: JsonObject = {};

  constructor(options: RelayOptions, state: StreamState) {
    this.#options = options;
    this.#state = state;
  }

  /** The message with usage, if it has none of its input; SDKs read it there without looking. */
  start(message: JsonObject): JsonObject | undefined {
    const { usage: fields } = message;
    const is_told = this.#state.usage?.input_tokens !== undefined;
    const begun = { ...chargedIn(this.#state, this.#options), output_tokens: 0, reasoning_tokens: 0 };
    this.#told = is_told && isObject(fields) ? fields : correctUsage('messages', fields, begun);
    return is_told ? undefined : { ...message, usage: this.#told };
  }

  /** A message_delta with the counts that are charged; undefined if the caller has them already with what it tells. */
  correct(event: JsonObject): Buffer | undefined {
    const charged = chargedIn(this.#state, this.#options);
    this.#told = { ...this.#told, ...(isObject(event['usage']) && event['usage']) };
    if (tellsUsage('messages', this.#told, charged)) return undefined;
    this.#told = correctUsage('messages', this.#told, charged);
    const usage = correctUsage('messages', event['usage'], charged);
    return frameOf('message_delta', { type: 'message_delta', ...event, usage });
  }
}

/** An event by its name, for what the upstream's own bytes do not say. */
export function frameOf(name: string, event: JsonObject): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify(event)}\n\n`);
}

/** A block that comes whole, or begins with something, is content; an empty text or thought is not yet. */
function noteBlock(state: StreamState, block: Json | undefined): void {
  if (!isObject(block)) return;
  if (block['type'] === 'text') return deliverText(state, block['text']);
  state.reasons ||= block['type'] === 'thinking' || block['type'] === 'redacted_thinking';
  if (block['type'] === 'thinking') return deliverText(state, block['thinking']);
  deliverText(state, block['name']);
  state.has_content = true;
}

function noteDelta(state: StreamState, delta: Json | undefined): void {
  if (!isObject(delta)) return;
  deliverText(state, delta['text'] ?? delta['thinking'] ?? delta['partial_json']);
  if (typeof delta['signature'] === 'string') state.has_content = true;
}

/** SDKs pass over events without a name, which some servers leave out. */
function withName(frame: SseFrame, type: Json | undefined): SseFrame {
  const last = frame.data_lines.at(-1);
  if (frame.event !== '' || !last || typeof type !== 'string' || !/^\w+$/.test(type)) return frame;
  const value = Buffer.from(`\nevent: ${type}`);
  return { ...frame, event: type, raw: edited(frame.raw, [{ from: last.to, to: last.to, value }]) };
}
