import type { Json, JsonObject } from '../../catalog/model.ts';
import type { SseFrame } from '../../net/sse.ts';
import type { ChatRequest, Passthrough, Target } from '../codec.ts';
import { readStop } from '../completions/settings.ts';
import { isObject, notCarried } from '../fields.ts';
import { innerMemberEdits } from '../model-name.ts';
import {
  changed,
  chargedIn,
  deliver,
  fail,
  frameOf,
  learnUsage,
  objectOf,
  refuse,
  upstreamIdOf,
  type SameStream,
  type StreamState,
} from '../stream.ts';
import { isReference } from './head.ts';
import { encrypted_reasoning, isWhole } from './reasoning.ts';
import { answerId, errorIn, finishOf } from './response.ts';
import { tellsCost, withCost, withoutCost } from '../usage.ts';
import { toolCallsIn, usage_format } from './usage.ts';

/**
 * The caller's body for an upstream of the responses style. Nothing is stored upstream, where all callers share
 * one account, so what the next turn needs of the model's reasoning has to come with the answer.
 */
export function sameResponsesBody(request: ChatRequest, target: Target): JsonObject {
  const body: JsonObject = { ...request.body, model: target.model, store: false };
  body['max_output_tokens'] = Math.min(request.max_tokens ?? target.max_tokens, target.max_tokens);
  if (readStop(body).some((text) => text !== '')) throw notCarried('stop', 'A text to stop at');
  for (const name of words_of_others) delete body[name];
  if (target.quirks.sampling === false) for (const name of ['temperature', 'top_p']) delete body[name];
  if (target.quirks.reasoning_effort === false) leaveOutReasoning(body);
  else if (isObject(body['reasoning'])) body['include'] = withReasoning(body['include']);
  if (Array.isArray(body['input'])) body['input'] = body['input'].filter(isReadable);
  return body;
}

/** Settings of chat completions that our callers may send, and that upstreams of this style refuse. */
const words_of_others = ['stop', 'seed', 'frequency_penalty', 'presence_penalty'];

/** A model that does not think refuses to be asked for its thoughts. */
function leaveOutReasoning(body: JsonObject): void {
  delete body['reasoning'];
  const { include } = body;
  if (Array.isArray(include)) body['include'] = include.filter((member) => member !== encrypted_reasoning);
}

function withReasoning(include: Json | undefined): Json {
  const members = Array.isArray(include) ? include : [];
  return members.includes(encrypted_reasoning) ? members : [...members, encrypted_reasoning];
}

/** Tells whether an upstream reads an item: reasoning that only its id stands for, or that another model gave, would have the whole input refused. */
export function isReadable(item: Json): boolean {
  if (!isObject(item)) return true;
  return item['type'] === 'reasoning' ? isWhole(item) : !isReference(item);
}

type PassthroughOptions = Parameters<Passthrough['openStream']>[0];

/** A stream that keeps its style: the bytes of each event go on as they came, but for the model's name and the answer's id. */
export function sameResponses(options: PassthroughOptions, state: StreamState): SameStream {
  const hosted: JsonObject[] = []; // calls of tools that the provider ran
  const take = (frame: SseFrame): Buffer | undefined => {
    const { raw, data } = frame;
    if (data === undefined) return raw;
    if (data.trim() === '' || data.startsWith('[DONE]')) return undefined; // some servers' habit of another style
    const event = objectOf(data);
    const type = String(event['type']);
    if (type === 'error') return refuse(state, errorIn(isObject(event['error']) ? event['error'] : event));
    if (isObject(event['response'])) return lifecycle(frame, event, event['response'], options, state);
    if (type.startsWith('response.reasoning')) state.reasons = true;
    if (type.endsWith('.delta')) noteDelta(state, event['delta']);
    else if (type === 'response.output_item.added') noteItem(state, event['item']);
    else if (type === 'response.output_item.done') {
      state.has_content = true;
      noteHosted(state, hosted, event['item']);
    }
    const { usage } = event; // Perplexity's, of a search in the middle of an answer
    return isObject(usage) && tellsCost(usage) ? frameOf(type, { ...event, usage: withoutCost(usage) }) : raw;
  };
  return {
    take,
    end: () => {
      if (!state.is_complete) fail(state, 'The stream was cut off.', 'cut');
      return undefined;
    },
  };
}

/** A stream that breaks off has no list of its items. */
function noteHosted(state: StreamState, hosted: JsonObject[], item: Json | undefined): void {
  if (!isObject(item) || toolCallsIn([item]) === undefined) return;
  hosted.push(item);
  const tool_calls = toolCallsIn(hosted);
  if (tool_calls) learnUsage(state, { tool_calls });
}

function lifecycle(
  frame: SseFrame,
  event: JsonObject,
  response: JsonObject,
  options: PassthroughOptions,
  state: StreamState,
): Buffer | undefined {
  const type = String(event['type']);
  state.has_begun = true;
  state.upstream_id ??= upstreamIdOf(response['id']);
  const own = { id: answerId(options.request_id), model: options.model };
  learnUsage(state, usage_format.read(response['usage']));
  if (type === 'response.failed') return refuse(state, errorIn(response['error'] ?? null));
  const { echo } = options;
  if (type === 'response.completed' || type === 'response.incomplete') {
    state.finish = finishOf(response);
    state.is_complete = true;
    const charged = chargedIn(state, options);
    const reported = response['usage'] ?? null;
    const is_right = usage_format.reports(reported, charged) && !tellsCost(reported) && !options.cost;
    const usage = is_right ? reported : withCost(usage_format.correct(reported, charged), charged, options.cost);
    state.answer = { ...response, ...own, ...echo, usage };
    if (!is_right) return frameOf(type, { ...event, response: state.answer });
  }
  if (isObject(echo?.['conversation'])) return frameOf(type, { ...event, response: { ...response, ...own, ...echo } });
  return changed(frame, (bytes) => innerMemberEdits(bytes, own, echo));
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
