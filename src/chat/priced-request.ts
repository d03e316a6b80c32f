import type { Caller } from '../accounts/authenticate.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { CallKind, JsonObject, Model, Route } from '../catalog/model.ts';
import type { Pricing } from '../catalog/price.ts';
import { checkModelAllowed } from '../catalog/key-models.ts';
import { wrongKind } from '../catalog/model-errors.ts';
import { modelNamed } from '../catalog/names.ts';
import { ApiError } from '../errors.ts';
import type { AddressRules } from '../net/address.ts';
import type { CallerCodec, CallerHalf, ChatRequest, Codec } from '../styles/codec.ts';
import { inputSize, type InputSize } from '../styles/input-size.ts';
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
import { labelsOf, type Labels } from './labels.ts';
import { ownImages, type OwnImages } from './own-images.ts';
import { function_tokens, ownSearch, withSearchPrice, type OwnSearch } from './own-search.ts';
import { hostedTools } from './tools.ts';
import { candidatesChosen, candidatesIn, type Candidate, type ChosenModel } from './candidates.ts';
import { checkMaxPrice, default_reason, preferredRoutes, takePreferences, type ChoiceParts } from './preferences.ts';

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
  labels: Labels;
  /** With the routes that may be tried, in their order. */
  model: Model;
  /** The reason for this model: the field that named it unless it is the first, and its alias. */
  model_reason?: string;
  /** That and the reason for this order; absent where a caller is not told of routes. */
  route_reason?: string;
  pricing: Pricing;
  /** The part of these prices that the request can cause, for the hold. */
  hold_pricing: Pricing;
  /** The input tokens for the hold: about as many as it will be, and the most that it can be. */
  input_tokens_estimated: number;
  input_tokens_most: number;
  /** The input tokens for the charge, where the upstream reports none. */
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

/** A call with the same call as other models have it, which are asked if this one fails. */
export type WithFallbacks<Priced extends PricedRequest> = Priced & { readonly fallbacks?: readonly Priced[] };

/** A call of any kind; only chats have fallbacks. */
export type PricedCall = WithFallbacks<PricedRequest>;

/** Returns the call as each of its models has it, in the order in which they are asked. */
export function candidatesOf<Priced extends PricedRequest>(priced: WithFallbacks<Priced>): readonly Priced[] {
  const { fallbacks }: { readonly fallbacks?: readonly Priced[] } = priced;
  return fallbacks ? [priced, ...fallbacks] : [priced];
}

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
  fallbacks?: readonly PricedChatRequest[];
};

/** The parts of the app that pricing a chat request takes. */
export type PricingParts = ChoiceParts & {
  readonly catalog: CatalogHolder;
  readonly styles: readonly Codec[];
  addressRules(): AddressRules;
};

/** A chat call with its whole body, not checked yet. `chosen`: its models were chosen before. */
export type ReceivedChat = {
  caller: Caller;
  request_id: string;
  body: Record<string, unknown> | undefined;
  echo?: JsonObject;
  chosen?: readonly [ChosenModel, ...ChosenModel[]];
};

/**
 * Reads a body of a chat path. A model that does not take the request is passed over where another one does. Throws
 * ApiError: 400 naming the field, 404 for a model.
 */
export function priceChatRequest(parts: PricingParts, style: CallerCodec, call: ReceivedChat): PricedChatRequest {
  const read = readChatRequest(style, call.body ?? {});
  const { current } = parts.catalog;
  const { body, candidates } = call.chosen
    ? candidatesChosen(current, read.body, call.chosen)
    : candidatesIn(current, { caller: call.caller, request: read });
  const links = findLinks(body);
  judgeLinks(links, parts.addressRules());
  const request = { ...read, body, ...(call.echo && { echo: call.echo }) };
  const parsed = { ...call, request, links, labels: labelsOf(body), sizeOf: rememberSize() };
  const [first] = candidates;
  if (candidates.length === 1) return priceFor(parts, parsed, first);
  const refusals: ApiError[] = [];
  const priced = candidates.flatMap((candidate) => {
    try {
      return [priceFor(parts, parsed, candidate)];
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      refusals.push(error);
      return [];
    }
  });
  const with_routes = priced.filter(({ model }) => model.routes.length > 0);
  const [asked_first, ...fallbacks] = with_routes.length > 0 ? with_routes : priced.slice(0, 1);
  if (!asked_first) throw refusals[0];
  return fallbacks.length > 0 ? { ...asked_first, fallbacks } : asked_first;
}

/** Frees the bodies of a call, when nobody reads them any more. */
export function forgetBodies(priced: PricedChatRequest): void {
  for (const { request } of candidatesOf(priced)) request.body = {};
}

/** Sizes differ only where some models have the preferences for providers in their body. */
function rememberSize(): (request: ChatRequest) => InputSize {
  const sizes = new Map<boolean, InputSize>();
  return (request) => {
    const has_provider = 'provider' in request.body;
    const size = sizes.get(has_provider) ?? inputSize(request);
    sizes.set(has_provider, size);
    return size;
  };
}

/** The part of a chat call that is the same for all of its models, parsed and checked. */
type ParsedChat = Omit<ReceivedChat, 'body'> & {
  request: ChatRequest;
  links: readonly BodyLink[];
  labels: Labels;
  sizeOf: (request: ChatRequest) => InputSize;
};

/** Prices the call as this model has it. */
function priceFor(parts: PricingParts, call: ParsedChat, { model: named, why }: Candidate): PricedChatRequest {
  const { body, preferences } = takePreferences(call.request.body, named, parts.catalog.current);
  const request = { ...call.request, body };
  const preferred = preferences && preferredRoutes(parts, named, preferences);
  const model = preferred ? { ...named, routes: preferred.routes } : named;
  const { settings } = parts.catalog.current;
  const output = boundsOf(request, model, parts.styles);
  const input_size = call.sizeOf(request);
  const sold = hostedTools(request, model);
  const search = sold ? undefined : ownSearch(request, model, settings);
  const images = sold ? undefined : ownImages(request, model, parts.catalog.current, call.caller);
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
    labels: call.labels,
    links: call.links,
    model,
    ...(why !== undefined && { model_reason: why }),
    ...(settings.routing.by_caller && { route_reason: reasonOf(why, preferred?.why) }),
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

/** The reason for the model, and that for the order of its routes. */
function reasonOf(model_reason: string | undefined, route_reason = default_reason): string {
  if (model_reason === undefined) return route_reason;
  return route_reason === default_reason ? model_reason : `${model_reason}, ${route_reason}`;
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
  const capped = (tokens: number) => Math.min(tokens, max_output_tokens ?? output_tokens_max);
  const room = Math.min(caller_max ?? answer_tokens_min, answer_tokens_min) + thinking_budget;
  const usual = capped(caller_max ?? Math.max(default_output_tokens, room));
  const most = capped(caller_max ?? max_output_tokens ?? usual);
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

/**
 * The model of this name and kind. Throws ApiError 404, which names the right endpoint for another kind's model, and 403
 * where the key may not use it.
 */
export function findCallModel({ current }: CatalogHolder, { key }: Caller, id: string, kind: CallKind): Model {
  const model = modelNamed(current, id, 'model');
  if (model.kind !== kind) throw wrongKind(model);
  checkModelAllowed(current, key, model);
  return model;
}
