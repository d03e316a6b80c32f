import type { Json, JsonObject } from '../../catalog/model.ts';
import type { Ask } from '../ask.ts';
import { isObject } from '../fields.ts';
import type { Quirks, Target } from '../quirks.ts';
import { isForeign } from '../seal.ts';
import { answer_tokens_min, budget_tokens_min, budgetOf, effortOfBudget, fitBudget, readEffort } from '../thinking.ts';

/**
 * The caller's body for an upstream of the same style: a shallow copy with the few fields changed that must
 * be. Everything else goes on as it came, fields that we do not know and explicit nulls too.
 */

export function sameCompletionsBody(ask: Ask, target: Target): JsonObject {
  const { quirks } = target;
  const body: JsonObject = { ...ask.body, model: target.model };
  limitCompletions(body, ask, target);
  if (ask.stream && quirks.stream_options === false) delete body['stream_options'];
  else if (ask.stream) body['stream_options'] = { ...options(ask), include_usage: true };
  if (quirks.sampling === false) dropSampling(body);
  if (quirks.reasoning_effort === false) delete body['reasoning_effort'];
  if (quirks.developer_role === false) body['messages'] = changeMessages(body['messages'], asSystem);
  if (quirks.reasoning_field === 'none') body['messages'] = changeMessages(body['messages'], withoutReasoning);
  return body;
}

function options(ask: Ask): JsonObject {
  const { stream_options } = ask.body;
  return isObject(stream_options) ? stream_options : {};
}

/** Both names at once are an error at the upstream. */
function limitCompletions(body: JsonObject, ask: Ask, target: Target): void {
  const names = ['max_completion_tokens', 'max_tokens'] as const;
  const used = names.find((name) => typeof body[name] === 'number');
  const field = target.quirks.max_tokens_field ?? used ?? 'max_tokens';
  // What stands in its place is not deleted first: V8 keeps an object with holes as a dictionary, which is slower to write.
  for (const name of names) if (name !== field && typeof body[name] === 'number') delete body[name];
  const max_tokens = Math.min(ask.max_tokens ?? target.max_tokens, target.max_tokens);
  body[field] = max_tokens;
  if (ask.thinking_budget > max_tokens) limitReasoning(body, max_tokens);
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

function dropSampling(body: JsonObject): void {
  for (const name of ['temperature', 'top_p', 'top_k']) delete body[name];
}

function changeMessages(messages: Json | undefined, change: (message: JsonObject) => JsonObject): Json {
  if (!Array.isArray(messages)) return null;
  return messages.map((message) => (isObject(message) ? change(message) : message));
}

function asSystem(message: JsonObject): JsonObject {
  return message['role'] === 'developer' ? { ...message, role: 'system' } : message;
}

/** Callers push whole answers back, with the thinking that a model of another provider gave, and its seals. */
function withoutReasoning(message: JsonObject): JsonObject {
  const { reasoning_content, reasoning, reasoning_details, ...rest } = unsealed(message);
  const { tool_calls } = rest;
  const is_sealed = Array.isArray(tool_calls) && tool_calls.some((call) => isObject(call) && 'extra_content' in call);
  if (is_sealed) rest['tool_calls'] = tool_calls.map((call) => (isObject(call) ? unsealed(call) : call));
  const has_any = [reasoning_content, reasoning, reasoning_details].some((field) => field !== undefined);
  return has_any || is_sealed || 'extra_content' in message ? rest : message;
}

function unsealed(holder: JsonObject): JsonObject {
  const { extra_content: _, ...rest } = holder;
  return rest;
}

export function sameMessagesBody(ask: Ask, target: Target): JsonObject {
  const body: JsonObject = { ...ask.body, model: target.model };
  const max_tokens = Math.min(ask.max_tokens ?? target.max_tokens, target.max_tokens);
  body['max_tokens'] = max_tokens;
  adaptThinking(body, target.quirks);
  if (max_tokens !== ask.max_tokens) limitBudget(body, max_tokens);
  if (target.quirks.sampling === false) dropSampling(body);
  body['messages'] = withoutUnsigned(ask.body['messages']);
  return body;
}

/** What a messages upstream refuses where it only counts; a budget has nothing to be below of there. */
const uncounted = [
  'max_tokens',
  'stream',
  'stop_sequences',
  'temperature',
  'top_p',
  'top_k',
  'metadata',
  'service_tier',
];

/** The body for counting the tokens of a messages request at an upstream of that style. */
export function countingBody(ask: Ask, model: string, quirks: Quirks): JsonObject {
  const body: JsonObject = { ...ask.body, model, messages: withoutUnsigned(ask.body['messages']) };
  for (const name of uncounted) delete body[name];
  if (quirks.thinking !== undefined) delete body['thinking'];
  return body;
}

/** Tools send `adaptive` for every model whose name they do not know, and older models refuse it. */
function adaptThinking(body: JsonObject, quirks: Quirks): void {
  const { thinking } = body;
  if (!isObject(thinking) || quirks.thinking === undefined) return;
  const type = thinking['type'];
  if (quirks.thinking === 'none' || (quirks.thinking === 'always' && type !== 'adaptive')) {
    delete body['thinking'];
  } else if (quirks.thinking === 'adaptive' && type === 'enabled') {
    const { budget_tokens, ...rest } = thinking;
    body['thinking'] = { ...rest, type: 'adaptive' };
    const config = isObject(body['output_config']) ? body['output_config'] : {};
    const effort = effortOfBudget(typeof budget_tokens === 'number' ? budget_tokens : budget_tokens_min);
    body['output_config'] = { effort, ...config };
  } else if (quirks.thinking === 'budget' && type === 'adaptive') {
    const config = isObject(body['output_config']) ? body['output_config'] : {};
    const budget_tokens = budgetOf(readEffort(config['effort']) ?? 'high');
    body['thinking'] = { ...thinking, type: 'enabled', budget_tokens: budget_tokens };
    limitBudget(body, typeof body['max_tokens'] === 'number' ? body['max_tokens'] : 0);
  }
}

/** The upstream wants the budget below max_tokens, which may be less than the caller's. */
function limitBudget(body: JsonObject, max_tokens: number): void {
  const { thinking } = body;
  if (!isObject(thinking) || thinking['type'] !== 'enabled' || typeof thinking['budget_tokens'] !== 'number') return;
  if (thinking['budget_tokens'] < max_tokens) return;
  const budget_tokens = max_tokens - answer_tokens_min;
  if (budget_tokens < budget_tokens_min) delete body['thinking'];
  else body['thinking'] = { ...thinking, budget_tokens };
}

/**
 * Thinking that an upstream of another style gave has no signature, or one that holds seals; this one would
 * refuse the whole conversation for it. Such blocks are left out, all others stay the objects that they were.
 */
function withoutUnsigned(messages: Json | undefined): Json {
  if (!Array.isArray(messages)) return null;
  if (!messages.some(hasUnsigned)) return messages;
  return messages.flatMap((message) => {
    if (!isObject(message) || !Array.isArray(message['content']) || !hasUnsigned(message)) return [message];
    const content = message['content'].filter((block) => !isUnsigned(block));
    return content.length === 0 ? [] : [{ ...message, content }];
  });
}

function hasUnsigned(message: Json): boolean {
  return isObject(message) && Array.isArray(message['content']) && message['content'].some(isUnsigned);
}

function isUnsigned(block: Json): boolean {
  if (!isObject(block) || block['type'] !== 'thinking') return false;
  const signature = block['signature'] ?? '';
  return signature === '' || (typeof signature === 'string' && isForeign(signature));
}
