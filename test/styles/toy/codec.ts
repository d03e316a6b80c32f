import type { Json, JsonObject } from '../../../src/catalog/model.ts';
import type { CallerCodec, ChatRequest, Target } from '../../../src/styles/codec.ts';
import type { ChatAnswer, Conversation, FinishReason } from '../../../src/styles/conversation.ts';
import {
  isObject,
  mistake,
  needName,
  needObject,
  needText,
  readBoolean,
  readCount,
  words,
} from '../../../src/styles/fields.ts';
import { completions_errors } from '../../../src/styles/completions/errors.ts';
import { ToyReader, ToyWriter, openToyStream } from './stream.ts';
import { usage_format } from './usage.ts';

/**
 * A style that nobody speaks, for a test: a request is a list of lines, an answer one text, a stream pieces of it.
 *
 * Request: `{ model, lines: [{ who: "rule" | "user" | "model", text }], most?, drip? }`. Answer: `{ id, model, text, why,
 * usage: { in, out } }`. Stream: `data: { id, model, text }` for each piece, then `data: { why, usage }`.
 */
export const toy: CallerCodec = {
  name: 'toy',
  upstream: { renderRequest, parseResponse: (body) => [parseAnswer(body)], openReader: () => new ToyReader() },
  caller: {
    endpoint: {
      path: '/v1/toy',
      summary: 'Chat in the toy style',
      body: { type: 'object', required: ['model', 'lines'], properties: { model: { type: 'string' } } },
      response: 'The answer, or its stream.',
    },
    errors: completions_errors,
    members: { sdk: words('model lines most drip'), vendor: words('') },
    turns_field: 'lines',
    stop_field: 'lines',
    usage: usage_format,
    readRequest: (body) => {
      if (!Array.isArray(body['lines'])) throw mistake('lines', 'must be an array');
      return {
        model: needName(body, 'model', 'model'),
        stream: readBoolean(body, 'drip', 'drip') ?? false,
        wants_usage: true,
        max_tokens: readCount(body, 'most', 'most', 1),
        thinking_budget: 0,
        n: 1,
      };
    },
    parseRequest,
    renderResponse: ([answer], usage, _request, { model, request_id }) => ({
      id: answerId(request_id),
      model,
      text: answer ? textOf(answer) : '',
      why: writeFinish(answer?.finish.reason ?? 'stop'),
      usage: usage_format.write(usage),
    }),
    openWriter: (_request, { model, request_id }) =>
      new ToyWriter({ id: answerId(request_id), model }, { writeFinish, writeUsage: usage_format.write }),
    finishOf: ({ why }) => why,
    answerId,
    heartbeat: Buffer.from(': still here\n\n'),
    errorEvent: ({ type }) => Buffer.from(`data: ${JSON.stringify({ error: type })}\n\n`),
    passthrough: {
      body: ({ body, max_tokens }, target) => ({
        ...body,
        model: target.model,
        most: Math.min(max_tokens ?? target.max_tokens, target.max_tokens),
      }),
      openStream: ({ model, request_id }, state) => openToyStream({ id: answerId(request_id), model }, state),
    },
  },
};

function answerId(request_id: string): string {
  return `toy-${request_id}`;
}

const roles = new Map<Json, 'system' | 'user' | 'assistant'>([
  ['rule', 'system'],
  ['user', 'user'],
  ['model', 'assistant'],
]);

function parseRequest({ lines, most }: JsonObject): Conversation {
  const turns = (Array.isArray(lines) ? lines : []).map((value, index) => {
    const line = needObject(value, `lines[${index}]`);
    const role = roles.get(line['who'] ?? null);
    if (!role) throw mistake(`lines[${index}].who`, 'must be rule, user or model');
    const text = needText(line, 'text', `lines[${index}].text`);
    return { role, parts: [{ type: 'text' as const, text }] };
  });
  return { turns, tools: [], stop: [], ...(typeof most === 'number' && { max_tokens: most }) };
}

function renderRequest({ turns }: Conversation, { max_tokens, stream }: ChatRequest, target: Target) {
  const who = { system: 'rule', user: 'user', assistant: 'model' } as const;
  const lines = turns.map(({ role, parts }) => ({
    who: who[role],
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
  }));
  const most = Math.min(max_tokens ?? target.max_tokens, target.max_tokens);
  return { body: { model: target.model, lines, most, ...(stream && { drip: true }) } };
}

function parseAnswer(body: JsonObject): ChatAnswer {
  const { id, text, why } = body;
  if (typeof text !== 'string') throw new Error('The answer has no text.');
  return {
    ...(typeof id === 'string' && { id }),
    parts: text === '' ? [] : [{ type: 'text', text }],
    finish: { reason: why === 'full' ? 'length' : 'stop' },
    usage: isObject(body['usage']) ? usage_format.read(body['usage']) : undefined,
  };
}

function textOf({ parts }: ChatAnswer): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function writeFinish(reason: FinishReason): string {
  return reason === 'length' ? 'full' : 'done';
}
