import type { JsonObject } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import type { CallerCodec, ChatRequest, Purpose, Target, UpstreamBody } from './codec.ts';
import { memberOf, isObject, mistake, notCarried, wrongType } from './fields.ts';

/**
 * Reads what routing and money need of a chat body, in place; everything else is left to whoever answers.
 * `count` is for a body whose tokens are only counted: it needs no max_tokens. Throws ApiError 400.
 */
export function readChatRequest(style: CallerCodec, body: unknown, purpose: Purpose = 'answer'): ChatRequest {
  if (!isObject(body)) throw new ApiError('invalid_request', 'The body must be a JSON object.');
  refuseThread(body);
  return { style, body, ...style.caller.readRequest(body, purpose) };
}

/**
 * A thread's history would lie upstream, in the account that all callers share. SDKs that begin one unasked (the tool
 * runner of the messages style) go on without by themselves when they are told in these words.
 */
function refuseThread(body: JsonObject): void {
  if (memberOf(body, 'thread') === undefined) return;
  const message = 'thread is not offered: nothing is stored here, send the whole conversation in messages.';
  const sdk_details = { error_code: 'thread_unsupported_request', unsupported: ['thread'] };
  throw new ApiError('invalid_request', message, { param: 'thread', code: 'unsupported_field', sdk_details });
}

/** The body for an upstream. Throws ApiError 400, naming the field, for what cannot be given to one of another style. */
export function upstreamBody(request: ChatRequest, target: Target): UpstreamBody {
  const { caller } = request.style;
  if (request.style === target.style) return { body: caller.passthrough.body(request, target) };
  const { upstream } = target.style;
  const conversation = caller.parseRequest(request.body);
  if (conversation.logprobs !== undefined && !upstream.has_logprobs)
    throw notCarried('logprobs', 'A wish for the probabilities of tokens');
  return upstream.renderRequest(conversation, request, target);
}

/** Reads the model's name. Throws ApiError 400. */
export function readModel(body: JsonObject): string {
  const model = memberOf(body, 'model');
  if (model === undefined) throw mistake('model', 'is required');
  if (typeof model !== 'string' || model === '') throw mistake('model', 'must be a non-empty string');
  return model;
}

/** Checks a body's `messages` as far as every model needs them. Throws ApiError 400. */
export function checkMessages(body: JsonObject): void {
  const messages = memberOf(body, 'messages');
  if (messages === undefined) throw mistake('messages', 'is required');
  if (!Array.isArray(messages)) throw wrongType('messages', 'an array', messages);
  if (messages.length === 0) throw mistake('messages', 'must not be empty');
  for (const [index, message] of messages.entries()) {
    if (!isObject(message)) throw wrongType(`messages[${index}]`, 'an object', message);
    if (typeof message['role'] !== 'string') throw mistake(`messages[${index}].role`, 'must be a string');
  }
}

/**
 * Reads the budget of `thinking`, as the messages style has it, or of `reasoning`, as some vendors of chat completions
 * do.
 */
export function thinkingBudget({ thinking, reasoning }: JsonObject): number {
  const budgets = [
    isObject(thinking) && thinking['type'] !== 'disabled' ? thinking['budget_tokens'] : undefined,
    isObject(reasoning) && reasoning['enabled'] !== false ? reasoning['max_tokens'] : undefined,
  ];
  return Math.max(0, ...budgets.filter((each) => Number.isSafeInteger(each)).map(Number));
}

/** The fields by which a caller chooses models and routes, in every style, as JSON Schema. */
export const routing_fields = {
  models: {
    type: 'array',
    items: { type: 'string', examples: ['acme/small'] },
    maxItems: 3,
    description:
      'Models to be asked in this order if the one in `model` does not answer. The one that answers is charged. Without `model` the first one is the model.',
  },
  provider: {
    type: 'object',
    description: 'The routes of a model that are tried, and their order. Providers have the names of the operator.',
    properties: {
      order: { type: 'array', items: { type: 'string' }, description: 'These providers first.' },
      only: { type: 'array', items: { type: 'string' }, description: 'No other providers.' },
      ignore: { type: 'array', items: { type: 'string' }, description: 'Not these providers.' },
      allow_fallbacks: {
        type: 'boolean',
        description: 'false: only the providers of `order`, or without it the first route alone.',
      },
      sort: { enum: ['price', 'latency', 'throughput'], description: 'The fastest routes first, as measured lately.' },
      max_price: {
        type: 'object',
        description: 'The most that a million tokens, or a call, may cost, in the currency of the account.',
        properties: {
          prompt: { type: ['number', 'string'] },
          completion: { type: ['number', 'string'] },
          request: { type: ['number', 'string'] },
        },
      },
      data_collection: { enum: ['allow', 'deny'], description: 'deny: only providers that keep nothing.' },
    },
    examples: [{ order: ['fast-one', 'other-one'], allow_fallbacks: false }],
  },
};

/** A body with `messages` as JSON Schema: what the service itself looks at. */
export const messages_body = {
  type: 'object',
  required: ['model', 'messages'],
  properties: {
    model: { type: 'string', description: 'Model id.' },
    messages: { type: 'array', items: { type: 'object' }, description: 'The conversation, in the style of this path.' },
    stream: { type: 'boolean', description: 'Answer as server-sent events.' },
    ...routing_fields,
  },
};
