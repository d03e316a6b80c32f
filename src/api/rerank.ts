import type { AttemptRoute, CallParts } from '../chat/call.ts';
import { attemptRerank, priceRerankRequest, type PricedRerankRequest, type RerankParts } from '../chat/rerank.ts';
import type { Answer, Call, Endpoint } from '../http/endpoint.ts';
import { completions_errors } from '../styles/completions/errors.ts';
import { refuseBlocked } from './blocked.ts';
import { rerank_answer, rerank_body } from './call-schemas.ts';
import { answerWhole, body_limit_bytes, cost_headers } from './chat.ts';
import { callerOf } from './chat-request.ts';

export const rerank: Endpoint<CallParts & RerankParts> = {
  method: 'POST',
  path: '/v1/rerank',
  window: 'chat',
  format: completions_errors,
  body_limit_bytes,
  lenient_query: true,
  long_integers: true,
  docs: {
    tag: 'Rerank',
    summary: 'Rank documents',
    description:
      'Orders documents by their relevance to a query. The body is that of Cohere, Jina and most servers; `/v2/rerank` is the same, for the SDK of Cohere. The hold depends on the length of query and documents, the charge on the search units or tokens that the upstream reports.',
    body: {
      schema: rerank_body,
      examples: {
        texts: {
          model: 'sandbox/rerank',
          query: 'a red bicycle',
          documents: ['Two blue cars', 'A bicycle, painted red', 'Bicycle lanes'],
          top_n: 2,
        },
      },
    },
    responses: {
      200: { description: 'The most relevant documents.', schema: rerank_answer, headers: cost_headers },
      404: { description: 'There is no rerank model with this id.' },
    },
    errors: [402, 403, 404, 502, 504],
  },
  handle: answerRerank,
};

/** Answers a body of the path. */
export function answerRerank(app: CallParts & RerankParts, call: Call): Promise<Answer> {
  refuseBlocked(call.caller);
  const priced = priceRerankRequest(app.catalog, call);
  const attempt: AttemptRoute<PricedRerankRequest> = (request, route, context) =>
    attemptRerank(app, request, route, context);
  return answerWhole(app, priced, attempt, callerOf({}, call));
}

/** The path of the SDK of Cohere. */
export const rerank_of_cohere: Endpoint<CallParts & RerankParts> = {
  ...rerank,
  path: '/v2/rerank',
  docs: { ...rerank.docs, body: { schema: rerank_body }, hidden: true },
};
