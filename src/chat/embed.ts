import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Route } from '../catalog/model.ts';
import { embeddings, readEmbeddingRequest, renderEmbeddings, type EmbeddingRequest } from '../styles/embeddings.ts';
import type { AttemptContext } from './attempt.ts';
import type { AttemptResult } from './attempt-result.ts';
import { findCallModel, type PricedRequest } from './priced-request.ts';
import {
  attemptWhole,
  plainBody,
  priceWhole,
  type WholeKind,
  type WholeParts,
  type WholeRequest,
} from './whole-call.ts';

/** A request for embeddings that has passed all checks that need no database. */
export type PricedEmbeddingRequest = PricedRequest & { request: EmbeddingRequest };

/** Reads a body of POST /v1/embeddings. Throws ApiError: 400 naming the field, 404 for the model. */
export function priceEmbeddingRequest(catalog: CatalogHolder, call: WholeRequest): PricedEmbeddingRequest {
  const request = readEmbeddingRequest(call.body ?? {});
  const model = findCallModel(catalog, call.caller, request.model, 'embedding');
  const size = { ...request.text_size, images: 0, documents: 0, document_bytes: 0 };
  const { tokens } = request;
  return priceWhole(catalog, call, model, request, { size, more_estimated: tokens, more_counted: tokens });
}

/** The parts of the app that asking a route for vectors takes. */
export type EmbeddingParts = WholeParts;

/** Asks one route for the vectors. Throws ApiError 400 for what is the caller's own mistake. */
export function attemptEmbedding(
  parts: EmbeddingParts,
  priced: PricedEmbeddingRequest,
  route: Route,
  context: AttemptContext,
): Promise<AttemptResult> {
  return attemptWhole(parts, embedding, priced, route, context);
}

/** As text, vectors are four times as long; so many would be more than an answer may have. */
const vectors_as_text_max = 256;

const embedding: WholeKind<PricedEmbeddingRequest> = {
  lacks: 'makes no embeddings',
  senderOf: (provider) => provider.embed?.bind(provider),
  bodyFor: ({ request }, route) => {
    const body = plainBody(embeddings.members, request.body, route);
    return request.count > vectors_as_text_max ? { ...body, encoding_format: 'base64' } : body;
  },
  read: async ({ request, model, input_tokens_counted }, whole) => {
    const { bytes, input_tokens } = await renderEmbeddings(request, whole, model.id, input_tokens_counted);
    return { bytes, usage: { output_tokens: 0, ...(input_tokens !== undefined && { input_tokens }) } };
  },
};
