import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Route } from '../catalog/model.ts';
import type { AddressRules } from '../net/address.ts';
import { findLinks, judgeLinks, type BodyLink } from '../styles/links.ts';
import {
  moderations,
  readModerationRequest,
  renderModerations,
  type ModerationRequest,
} from '../styles/moderations.ts';
import type { AttemptContext } from './attempt.ts';
import type { AttemptResult } from './attempt-result.ts';
import { attemptLinked, linkPolicy, type FetchingParts, type LinkPolicyParts } from './linked.ts';
import { findCallModel, type PricedRequest } from './priced-request.ts';
import {
  attemptWhole,
  plainBody,
  priceWhole,
  type WholeKind,
  type WholeParts,
  type WholeRequest,
} from './whole-call.ts';

/** A request for moderation that has passed all checks that need no database. */
export type PricedModerationRequest = PricedRequest & { request: ModerationRequest; links: readonly BodyLink[] };

/** The parts of the app that pricing a request for moderation takes. */
type PricingParts = { readonly catalog: CatalogHolder; addressRules(): AddressRules };

/** Reads a body of POST /v1/moderations. Throws ApiError: 400 naming the field, 404 for the model. */
export function priceModerationRequest(
  { catalog, addressRules }: PricingParts,
  call: WholeRequest,
): PricedModerationRequest {
  const request = readModerationRequest(call.body ?? {});
  const model = findCallModel(catalog, call.caller, request.model, 'moderation');
  const links = findLinks(request.body);
  judgeLinks(links, addressRules());
  const size = { ...request.text_size, images: request.images, documents: 0, document_bytes: 0 };
  return { ...priceWhole(catalog, call, model, request, { size }), links };
}

/** The parts of the app that asking a route for moderation takes. */
export type ModerationParts = WholeParts & LinkPolicyParts & FetchingParts;

/** Asks one route. Throws ApiError 400 for what is the caller's own mistake. */
export function attemptModeration(
  parts: ModerationParts,
  priced: PricedModerationRequest,
  route: Route,
  context: AttemptContext,
): Promise<AttemptResult> {
  const linked = { links: priced.links, policy: linkPolicy(parts, route) };
  return attemptLinked(parts, priced, linked, { route, caller: context.caller }, (fetched) =>
    attemptWhole(parts, kind, fetched, route, context),
  );
}

const kind: WholeKind<PricedModerationRequest> = {
  lacks: 'moderates nothing',
  senderOf: (provider) => provider.moderate?.bind(provider),
  bodyFor: ({ request }, route) => plainBody(moderations.members, request.body, route),
  read: ({ request, model, request_id, pricing }, whole) => {
    const { bytes, id, input_tokens } = renderModerations(request, whole, { model: model.id, id: request_id });
    // Most servers report no tokens: where these have no price, there is nothing to count.
    const is_reported = input_tokens !== undefined || !pricing.rows.some(({ unit }) => unit === 'input_token');
    return {
      bytes,
      usage: { output_tokens: 0, ...(is_reported && { input_tokens: input_tokens ?? 0 }) },
      upstream_id: id,
    };
  },
};
