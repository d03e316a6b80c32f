import type { App } from '../app.ts';
import { ApiError } from '../errors.ts';
import { responses_body } from './call-schemas.ts';
import { answerChat, body_limit_bytes, cost_headers } from './chat.ts';
import type { Endpoint, EndpointDocs } from './endpoint.ts';

export const responses: Endpoint<App> = {
  method: 'POST',
  path: '/v1/responses',
  window: 'chat',
  format: 'completions',
  body_limit_bytes,
  lenient_query: true,
  docs: {
    tag: 'Chat',
    summary: 'Chat in the responses style',
    description:
      'Every chat model takes it. Nothing is stored: send the whole conversation in `input`. Tools that a provider would run are not offered.',
    body: { schema: responses_body, examples: { text: { model: 'sandbox/chat', input: 'Hello' } } },
    responses: {
      200: { description: 'The response, or its stream of named events.', headers: cost_headers },
      404: { description: 'There is no chat model of this name here.' },
    },
    errors: [402, 403, 404, 502, 504],
  },
  handle: (app, call) => answerChat(app, 'responses', call),
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
