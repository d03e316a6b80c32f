import type { AttemptRoute, CallParts } from '../chat/call.ts';
import {
  attemptEmbedding,
  priceEmbeddingRequest,
  type EmbeddingParts,
  type PricedEmbeddingRequest,
} from '../chat/embed.ts';
import { refuseBlocked } from './blocked.ts';
import { embeddings_answer, embeddings_body } from './call-schemas.ts';
import { answerWhole, body_limit_bytes, cost_headers } from './chat.ts';
import { callerOf } from './chat-request.ts';
import type { Endpoint } from '../http/endpoint.ts';
import { completions_errors } from '../styles/completions/errors.ts';

/** The parts of the app that embeddings take. */
export type EmbeddingsParts = CallParts & EmbeddingParts;

export const embeddings: Endpoint<EmbeddingsParts> = {
  method: 'POST',
  path: '/v1/embeddings',
  window: 'chat',
  format: completions_errors,
  body_limit_bytes,
  lenient_query: true,
  long_integers: true,
  docs: {
    tag: 'Embeddings',
    summary: 'Create embeddings',
    description:
      'In the format of the OpenAI SDKs. The hold depends on the length of the input, the charge on the tokens that the upstream counts.',
    body: {
      schema: embeddings_body,
      examples: { texts: { model: 'sandbox/embedding', input: ['a red bicycle', 'two wheels'] } },
    },
    responses: {
      200: {
        description: 'One vector for each input, in its order.',
        schema: embeddings_answer,
        headers: cost_headers,
      },
      404: { description: 'There is no embedding model with this id.' },
    },
    errors: [402, 403, 404, 502, 504],
  },
  handle: (app, call) => {
    refuseBlocked(call.caller);
    const priced = priceEmbeddingRequest(app.catalog, call);
    const attempt: AttemptRoute<PricedEmbeddingRequest> = (request, route, context) =>
      attemptEmbedding(app, request, route, context);
    return answerWhole(app, priced, attempt, callerOf({}, call));
  },
};
