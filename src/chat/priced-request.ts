import type { Caller } from '../accounts/authenticate.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { CallKind, JsonObject, Model, Route } from '../catalog/model.ts';
import type { Pricing } from '../catalog/price.ts';
import { wrongKind } from '../catalog/model-errors.ts';
import { modelNamed } from '../catalog/names.ts';
import type { AddressRules } from '../net/address.ts';
import type { CallerCodec, CallerHalf, ChatRequest, Codec } from '../styles/codec.ts';
import { inputSize } from '../styles/input-size.ts';
import { findLinks, judgeLinks, type BodyLink } from '../styles/links.ts';
import { quirksOf } from '../styles/quirks.ts';
import { readChatRequest } from '../styles/request.ts';
import { answer_tokens_min } from '../styles/thinking.ts';
import { hasLongCaches } from '../styles/long-caches.ts';
import {
  countInput,
  estimateInput,
  hasHourPrice,
  inputWithResults,
  mostInput,
  pricingForHold,
  pricingOf,
  type HostedTools,
  type HostedUses,
} from './price.ts';
import { ownImages, type OwnImages } from './own-images.ts';
import { function_tokens, ownSearch, withSearchPrice, type OwnSearch } from './own-search.ts';
import { hostedTools } from './tools.ts';
import { checkMaxPrice, preferredRoutes, takePreferences, type ChoiceParts, type RouteReason } from './preferences.ts';

/** The style of a call, as far as all kinds of calls have one: only chat is streamed. */
export type CallStyle = {
  readonly name: string;
  readonly caller?: Pick<CallerHalf, 'heartbeat' | 'errorEvent' | 'streamed_codes'>;
};

/** A priced request: all that holding money, trying routes and settling need, for all kinds of calls. */
export type PricedRequest = {
  caller: Caller;
  request_id: string;
  request: { readonly style: CallStyle; readonly stream: boolean; readonly n: number };
  /** With the routes that may be tried, in their order. */
  model: Model;
  /** The reason for this order; absent where a caller is not told of routes. */
  route_reason?: RouteReason;
  pricing: Pricing;
  /** Of these the ones that the request can cause, for the hold. */
  hold_pricing: Pricing;
  /** For the hold: about as many as it will be, and the most that it can be. */
  input_tokens_estimated: number;
  input_tokens_most: number;
  /** For the charge, where the upstream reports none. */
  input_tokens_counted: number;
  output: OutputBounds;
  /** Absent: the call costs nothing beside its tokens. */
  hosted?: HostedUses;
  /** Absent: the service searches nothing for the call. */
  search?: OwnSearch;
  /** Absent: the service makes no images for the call. */
  images?: OwnImages;
  /** Sent to upstreams as the most that each answer may have: `output.most`, until the hold says how much is paid for. */
  max_tokens: number;
};

/** Bounds of the output in tokens, for the hold. */
export type OutputBounds = {
  /** The caller's, else the model's. */
  bound: number;
  /** With plenty of money: never more than the model's maximum. */
  most: number;
  /** With some money. Less than `most` if the caller set no bound. */
  usual: number;
  /** With less than this for the answer, a call is refused rather than begun. */
  least: number;
  /** Sent for less, since the upstream takes no less. */
  sent_min: number;
};

/** A chat request that has passed all checks that need no database. */
export type PricedChatRequest = PricedRequest & {
  request: ChatRequest;
  links: readonly BodyLink[];
  hosted?: HostedTools;
};

/** The parts of the app that pricing a chat request takes. */
export type PricingParts = ChoiceParts & {
  readonly catalog: CatalogHolder;
  readonly styles: readonly Codec[];
  addressRules(): AddressRules;
};

