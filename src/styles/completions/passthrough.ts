import type { Json, JsonObject } from '../../catalog/model.ts';
import type { SseFrame } from '../../net/sse.ts';
import type { ChatRequest, Passthrough, Target } from '../codec.ts';
import { nineLetters } from '../calls.ts';
import { isObject } from '../fields.ts';
import { withoutSampling } from '../quirks.ts';
import {
  chargedIn,
  complete,
  deliver,
  deliverText,
  fail,
  learnUsage,
  makeRenamer,
  objectOf,
  refuse,
  upstreamIdOf,
  type SameStream,
  type StreamState,
} from '../stream.ts';
import { fitBudget } from '../thinking.ts';
import { tellsCost, withCost } from '../usage.ts';
import { choicesShown, reasoningShown, withEffort } from './openrouter.ts';
import { plainChoices, textOf } from './plain-choice.ts';
import { answerId } from './response.ts';
import { usageIn, usage_format } from './usage.ts';

/**
 * The caller's body for an upstream of the same style: a shallow copy with the few fields changed that must
 * be. Everything else goes on as it came, fields that we do not know and explicit nulls too.
 */

export function sameCompletionsBody(request: ChatRequest, target: Target): JsonObject {
  const { quirks } = target;
  const body: JsonObject = { ...request.body, model: target.model };
  limitCompletions(body, request, target);
  setStreamOptions(body, request, target);
  if (quirks.sampling === false) withoutSampling(body);
  if (quirks.reasoning_object !== true) withEffort(body, quirks);
  if (quirks.reasoning_effort === false) delete body['reasoning_effort'];
  if (quirks.developer_role === false) body['messages'] = changeMessages(body['messages'], asSystem);
  if (quirks.tool_ids !== undefined) body['messages'] = changeMessages(body['messages'], withNineLetters);
  if (quirks.reasoning_field === 'none') body['messages'] = changeMessages(body['messages'], withoutReasoning);
  return body;
}

/** Usage is always asked for. */
export function setStreamOptions(body: JsonObject, request: ChatRequest, { quirks }: Target): void {
  if (request.stream && quirks.stream_options === false) delete body['stream_options'];
  else if (request.stream) body['stream_options'] = { ...streamOptions(request), include_usage: true };
}

/** The most tokens that each answer may have. */
export function limitTokens(request: ChatRequest, target: Target): number {
  return Math.min(request.max_tokens ?? target.max_tokens, target.max_tokens);
}

function streamOptions(request: ChatRequest): JsonObject {
  const { stream_options } = request.body;
  return isObject(stream_options) ? stream_options : {};
}

/** Both names at once are an error at the upstream. */
function limitCompletions(body: JsonObject, request: ChatRequest, target: Target): void {
  const names = ['max_completion_tokens', 'max_tokens'] as const;
  const used = names.find((name) => typeof body[name] === 'number');
  const field = target.quirks.max_tokens_field ?? used ?? 'max_tokens';
  // What stands in its place is not deleted first: V8 keeps an object with holes as a dictionary, which is slower to write.
  for (const name of names) if (name !== field && typeof body[name] === 'number') delete body[name];
  const max_tokens = limitTokens(request, target);
  body[field] = max_tokens;
  if (request.thinking_budget > max_tokens) limitReasoning(body, max_tokens);
}

/** Some servers count what is thought beside the answer. */
function limitReasoning(body: JsonObject, max_tokens: number): void {
  const budgets = { reasoning: 'max_tokens', thinking: 'budget_tokens' } as const;
  for (const [holder, name] of Object.entries(budgets)) {
    const held = body[holder];
    if (!isObject(held) || typeof held[name] !== 'number') continue;
    body[holder] = { ...held, [name]: fitBudget(held[name], max_tokens) };
  }
}

function changeMessages(messages: Json | undefined, change: (message: JsonObject) => JsonObject): Json {
  if (!Array.isArray(messages)) return null;
  return messages.map((message) => (isObject(message) ? change(message) : message));
}

function asSystem(message: JsonObject): JsonObject {
  return message['role'] === 'developer' ? { ...message, role: 'system' } : message;
}

function withNineLetters(message: JsonObject): JsonObject {
  const { tool_calls: calls, tool_call_id: id } = message;
  const change = (call: Json) =>
    isObject(call) && typeof call['id'] === 'string' ? { ...call, id: nineLetters(call['id']) } : call;
  if (!Array.isArray(calls) && typeof id !== 'string') return message;
  return {
    ...message,
    ...(Array.isArray(calls) && { tool_calls: calls.map(change) }),
    ...(typeof id === 'string' && { tool_call_id: nineLetters(id) }),
  };
}

/** Callers push whole answers back, with the thinking that a model of another provider gave, and its thought signatures. */
function withoutReasoning(message: JsonObject): JsonObject {
  const { reasoning_content, reasoning, reasoning_details, ...rest } = withoutExtraContent(message);
  const { tool_calls } = rest;
  const is_signed = Array.isArray(tool_calls) && tool_calls.some((call) => isObject(call) && 'extra_content' in call);
  if (is_signed) rest['tool_calls'] = tool_calls.map((call) => (isObject(call) ? withoutExtraContent(call) : call));
  const has_any = [reasoning_content, reasoning, reasoning_details].some((field) => field !== undefined);
  return has_any || is_signed || 'extra_content' in message ? rest : message;
}

