import type { Caller } from '../accounts/authenticate.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Route } from '../catalog/model.ts';
import { embeddings, readEmbeddingRequest, renderEmbeddings, type EmbeddingRequest } from '../styles/embeddings.ts';
import type { Attempted, ChatCaller } from './attempt.ts';
import { findModel, type PricedRequest } from './priced-request.ts';
import { labelsOf } from './labels.ts';
import type { ChatOutcome } from './outcome.ts';
import { countInput, estimateInput, mostInput, pricingOf } from './price.ts';
import { attemptWhole, plainBody, type WholeKind, type WholeParts } from './whole-call.ts';

/** A request for embeddings that has passed all checks that need no database. */
export type PricedEmbeddingRequest = PricedRequest & { request: EmbeddingRequest };

/** Reads a body of POST /v1/embeddings. Throws ApiError: 400 naming the field, 404 for the model. */
export function priceEmbeddingRequest(
  catalog: CatalogHolder,
  call: { caller: Caller; request_id: string; body: Record<string, unknown> | undefined },
): PricedEmbeddingRequest {
  const request = readEmbeddingRequest(call.body ?? {});
  const model = findModel(catalog, request.model, 'embedding');
  const pricing = pricingOf(model, call.caller.account.currency, catalog.current.settings);
  const size = { ...request.text_size, images: 0, documents: 0, document_bytes: 0 };
  return {
    caller: call.caller,
    request_id: call.request_id,
    request,
    labels: labelsOf(request.body),
    model,
    pricing,
    hold_pricing: pricing,
    input_tokens_estimated: estimateInput(size) + request.tokens,
    input_tokens_most: mostInput(size) + request.tokens,
    input_tokens_counted: countInput(size) + request.tokens,
    output: { bound: 0, most: 0, usual: 0, least: 0, sent_min: 0 },
    max_tokens: 0,
  };
}

/** The parts of the app that asking a route for vectors takes. */
export type EmbeddingParts = WholeParts;

/** Asks one route for the vectors. Throws ApiError 400 for what is the caller's own mistake. */
export function attemptEmbedding(
  parts: EmbeddingParts,
  priced: PricedEmbeddingRequest,
  route: Route,
  caller: ChatCaller,
  outcome: ChatOutcome,
): Promise<Attempted> {
  return attemptWhole(parts, embedding, priced, route, caller, outcome);
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
