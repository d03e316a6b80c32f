import type { Catalog } from '../catalog/catalog.ts';
import type { Json, JsonObject, Model, Route, Unit } from '../catalog/model.ts';
import { highestPrice, priceOf, rateOf, type Pricing } from '../catalog/price.ts';
import { showValue } from '../lib/show-value.ts';
import { rational, times, type Rational } from '../money/money.ts';
import { routeName } from '../routing/health.ts';
import { speed_measures, type RouteSpeeds, type SpeedMeasure } from '../routing/speeds.ts';
import { allowanceOf } from '../styles/allowed.ts';
import {
  isObject,
  memberOf,
  mistake,
  readBoolean,
  readList,
  readNumber,
  readObject,
  readText,
} from '../styles/fields.ts';

/**
 * Preferences of callers for the providers of a chat model, in the field `provider` of OpenRouter, by its
 * documentation ("Provider Routing", openrouter.ai/docs/guides/routing/provider-selection; read on 2026-11-28).
 */

/** Routes of a model may cost the operator different amounts; callers pay the same on each. */
const sorts = ['price', ...speed_measures] as const;

type Preferences = {
  order: readonly string[];
  only: readonly string[] | undefined;
  ignore: readonly string[];
  sort: (typeof sorts)[number] | undefined;
  allows_fallbacks: boolean;
  collects_nothing: boolean;
  max_price: MaxPrice | undefined;
};

/** In the account's currency: for a million tokens, and for a call. */
type MaxPrice = { [name in keyof typeof priced_units]?: Rational };

const priced_units = { prompt: 'input_token', completion: 'output_token', request: 'request' } as const;

/** Fields that would promise what nobody knows of the routes: refused rather than ignored. */
const not_offered = ['zdr', 'enforce_distillable_text', 'quantizations'];

/** The routes that a caller wants, in its order, and why this order. */
export type PreferredRoutes = { routes: readonly Route[]; why: RouteReason };

/** The reason why the first of the routes stands first. */
export type RouteReason =
  | 'default'
  | `provider.sort=${(typeof sorts)[number]}`
  | `provider.${'order' | 'only' | 'ignore' | 'data_collection'}`;

export const default_reason: RouteReason = 'default';

/** A body whose `provider` is for us: the rest of it, and the preferences. */
export type WithPreferences = { body: JsonObject; preferences: Preferences | undefined };

/**
 * Takes `provider` out of a body. It stays in it where a route of the model passes it on: the words are those of the
 * upstream then. Throws ApiError 400 naming the field.
 */
export function takePreferences(
  body: JsonObject,
  model: Model,
  { providers, settings }: Pick<Catalog, 'providers' | 'settings'>,
): WithPreferences {
  const value = memberOf(body, 'provider');
  if (value === undefined || model.routes.some(({ options }) => allowanceOf(options).pass.has('provider')))
    return { body, preferences: undefined };
  if (!settings.routing.by_caller)
    throw mistake('provider', 'is not offered here: the operator chooses the route', 'unsupported_field');
  const { provider: _, ...rest } = body;
  const names = new Map([...providers.keys()].map((name) => [name.toLowerCase(), name]));
  return { body: rest, preferences: readPreferences(readObject(body, 'provider', 'provider') ?? {}, model, names) };
}

function readPreferences(provider: JsonObject, model: Model, names: ReadonlyMap<string, string>): Preferences {
  for (const field of not_offered) {
    const value = memberOf(provider, field) ?? false;
    if (value !== false && !(Array.isArray(value) && value.length === 0))
      throw mistake(`provider.${field}`, 'is not offered: nothing is known of that for any route', 'unsupported_field');
  }
  const list = (field: string) => readNames(provider, field, model, names);
  const sort = readSort(provider);
  const collection = readText(provider, 'data_collection', 'provider.data_collection') ?? 'allow';
  if (collection !== 'allow' && collection !== 'deny')
    throw mistake('provider.data_collection', `must be allow or deny, not ${showValue(collection)}`);
  return {
    order: list('order') ?? [],
    only: list('only'),
    ignore: list('ignore') ?? [],
    sort,
    allows_fallbacks: readBoolean(provider, 'allow_fallbacks', 'provider.allow_fallbacks') ?? true,
    collects_nothing: collection === 'deny',
    max_price: readMaxPrice(provider),
  };
}

function readNames(
  provider: JsonObject,
  field: string,
  model: Model,
  names: ReadonlyMap<string, string>,
): string[] | undefined {
  const at = `provider.${field}`;
  const list = readList(provider, field, at);
  return list?.map((value, index) => {
    const name = typeof value === 'string' ? names.get(value.toLowerCase()) : undefined;
    if (name !== undefined) return name;
    throw mistake(`${at}[${index}]`, `is no provider: ${showValue(value)}. ${providersOf(model)}`);
  });
}

function providersOf({ id, routes }: Model): string {
  return `${id} has ${[...new Set(routes.map(({ provider }) => provider))].join(', ') || 'none now'}`;
}