function withoutExtraContent(holder: JsonObject): JsonObject {
  const { extra_content: _, ...rest } = holder;
  return rest;
}

type PassthroughOptions = Parameters<Passthrough['openStream']>[0];

export function sameCompletions(options: PassthroughOptions, state: StreamState): SameStream {
  const noteDelta = (choice: JsonObject): void => noteChoice(state, choice);
  const show = reasoningShown(options.request.body);
  return relayChoices(options, state, {
    object: 'chat.completion.chunk',
    id: answerId(options.request_id),
    noteChoice: noteDelta,
    readChoices: (choices) => plainChoices(choices, 'delta'),
    ...(show !== 'usual' && { showChoices: (choices) => choicesShown(choices, 'delta', show) }),
  });
}

/** Differences between styles of chunks with choices: the name of a chunk, the id of an answer, what a choice says. */
type ChoiceStyle = {
  object: string;
  id: string;
  noteChoice(choice: JsonObject): void;
  /** The choices as SDKs read them; the same list if they are so. */
  readChoices?: (choices: JsonObject[]) => JsonObject[];
  /** The choices as the caller wants them; the same list if that is as they came. */
  showChoices?: (choices: JsonObject[]) => JsonObject[];
};

/** Relays a stream of chunks that have choices. */
export function relayChoices(
  options: Omit<PassthroughOptions, 'request'>,
  state: StreamState,
  style: ChoiceStyle,
): SameStream {
  /** Answers by their index: how many of `n` have begun, and whether they have ended. */
  const ended = new Map<Json, boolean>();
  const own = { id: style.id, model: options.model };
  const rename = makeRenamer(own);
  let created: Json = null;
  /** The `usage` that the caller was sent. */
  let reported_usage: Json | undefined;
  /** The caller wants to know, and the upstream did not tell: what was counted here, which is what it pays. */
  const withUsage = (end: Buffer): Buffer => {
    const charged = chargedIn(state, options);
    if (!options.wants_usage || usage_format.reports(reported_usage, charged)) return end;
    const usage = withCost(usage_format.correct(reported_usage, charged), charged, options.cost);
    const chunk = { ...own, created, object: style.object, choices: [], usage };
    return Buffer.concat([Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`), end]);
  };
  const rewritten = (chunk: JsonObject, choices: JsonObject[]) =>
    chunkWith(options.wants_usage ? chunk : withoutUsage(chunk), { ...own, choices });
  const take = (frame: SseFrame): Buffer | undefined => {
    const { raw, data } = frame;
    if (data === undefined) return raw;
    if (data.trim() === '') return undefined; // some servers' sign of life; callers would fail to parse it
    if (data.startsWith('[DONE]')) return complete(state, withUsage(raw));
    const chunk = objectOf(data);
    if (chunk['error'] !== undefined && chunk['error'] !== null) return refuse(state, chunk['error']);
    learnUsage(state, usage_format.read(usageIn(chunk)));
    created = chunk['created'] ?? null;
    state.upstream_id ??= upstreamIdOf(chunk['id']);
    const received = Array.isArray(chunk['choices']) ? chunk['choices'].filter(isObject) : [];
    const choices = style.readChoices?.(received) ?? received;
    state.has_begun ||= choices.length > 0;
    for (const choice of choices) {
      const { index = 0, finish_reason } = choice;
      ended.set(index, ended.get(index) === true || typeof finish_reason === 'string');
      style.noteChoice(choice);
    }
    noteReasons(state, received);
    state.is_ending ||= ended.size > 0 && [...ended.values()].every(Boolean);
    const shown = style.showChoices?.(choices) ?? choices;
    const { usage } = chunk;
    if (isObject(usage)) {
      if (!options.wants_usage) return rewritten(chunk, shown);
      reported_usage = usage;
      const charged = chargedIn(state, options);
      const is_wrong = state.is_ending && !usage_format.reports(usage, charged);
      if (is_wrong || tellsCost(usage) || options.cost) {
        reported_usage = withCost(is_wrong ? usage_format.correct(usage, charged) : usage, charged, options.cost);
        return chunkOf({ ...chunk, ...own, choices: shown, usage: reported_usage });
      }
    }
    if (shown !== received) return rewritten(chunk, shown);
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

/** The record of a call has the upstream's own words. */
function noteReasons(state: StreamState, choices: readonly JsonObject[]): void {
  for (const { finish_reason: reason } of choices)
    if (typeof reason === 'string' && reason !== '') state.finish = reason;
}

function withoutUsage(chunk: JsonObject): JsonObject {
  const { usage: _, ...rest } = chunk;
  return rest;
}

/** A chunk of which nothing is left is not sent. */
function chunkWith(chunk: JsonObject, own: { choices: JsonObject[] }): Buffer | undefined {
  return own.choices.length === 0 ? undefined : chunkOf({ ...chunk, ...own });
}

function chunkOf(chunk: JsonObject): Buffer {
  return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
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

function noteChoice(state: StreamState, choice: JsonObject): void {
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

function deliverThought(state: StreamState, text: Json | undefined): void {
  if (typeof text !== 'string' || text === '') return;
  state.reasons = true;
  deliver(state, text);
}
