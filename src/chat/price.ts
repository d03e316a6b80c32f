import type { Model, Settings, Unit } from '../catalog/model.ts';
import { freezePricing, heldFor, measuredCost, pricingOfInput, type Pricing, type Units } from '../catalog/price.ts';
import { money_max, type Money } from '../money/money.ts';
import type { InputSize } from '../styles/ask.ts';
import type { Usage } from '../styles/conversation.ts';
import { tokensOf } from '../styles/text-size.ts';

/** Tokens of one picture or document of unknown size, for holds and where the upstream counts nothing. */
const image_tokens = 1_600;
const document_tokens = 10_000;

/** For holds: a text of a hundred pages is in a file of one megabyte; pages that are pictures take more bytes for less. */
const document_bytes_per_token = 10;
const document_tokens_max = 200_000;

/** As many as an upstream may tell: what a body of nothing but pictures comes to is a number still, not a joke. */
const tokens_max = 1_000_000_000;

/** The input's tokens for the hold: rather too many, since what is not needed goes back. */
export function estimateInput(size: InputSize): number {
  const large = Math.min(size.document_bytes / document_bytes_per_token, size.documents * document_tokens_max);
  const documents = Math.max(size.documents * document_tokens, large);
  const images = size.images * image_tokens;
  return Math.min(tokens_max, Math.ceil(size.ascii_bytes / 2.5 + size.other_bytes + images + documents));
}

/** The input's tokens where the upstream told nothing: as they usually come out. */
export function countInput(size: InputSize): number {
  return Math.min(tokens_max, tokensOf(size) + size.images * image_tokens + size.documents * document_tokens);
}

/**
 * Tokens as the units of a price book. Cached and cache-writing tokens without a price of their own
 * cost as input.
 */
export function unitsOf(pricing: { rows: readonly { unit: Unit }[] }, usage: Omit<Usage, 'reasoning_tokens'>): Units {
  const { rows } = pricing;
  let input = usage.input_tokens;
  const units: Units = { request: '1', output_token: String(usage.output_tokens) };
  if (isPriced(rows, 'cached_input_token')) units.cached_input_token = String(usage.cached_input_tokens);
  else input += usage.cached_input_tokens;
  if (isPriced(rows, 'cache_write_token')) units.cache_write_token = String(usage.cache_write_tokens);
  else input += usage.cache_write_tokens;
  units.input_token = String(input);
  return units;
}

function isPriced(rows: readonly { unit: Unit }[], unit: Unit): boolean {
  return rows.some((row) => row.unit === unit);
}

const input_units = ['input_token', 'cached_input_token', 'cache_write_token'] as const;

/** What this usage costs: one exact sum, rounded half up. */
export function costOf(pricing: Pricing, units: Units): Money {
  const input_tokens = input_units.reduce((sum, unit) => sum + Number(units[unit] ?? 0), 0);
  return measuredCost(pricingOfInput(pricing, input_tokens), units, {});
}

/** What is held for so many tokens: rounded up; for more than any balance, as much as the largest has. */
export function holdFor(pricing: Pricing, input_tokens: number, output_tokens: number): Money {
  const units: Units = { request: '1', input_token: String(input_tokens), output_token: String(output_tokens) };
  const amount = heldFor(pricingOfInput(pricing, input_tokens), units);
  return amount < money_max ? amount : money_max;
}

type Frozen = { settings: Settings; by_currency: Map<string, Pricing> };

const frozen = new WeakMap<Model, Frozen>();

/** The prices of a call: nothing in its body changes them, so those of one model and currency are made once. */
export function pricingOf(model: Model, currency: string, settings: Settings): Pricing {
  const known = frozen.get(model);
  const { by_currency } = known?.settings === settings ? known : { by_currency: new Map<string, Pricing>() };
  const pricing = by_currency.get(currency) ?? freezePricing(model, {}, currency, settings);
  by_currency.set(currency, pricing);
  frozen.set(model, { settings, by_currency });
  return pricing;
}