/** Reads a body of a chat path. Throws ApiError: 400 naming the field, 404 for the model. */
export function priceChatRequest(
  parts: PricingParts,
  style: CallerCodec,
  call: { caller: Caller; request_id: string; body: Record<string, unknown> | undefined; echo?: JsonObject },
): PricedChatRequest {
  const read = readChatRequest(style, call.body ?? {});
  const named = findModel(parts.catalog, read.model, 'chat');
  const { body, preferences } = takePreferences(read.body, named, parts.catalog.current);
  const request = { ...read, body, ...(call.echo && { echo: call.echo }) };
  const preferred = preferences && preferredRoutes(parts, named, preferences);
  const model = preferred ? { ...named, routes: preferred.routes } : named;
  const links = findLinks(request.body);
  judgeLinks(links, parts.addressRules());
  const { settings } = parts.catalog.current;
  const output = boundsOf(request, model, parts.styles);
  const input_size = inputSize(request);
  const sold = hostedTools(request, model);
  const search = sold ? undefined : ownSearch(request, model, settings);
  const images = sold ? undefined : ownImages(request, model, parts.catalog.current);
  const own_calls_max = ownCallsOf({ ...(search && { search }), ...(images && { images }) });
  const hosted = sold ?? (search && { units: ['web_search'] as const, calls_max: search.searches_max });
  const held = (tokens: number) => {
    if (own_calls_max > 0) return inputWithResults(tokens + function_tokens, own_calls_max);
    return sold ? inputWithResults(tokens, sold.calls_max) : tokens;
  };
  const usual = pricingOf(named, call.caller.account.currency, settings);
  if (preferences) checkMaxPrice(model, usual, preferences);
  const pricing = search ? withSearchPrice(usual, search) : usual;
  return {
    caller: call.caller,
    request_id: call.request_id,
    request,
    links,
    model,
    ...(settings.routing.by_caller && { route_reason: preferred?.why ?? 'default' }),
    pricing,
    hold_pricing: pricingForHold(pricing, hasHourPrice(model) && hasLongCaches(request.body)),
    ...(hosted && { hosted }),
    ...(search && { search }),
    ...(images && { images }),
    input_tokens_estimated: held(estimateInput(input_size)),
    input_tokens_most: held(mostInput(input_size)),
    input_tokens_counted: countInput(input_size),
    output,
    max_tokens: output.most,
  };
}

/** The most calls of tools that the service runs itself: the model is asked once more than that. */
export function ownCallsOf({ search, images }: Pick<PricedRequest, 'search' | 'images'>): number {
  return (search?.searches_max ?? 0) + (images?.images_max ?? 0);
}

/** Upper bound for a plausible answer, where nobody states the model's maximum: money is made of this number. */
const output_tokens_max = 100_000_000;

function boundsOf(
  { max_tokens: caller_max, thinking_budget, style }: ChatRequest,
  { limits, routes }: Model,
  styles: readonly Codec[],
): OutputBounds {
  const { max_output_tokens, default_output_tokens = 4_096 } = limits;
  const within = (tokens: number) => Math.min(tokens, max_output_tokens ?? output_tokens_max);
  const room = Math.min(caller_max ?? answer_tokens_min, answer_tokens_min) + thinking_budget;
  const usual = within(caller_max ?? Math.max(default_output_tokens, room));
  const most = within(caller_max ?? max_output_tokens ?? usual);
  return {
    bound: caller_max ?? most,
    most,
    usual,
    least: Math.min(usual, room),
    sent_min: Math.max(1, ...routes.map((route) => outputMin(route, style, styles))),
  };
}

/** The most that a style other than the caller's, in which this route may be asked, wants at least. */
function outputMin({ options }: Route, caller_style: CallerCodec, styles: readonly Codec[]): number {
  const quirks = quirksOf(options);
  let least = 1;
  for (const style of styles)
    if (style !== caller_style) least = Math.max(least, style.upstream.outputMin?.(quirks) ?? 1);
  return least;
}

/** The model of this name and kind, or 404; that of another kind's model names the right endpoint. */
export function findModel({ current }: CatalogHolder, id: string, kind: CallKind): Model {
  const model = modelNamed(current, id, 'model');
  if (model.kind !== kind) throw wrongKind(model);
  return model;
}
