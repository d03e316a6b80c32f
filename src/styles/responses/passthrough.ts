import type { Json, JsonObject } from '../../catalog/model.ts';
import type { SseFrame } from '../../net/sse.ts';
import { answerId, upstreamIdOf } from '../answer-id.ts';
import type { Ask } from '../ask.ts';
import { isObject } from '../fields.ts';
import { innerMemberEdits } from '../model-name.ts';
import type { Target } from '../quirks.ts';
import type { RelayOptions } from '../relay.ts';
import { isReference } from './ask.ts';
import { isWhole } from './reasoning.ts';
import { changed, chargedIn, frameOf, refuse, type SameStream } from '../same-stream.ts';
import { objectOf } from '../stream-reader.ts';
import { deliver, fail, learnUsage, type StreamState } from '../stream-state.ts';
import { correctUsage, readUsage, tellsUsage } from '../usage.ts';

/**
 * The caller's body for an upstream of the responses style. Nothing is stored upstream, where all callers share
 * one account, so what the next turn needs of the model's reasoning has to come with the answer.
 */
export function sameResponsesBody(ask: Ask, target: Target): JsonObject {
  const body: JsonObject = { ...ask.body, model: target.model, store: false };
  body['max_output_tokens'] = Math.min(ask.max_tokens ?? target.max_tokens, target.max_tokens);
  if (target.quirks.sampling === false) for (const name of ['temperature', 'top_p']) delete body[name];
  if (isObject(body['reasoning'])) body['include'] = withReasoning(body['include']);
  if (Array.isArray(body['input'])) body['input'] = body['input'].filter(isReadable);
  return body;
}

/** What to include so that reasoning comes along, sealed, instead of being stored. */
export const encrypted_reasoning = 'reasoning.encrypted_content';

function withReasoning(include: Json | undefined): Json {
  const members = Array.isArray(include) ? include : [];
  return members.includes(encrypted_reasoning) ? members : [...members, encrypted_reasoning];
}

/** Reasoning that only its id stands for, or that another model gave, would have the whole input refused. */
function isReadable(item: Json): boolean {
  if (!isObject(item)) return true;
  return item['type'] === 'reasoning' ? isWhole(item) : !isReference(item);
}

/** A stream that keeps its style: the bytes of each event go on as they came, but for the model's name and the answer's id. */
export function sameResponses(options: RelayOptions, state: StreamState): SameStream {
  const take = (frame: SseFrame): Buffer | undefined => {
    const { raw, data } = frame;
    if (data === undefined) return raw;
    if (data.trim() === '' || data.startsWith('[DONE]')) return undefined; // some servers' habit of another style
    const event = objectOf(data);
    const type = String(event['type']);
    if (type === 'error') return refuse(state, toldBy(isObject(event['error']) ? event['error'] : event));
    if (isObject(event['response'])) return lifecycle(frame, event, event['response'], options, state);
    if (type.startsWith('response.reasoning')) state.reasons = true;
    if (type.endsWith('.delta')) noteDelta(state, event['delta']);
    else if (type === 'response.output_item.added') noteItem(state, event['item']);
    else if (type === 'response.output_item.done') state.has_content = true;
    return raw;
  };
  return {
    take,
    end: () => {
      if (!state.is_complete) fail(state, 'The stream was cut off.', 'cut');
      return undefined;
    },
  };
}

function lifecycle(
  frame: SseFrame,
  event: JsonObject,
  response: JsonObject,
  options: RelayOptions,
  state: StreamState,
): Buffer | undefined {
  const type = String(event['type']);
  state.has_begun = true;
  state.upstream_id ??= upstreamIdOf(response['id']);
  const own = { id: answerId('responses', options.request_id), model: options.model };
  learnUsage(state, readUsage('responses', response['usage']));
  if (type === 'response.failed') return refuse(state, toldBy(response['error'] ?? null));
  if (type === 'response.completed' || type === 'response.incomplete') {
    state.finish = finishOf(response);
    state.is_complete = true;
    const charged = chargedIn(state, options);
    if (!tellsUsage('responses', response['usage'], charged)) {
      const usage = correctUsage('responses', response['usage'], charged);
      return frameOf(type, { ...event, response: { ...response, ...own, usage } });
    }
  }
  return changed(frame, (bytes) => innerMemberEdits(bytes, own));
}

/** Why an answer ended: its status, or what cut it short. */
export function finishOf(response: JsonObject): string {
  const { incomplete_details, status } = response;
  const reason = isObject(incomplete_details) ? incomplete_details['reason'] : undefined;
  if (typeof reason === 'string') return reason;
  return typeof status === 'string' ? status : 'completed';
}

/** Codes for what the caller got wrong; all others are about us or the upstream. */
const mistake_codes = /^(invalid_|image_|unsupported_|empty_image|context_length|string_above|cyber_policy|bio_policy)/;

/** An error in the words of the other styles, where the type tells whose mistake it is. */
export function toldBy(error: Json): JsonObject {
  if (!isObject(error)) return {};
  const { code, type, message } = error;
  const is_mistake = typeof code === 'string' && mistake_codes.test(code);
  const error_type = type === undefined || type === 'error' ? (code ?? 'error') : type;
  return {
    type: is_mistake ? 'invalid_request_error' : error_type,
    ...(typeof message === 'string' && { message }),
  };
}

function noteDelta(state: StreamState, delta: Json | undefined): void {
  if (typeof delta === 'string') deliver(state, delta);
}

/** Messages and reasoning begin empty; whatever else begins is content. */
function noteItem(state: StreamState, item: Json | undefined): void {
  if (!isObject(item) || item['type'] === 'message') return;
  if (item['type'] === 'reasoning') {
    state.reasons = true;
    return;
  }
  state.has_content = true;
  if (typeof item['name'] === 'string') deliver(state, item['name']);
}