/** A name, or an object that has it in `by`. */
function readSort(provider: JsonObject): Preferences['sort'] {
  const { sort = null } = provider;
  const value: Json = isObject(sort) ? (sort['by'] ?? null) : sort;
  if (value === null) return undefined;
  const sort_name = sorts.find((each) => each === value);
  if (!sort_name) throw mistake('provider.sort', `must be one of ${sorts.join(', ')}, not ${showValue(value)}`);
  return sort_name;
}

function readMaxPrice(provider: JsonObject): MaxPrice | undefined {
  const value = readObject(provider, 'max_price', 'provider.max_price');
  if (value === undefined) return undefined;
  const amount = (name: keyof typeof priced_units): MaxPrice => {
    const at = `provider.max_price.${name}`;
    const text = typeof value[name] === 'string' ? value[name] : readNumber(value, name, at)?.toFixed(12);
    if (text === undefined) return {};
    const parsed = rational(text);
    if (!parsed || parsed.numerator < 0n) throw mistake(at, 'must be a number that is not negative');
    return { [name]: parsed };
  };
  return { ...amount('prompt'), ...amount('completion'), ...amount('request') };
}

/** The parts of the app that choosing among the routes of a model takes. */
export type ChoiceParts = {
  readonly catalog: { readonly current: Pick<Catalog, 'providers'> };
  readonly speeds: RouteSpeeds;
};

/**
 * Returns the routes that the caller wants, in the order in which they are tried. Throws ApiError 400 if none is left:
 * nothing is held and no route is asked. A model that has no route now is left as it is.
 */
export function preferredRoutes(
  { catalog, speeds }: ChoiceParts,
  model: Model,
  { order, only, ignore, sort, allows_fallbacks, collects_nothing }: Preferences,
): PreferredRoutes {
  const left = (routes: readonly Route[], field: string, why: string): readonly Route[] => {
    if (routes.length > 0 || model.routes.length === 0) return routes;
    throw mistake(field, `leaves no route: ${why}`, 'no_route');
  };
  const { providers } = catalog.current;
  const has = providersOf(model);
  const allowed = left(
    model.routes.filter(({ provider }) => !only || only.includes(provider)),
    'provider.only',
    has,
  );
  const unignored = left(
    allowed.filter(({ provider }) => !ignore.includes(provider)),
    'provider.ignore',
    has,
  );
  const discreet = left(
    collects_nothing
      ? unignored.filter(({ provider }) => providers.get(provider)?.data_collection === 'deny')
      : unignored,
    'provider.data_collection',
    `the operator says of no provider of ${model.id} that it collects nothing`,
  );
  const nameOf = ({ id }: Route) => routeName(model.id, id);
  const is_speed = (by: Preferences['sort']): by is SpeedMeasure => speed_measures.some((each) => each === by);
  const sorted = is_speed(sort) ? speeds.fastestFirst(discreet, nameOf, sort) : [...discreet];
  const named = order.flatMap((name) => sorted.filter(({ provider }) => provider === name));
  const ordered = [...new Set([...named, ...sorted])];
  const first = model.routes[0];
  const limit = first && limitOf(first, { allowed, unignored, discreet });
  const why = named.length > 0 ? 'provider.order' : sort ? (`provider.sort=${sort}` as const) : (limit ?? 'default');
  if (allows_fallbacks) return { routes: ordered, why };
  if (order.length === 0) return { routes: ordered.slice(0, 1), why };
  return { routes: left([...new Set(named)], 'provider.order', has), why };
}

/** Returns the field that took away the route which is the operator's first. */
function limitOf(
  first: Route,
  { allowed, unignored, discreet }: { [step in 'allowed' | 'unignored' | 'discreet']: readonly Route[] },
): RouteReason | undefined {
  if (!allowed.includes(first)) return 'provider.only';
  if (!unignored.includes(first)) return 'provider.ignore';
  return discreet.includes(first) ? undefined : 'provider.data_collection';
}

/** Throws ApiError 400 if the caller pays more for the model than it wants. */
export function checkMaxPrice({ id }: Model, pricing: Pricing, { max_price }: Pick<Preferences, 'max_price'>): void {
  for (const name of ['prompt', 'completion', 'request'] as const) {
    const [unit, most] = [priced_units[name], max_price?.[name]];
    if (!most) continue;
    const price = times(priceIn(pricing, unit), { numerator: unit === 'request' ? 1n : 1_000_000n, denominator: 1n });
    if (price.numerator * most.denominator <= most.numerator * price.denominator) continue;
    const shown = Number(price.numerator) / Number(price.denominator);
    const per = unit === 'request' ? 'a call' : 'a million tokens';
    throw mistake(`provider.max_price.${name}`, `is below the price of ${id}: ${shown} ${pricing.currency} for ${per}`);
  }
}

/** At its highest, whatever the length of the input. */
function priceIn({ rows, rate }: Pricing, unit: Unit): Rational {
  return times(highestPrice(rows.filter((row) => row.unit === unit).map(priceOf)), rateOf(rate));
}
