import type { CostRow, Model, Settings, WebSearchSettings } from '../catalog/model.ts';
import type { Pricing } from '../catalog/price.ts';
import { resolveSecret } from '../config.ts';
import { allowanceOf } from '../styles/allowed.ts';
import type { ChatRequest } from '../styles/codec.ts';
import type { SearchOptions } from '../styles/search-function.ts';

/** A search that the service runs itself, for a call that asks for one and a model that does not come with one. */
export type OwnSearch = {
  readonly settings: WebSearchSettings;
  readonly options: SearchOptions;
  /** The most searches of the call: the caller's number, at most the operator's. */
  readonly searches_max: number;
};

/** Tokens of the functions that stand for the tools, and of refused calls, in every round. */
export const function_tokens = 1_000;

/**
 * Returns the search of a request; undefined where it asks for none, or the operator offers none with this model. Throws
 * ApiError 400 naming the field.
 */
export function ownSearch(
  { style, body, n }: ChatRequest,
  { id, routes }: Model,
  { tools }: Pick<Settings, 'tools'>,
): OwnSearch | undefined {
  const { web_search: settings } = tools;
  const { search } = style.caller;
  if (!settings || !search || n > 1 || settings.models?.includes(id) === false) return undefined;
  if (routes.some(({ options }) => passesSearch(allowanceOf(options)))) return undefined;
  const options = search.read(body);
  if (!options) return undefined;
  if (settings.api_key !== undefined && resolveSecret(settings.api_key) === undefined) return undefined;
  return {
    settings,
    options,
    searches_max: Math.min(options.searches_max ?? settings.searches_max, settings.searches_max),
  };
}

/** The operator lets the caller's own words go to the upstream. */
function passesSearch({ pass }: ReturnType<typeof allowanceOf>): boolean {
  return pass.has('tools') || pass.has('web_search_options');
}

/** Returns the prices of a call with those of the search. */
export function withSearchPrice(pricing: Pricing, { settings: { price: amount, per } }: OwnSearch): Pricing {
  const rows = pricing.rows.filter(({ unit }) => unit !== 'web_search');
  return { ...pricing, rows: [...rows, { unit: 'web_search', amount, per }] };
}

/** Returns the costs of a route with what the search costs in place of the upstream's own. */
export function withSearchCost(
  rows: readonly CostRow[],
  { search }: { readonly search?: OwnSearch },
  { base_currency: currency }: Settings,
): readonly CostRow[] {
  if (!search) return rows;
  const others = rows.filter(({ unit }) => unit !== 'web_search');
  const { cost: amount, per } = search.settings;
  // Without costs of the route, those of the call are unknown all the same.
  if (amount === undefined || others.length === 0) return others;
  return [...others, { unit: 'web_search', amount, per, currency }];
}
