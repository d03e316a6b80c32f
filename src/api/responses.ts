import type { App } from '../app.ts';
import { countTokens } from '../chat/count.ts';
import { ApiError } from '../errors.ts';
import { responses_body } from './call-schemas.ts';
import { answerChat, body_limit_bytes, callerOf, chat_headers } from './chat.ts';
import type { Endpoint, EndpointDocs } from '../http/endpoint.ts';

export const responses: Endpoint<App> = {
  method: 'POST',
  path: '/v1/responses',
  window: 'chat',
  format: 'completions',
  body_limit_bytes,
  lenient_query: true,
  long_integers: true,
  docs: {
    tag: 'Chat',
    summary: 'Chat in the responses style',
    description:
      'Every chat model takes it. Nothing is stored: send the whole conversation in `input`. Tools that a provider would run are not offered.',
    body: { schema: responses_body, examples: { text: { model: 'sandbox/chat', input: 'Hello' } } },
    responses: {
      200: { description: 'The response, or its stream of named events.', headers: chat_headers },
      404: { description: 'There is no chat model of this name here.' },
    },
    errors: [402, 403, 404, 502, 504],
  },
  handle: (app, call) => answerChat(app, 'responses', call),
};

/** Free of charge, so it counts with the reads. */
export const count_input_tokens: Endpoint<App> = {
  method: 'POST',
  path: '/v1/responses/input_tokens',
  format: 'completions',
  body_limit_bytes,
  lenient_query: true,
  long_integers: true,
  docs: {
    tag: 'Chat',
    summary: 'Count the tokens of a request in the responses style',
    body: { schema: responses_body },
    responses: { 200: { description: '`{"object": "response.input_tokens", "input_tokens": N}`' } },
    errors: [404],
  },
  handle: async (app, call) => {
    const input_tokens = await countTokens(app, 'responses', call, callerOf(call));
    return { status: 200, body: { object: 'response.input_tokens', input_tokens } };
  },
};

const docs: EndpointDocs = {
  tag: 'Chat',
  summary: 'Not offered',
  params: { id: { description: 'Of a response.', schema: { type: 'string' } } },
  responses: {},
  hidden: true,
};

function nothingStored(): never {
  throw new ApiError('not_found', 'Nothing is stored here: a response is told once, in the answer to its own call.', {
    param: 'id',
  });
}

const base = { format: 'completions', lenient_query: true, docs, handle: nothingStored } as const;

/** Responses are not kept. */
export const stored_responses: readonly Endpoint<App>[] = [
  { ...base, method: 'GET', path: '/v1/responses/{id}' },
  { ...base, method: 'DELETE', path: '/v1/responses/{id}' },
  { ...base, method: 'POST', path: '/v1/responses/{id}/cancel' },
  { ...base, method: 'GET', path: '/v1/responses/{id}/input_items' },
];
