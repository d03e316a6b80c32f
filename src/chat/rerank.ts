import type { CatalogHolder } from '../catalog/catalog.ts';
import type { JsonObject, Route, Unit } from '../catalog/model.ts';
import type { Usage } from '../styles/conversation.ts';
import {
  measureRerank,
  readRanking,
  readRerankRequest,
  renderRanking,
  reranking,
  textOf,
  type Ranking,
  type RerankRequest,
} from '../styles/rerank.ts';
import type { AttemptContext } from './attempt.ts';
import type { AttemptResult } from './attempt-result.ts';
import type { HostedUses } from './price.ts';
import { findCallModel, type PricedRequest } from './priced-request.ts';
import {
  attemptWhole,
  plainBody,
  priceWhole,
  type WholeKind,
  type WholeParts,
  type WholeRequest,
} from './whole-call.ts';

/** A request for a ranking that has passed all checks that need no database. */
export type PricedRerankRequest = PricedRequest & { request: RerankRequest; hosted: HostedUses };

/** Marks that an upstream may put around each pair of query and document. */
const tokens_per_pair = 8;

/** Reads a body of POST /v1/rerank. Throws ApiError: 400 naming the field, 404 for the model. */
export function priceRerankRequest(catalog: CatalogHolder, call: WholeRequest): PricedRerankRequest {
  const request = readRerankRequest(call.body ?? {});
  const model = findCallModel(catalog, call.caller, request.model, 'rerank');
  const { text_size, search_units_most, search_units_counted } = measureRerank(request);
  const size = { ...text_size, images: 0, documents: 0, document_bytes: 0 };
  const around = request.documents.length * tokens_per_pair;
  return {
    ...priceWhole(catalog, call, model, request, { size, more_estimated: around }),
    hosted: {
      units: ['search_unit'],
      calls_max: search_units_most,
      unreported: { search_unit: search_units_counted },
    },
  };
}

/** The parts of the app that asking a route for a ranking takes. */
export type RerankParts = WholeParts;

/** Asks one route for the ranking. Throws ApiError 400 for what is the caller's own mistake. */
export function attemptRerank(
  parts: RerankParts,
  priced: PricedRerankRequest,
  route: Route,
  context: AttemptContext,
): Promise<AttemptResult> {
  return attemptWhole(parts, kind, priced, route, context);
}

const kind: WholeKind<PricedRerankRequest> = {
  lacks: 'ranks nothing',
  senderOf: (provider) => provider.rerank?.bind(provider),
  bodyFor: ({ request }, route) => rerankBody(request, route),
  read: (priced, bytes) => {
    const { request, model, request_id } = priced;
    const ranking = readRanking(bytes, request);
    const usage = usageOf(priced, ranking);
    const named = { id: ranking.id ?? request_id, model: model.id };
    const { input_tokens = priced.input_tokens_counted } = usage;
    const search_units = usage.tool_calls?.search_unit ?? priced.hosted.unreported?.search_unit ?? 1;
    const shown = {
      ...((isPriced(priced, 'input_token') || ranking.input_tokens !== undefined) && { input_tokens }),
      ...(isPriced(priced, 'search_unit') && { search_units: Math.min(search_units, priced.hosted.calls_max) }),
    };
    return { bytes: renderRanking(request, ranking, named, shown), usage, upstream_id: ranking.id };
  },
};

/** The same for all upstreams: adapters write it in their words. */
function rerankBody(request: RerankRequest, route: Route): JsonObject {
  const {
    top_k: _,
    return_documents: __,
    rank_fields: ___,
    ...body
  } = plainBody(reranking.members, request.body, route);
  return { ...body, documents: request.documents.map(textOf), top_n: request.count };
}

/** Reported is what everything that has a price was reported of; what is neither reported nor paid for is 0. */
function usageOf(priced: PricedRerankRequest, { input_tokens, search_units }: Ranking): Partial<Usage> {
  const is_missing =
    (isPriced(priced, 'input_token') && input_tokens === undefined) ||
    (isPriced(priced, 'search_unit') && search_units === undefined);
  return {
    output_tokens: 0,
    ...(!is_missing && { input_tokens: input_tokens ?? 0 }),
    ...(search_units !== undefined && { tool_calls: { search_unit: search_units } }),
  };
}

function isPriced({ pricing }: PricedRerankRequest, unit: Unit): boolean {
  return pricing.rows.some((row) => row.unit === unit);
}
