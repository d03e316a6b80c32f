import { ApiError } from '../errors.ts';
import type { Endpoint, EndpointDocs } from '../http/endpoint.ts';
import { completions_errors } from '../styles/completions/errors.ts';

const docs: EndpointDocs = {
  tag: 'Chat',
  summary: 'Not offered',
  params: { id: { description: 'Of a response.', schema: { type: 'string' } } },
  responses: {},
  hidden: true,
};

function nothingStored(): never {
  throw new ApiError('not_found', 'Nothing is stored here: a response is returned once, by the call that creates it.', {
    param: 'id',
  });
}

const base = { format: completions_errors, lenient_query: true, docs, handle: nothingStored } as const;

/** Responses are not kept. */
export const stored_responses: readonly Endpoint<unknown>[] = [
  { ...base, method: 'GET', path: '/v1/responses/{id}' },
  { ...base, method: 'DELETE', path: '/v1/responses/{id}' },
  { ...base, method: 'POST', path: '/v1/responses/{id}/cancel' },
  { ...base, method: 'GET', path: '/v1/responses/{id}/input_items' },
];
