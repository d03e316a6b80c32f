import type { Json, JsonObject } from '../catalog/model.ts';
import type { SseFrame } from '../lib/sse.ts';
import { isObject } from './fields.ts';
import { withModel } from './model-name.ts';
import { errorEventOf, objectOf } from './read-stream.ts';
import type { RelayOptions } from './relay.ts';
import { deliver, fail, learnUsage, type StreamState } from './stream-state.ts';
import { readUsage } from './usage.ts';

/**
 * Streams that keep their style: the bytes of each event go on as they came, but for the model's name.
 * What they mean is noted on the way.
 */

/** Answers the bytes to send for a frame; undefined for none. */
export type SameStream = {
  take(frame: SseFrame): Buffer | undefined;
  /** The connection has ended: bytes that are still missing, or a failure noted. */
  end(): Buffer | undefined;
};

export function sameCompletions(options: RelayOptions, state: StreamState): SameStream {
  const take = ({ raw, data, data_from, data_to }: SseFrame): Buffer | undefined => {
    if (data === undefined) return raw;
    if (data.startsWith('[DONE]')) {
      state.is_complete = true;
      return raw;
    }
    const chunk = objectOf(data);
    if (chunk['error'] !== undefined && chunk['error'] !== null) return refuse(state, chunk['error']);
    learnUsage(state, readUsage('completions', chunk['usage']));
    const choices = Array.isArray(chunk['choices']) ? chunk['choices'].filter(isObject) : [];
    for (const choice of choices) noteChoice(state, choice);
    if (!options.wants_usage && isObject(chunk['usage'])) {
      if (choices.length === 0) return undefined;
      const { usage: _, ...rest } = chunk;
      return Buffer.from(`data: ${JSON.stringify({ ...rest, model: options.model })}\n\n`);
    }
    return renamed(raw, data_from, data_to, options.model);
  };
  return {
    take,
    end: () => {
      if (state.is_complete) return undefined;
      if (state.finish === undefined) return void fail(state, 'The stream was cut off.', 'cut');
      state.is_complete = true; // some servers leave [DONE] out
      return Buffer.from('data: [DONE]\n\n');
    },
  };
}

function refuse(state: StreamState, error: Json): undefined {
  const { error_type, message } = errorEventOf(error);
  fail(state, message, error_type);
}

function noteChoice(state: StreamState, choice: JsonObject): void {
  const delta = isObject(choice['delta']) ? choice['delta'] : {};
  const thought = typeof delta['reasoning_content'] === 'string' ? 'reasoning_content' : 'reasoning';
  for (const field of ['content', 'refusal', thought]) deliverText(state, delta[field]);
  if (Array.isArray(delta['reasoning_details']) && delta['reasoning_details'].length > 0) state.has_content = true;
  if (isObject(delta['audio'])) state.has_content = true;
  const calls = Array.isArray(delta['tool_calls']) ? delta['tool_calls'].filter(isObject) : [];
  for (const call of [...calls.map((one) => one['function'] ?? one['custom']), delta['function_call']]) {
    if (!isObject(call)) continue;
    state.has_content = true;
    deliverText(state, call['arguments'] ?? call['input']);
  }
  if (typeof choice['finish_reason'] === 'string') state.finish = choice['finish_reason'];
}

function deliverText(state: StreamState, text: Json | undefined): void {
  if (typeof text === 'string') deliver(state, text);
}

function renamed(raw: Buffer, from: number, to: number, model: string): Buffer {
  return Buffer.concat([raw.subarray(0, from), withModel(raw.subarray(from, to), model), raw.subarray(to)]);
}

export function sameMessages(options: RelayOptions, state: StreamState): SameStream {
  const take = ({ raw, data }: SseFrame): Buffer | undefined => {
    if (data === undefined) return raw;
    const event = objectOf(data);
    switch (event['type']) {
      case 'message_start':
        if (isObject(event['message'])) learnUsage(state, readUsage('messages', event['message']['usage']));
        return withFirstModel(raw, options.model);
      case 'content_block_start':
        noteBlock(state, event['content_block']);
        return raw;
      case 'content_block_delta':
        noteDelta(state, event['delta']);
        return raw;
      case 'message_delta':
        learnUsage(state, readUsage('messages', event['usage']));
        if (isObject(event['delta']) && typeof event['delta']['stop_reason'] === 'string')
          state.finish = event['delta']['stop_reason'];
        return raw;
      case 'message_stop':
        state.is_complete = true;
        return raw;
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

/** A block that comes whole, or begins with something, is content; an empty text or thought is not yet. */
function noteBlock(state: StreamState, block: Json | undefined): void {
  if (!isObject(block)) return;
  if (block['type'] === 'text') return deliverText(state, block['text']);
  if (block['type'] === 'thinking') return deliverText(state, block['thinking']);
  state.has_content = true;
}

function noteDelta(state: StreamState, delta: Json | undefined): void {
  if (!isObject(delta)) return;
  deliverText(state, delta['text'] ?? delta['thinking'] ?? delta['partial_json']);
  if (typeof delta['signature'] === 'string') state.has_content = true;
}

/** `message.model` stands before anything that a caller or a model has written. */
function withFirstModel(raw: Buffer, model: string): Buffer {
  const text = raw.toString('latin1'); // one character per byte, so places are the same
  const found = /"model"\s*:\s*"(?:[^"\\]|\\.)*"/.exec(text);
  if (!found) return raw;
  const name = Buffer.from(`"model":${JSON.stringify(model)}`);
  return Buffer.concat([raw.subarray(0, found.index), name, raw.subarray(found.index + found[0].length)]);
}
