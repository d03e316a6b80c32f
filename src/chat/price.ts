import {
  input_token_units,
  use_units,
  type Model,
  type Settings,
  type ToolUnit,
  type Unit,
  type UseUnit,
} from '../catalog/model.ts';
import {
  highestPrice,
  freezePricing,
  measuredCost,
  priceOf,
  pricingOfInput,
  rateOf,
  type Pricing,
  type Units,
} from '../catalog/price.ts';
import { assert } from '../lib/assert.ts';
import { rememberByObject } from '../lib/remember.ts';
import { divideUp, million, money_max, times, type Money } from '../money/money.ts';
import type { InputSize } from '../styles/input-size.ts';
import type { ToolCalls, Usage } from '../styles/conversation.ts';
import { tokensOf } from '../styles/usage.ts';

/** Tokens of one image or document of unknown size, for holds and where the upstream counts nothing. */
const image_tokens = 1_600;
const document_tokens = 10_000;

/** For holds: a text of a hundred pages is in a file of one megabyte; scanned pages take more bytes for less. */
const document_bytes_per_token = 10;
const document_tokens_max = 200_000;

/** Upper bound for a plausible token count; an upstream may report as many. */
const tokens_max = 1_000_000_000;

/** The input's tokens for the hold of an account that has plenty: rather too many, since what is not needed goes back. */
export function estimateInput(size: InputSize): number {
  return Math.min(tokens_max, Math.ceil(size.ascii_bytes / 2.5 + size.other_bytes + mediaTokens(size)));
}

/** The most that the input may come to: some texts make a token of every byte, and no text makes more. */
export function mostInput(size: InputSize): number {
  return Math.min(tokens_max, Math.ceil(size.ascii_bytes + size.other_bytes + mediaTokens(size)));
}

function mediaTokens({ images, documents, document_bytes }: InputSize): number {
  const large = Math.min(document_bytes / document_bytes_per_token, documents * document_tokens_max);
  return images * image_tokens + Math.max(documents * document_tokens, large);
}

/** The input's tokens where the upstream reported none: as they usually come out. */
export function countInput(size: InputSize): number {
  return Math.min(tokens_max, tokensOf(size) + size.images * image_tokens + size.documents * document_tokens);
}

/**
 * Tokens as the units of a price book. Cached and cache-writing tokens without a price of their own
 * cost as input; those written for an hour as those written for five minutes, if these have one.
 */
export function unitsOf(pricing: { rows: readonly { unit: Unit }[] }, usage: Omit<Usage, 'reasoning_tokens'>): Units {
  const { rows } = pricing;
  let input = usage.input_tokens;
  const units: Units = { request: '1', output_token: String(usage.output_tokens) };
  if (isPriced(rows, 'cached_input_token')) units.cached_input_token = String(usage.cached_input_tokens);
  else input += usage.cached_input_tokens;
  let written = usage.cache_write_tokens;
  if (isPriced(rows, 'cache_write_1h_token')) {
    units.cache_write_1h_token = String(usage.cache_write_1h_tokens);
    written -= usage.cache_write_1h_tokens;
  }
  if (isPriced(rows, 'cache_write_token')) units.cache_write_token = String(written);
  else input += written;
  units.input_token = String(input);
  for (const unit of use_units) if (isPriced(rows, unit)) units[unit] = String(usage.tool_calls?.[unit] ?? 0);
  return units;
}

function isPriced(rows: readonly { unit: Unit }[], unit: Unit): boolean {
  return rows.some((row) => row.unit === unit);
}

/** Returns the cost of this usage: one exact sum, rounded half up. */
export function costOf(pricing: Pricing, units: Units): Money {
  const input_tokens = input_token_units.reduce((sum, unit) => sum + Number(units[unit] ?? 0), 0);
  return measuredCost(pricingOfInput(pricing, input_tokens), units, {});
}

/**
 * Returns the hold for so many tokens: each at its highest possible price, since nobody knows beforehand how
 * much of the input is read from the upstream's cache or written to it. Rounded up; capped at the largest
 * possible balance.
 */
export function holdFor(pricing: Pricing, input_tokens: number, output_tokens: number): Money {
  const { request, input, output, denominator } = ratesFor(pricing, input_tokens);
  const sum = request + input * BigInt(input_tokens) + output * BigInt(output_tokens);
  const amount = divideUp(sum, denominator);
  return amount < money_max ? amount : money_max;
}

/** Uses that a call pays for beside its tokens, such as tools that a provider runs: so many, whichever they are. */
export type HostedUses = {
  readonly units: readonly UseUnit[];
  readonly calls_max: number;
  /** Charged where the upstream reports no uses; absent: nothing. */
  readonly unreported?: ToolCalls;
};

/** Of tools alone. */
export type HostedTools = Omit<HostedUses, 'units'> & { readonly units: readonly ToolUnit[] };

/** The results of a use, which are input of the model: so many tokens are held for them. */
const tokens_per_use = 8_000;

/** The input of a call that uses tools so often: the model reads all of it again after each use. */
export function inputWithResults(input_tokens: number, calls_max: number): number {
  const read = input_tokens * (calls_max + 1) + (tokens_per_use * calls_max * (calls_max + 1)) / 2;
  return Math.min(tokens_max, read);
}

/** The most that the tools may cost beside the tokens. */
export function toolsHold({ rows, rate }: Pricing, { units, calls_max }: HostedUses): Money {
  const highest = highestPrice(rows.filter(({ unit }) => units.some((each) => each === unit)).map(priceOf));
  const { numerator, denominator } = times(highest, rateOf(rate));
  return divideUp(numerator * million * BigInt(calls_max), denominator);
}

/**
 * Returns those of the counted uses that the call pays for: what an upstream does beyond its bound is not the caller's.
 */
export function paidToolCalls(counted: ToolCalls | undefined, hosted: HostedUses | undefined): ToolCalls | undefined {
  if (!counted || !hosted) return undefined;
  const paid = hosted.units.map((unit) => [unit, Math.min(counted[unit] ?? 0, hosted.calls_max)] as const);
  return Object.fromEntries(paid.filter(([, calls]) => calls > 0));
}

/**
 * Returns the output tokens that this money buys in addition to so many input tokens; undefined if they are free. Each is
 * input so many times again (`rereads`).
 */
export function outputTokensFor(
  pricing: Pricing,
  input_tokens: number,
  money: Money,
  rereads: number,
): bigint | undefined {
  const { request, input, output, denominator } = ratesFor(pricing, input_tokens);
  const left = money * denominator - request - input * BigInt(input_tokens);
  const token = output + input * BigInt(rereads);
  return token === 0n ? undefined : left / token;
}

/**
 * The prices that a call may come to: none for what is written to a cache for an hour, unless the request asks for that.
 */
export function pricingForHold(pricing: Pricing, writes_for_an_hour: boolean): Pricing {
  return writes_for_an_hour ? pricing : withoutHourPrices(pricing);
}

const withoutHourPrices = rememberByObject((pricing: Pricing): Pricing => {
  const rows = pricing.rows.filter(({ unit }) => unit !== 'cache_write_1h_token');
  return rows.length === pricing.rows.length ? pricing : { ...pricing, rows };
});

/** Returns true if the model has a price for input that an upstream keeps in its cache for an hour. */
export function hasHourPrice({ price }: Pick<Model, 'price'>): boolean {
  return price.some(({ unit }) => unit === 'cache_write_1h_token');
}

/** Prices in millionths as whole numbers over one denominator: a call looks at them several times. */
type Rates = { above: number; request: bigint; input: bigint; output: bigint; denominator: bigint };

/** For inputs of more than `above` tokens each, the smallest first. */
const ratesOf = rememberByObject((pricing: Pricing): readonly Rates[] => {
  const steps = new Set([-1, ...pricing.rows.map((row) => row.above_input_tokens ?? -1)]);
  return [...steps].toSorted((a, b) => a - b).map((above) => ratesAbove(pricing, above));
});

/** The highest prices up to this step: an input that was estimated to pass it may turn out not to. */
function ratesAbove({ rows, rate }: Pricing, above: number): Rates {
  const passed = rows.filter((row) => (row.above_input_tokens ?? -1) <= above);
  const priceIn = (units: readonly Unit[]) =>
    times(highestPrice(passed.filter(({ unit }) => units.includes(unit)).map(priceOf)), rateOf(rate));
  const [request, input, output] = [priceIn(['request']), priceIn(input_token_units), priceIn(['output_token'])];
  const denominator = request.denominator * input.denominator * output.denominator;
  const whole = ({ numerator, denominator: own }: typeof input) => (numerator * million * denominator) / own;
  return { above, request: whole(request), input: whole(input), output: whole(output), denominator };
}

function ratesFor(pricing: Pricing, input_tokens: number): Rates {
  const rates = ratesOf(pricing).findLast(({ above }) => above < input_tokens);
  assert(rates, 'there is a price for every input');
  return rates;
}

type Frozen = { settings: Settings; by_currency: Map<string, Pricing> };

const frozen = new WeakMap<Model, Frozen>();

/** The prices of a call: nothing in its body changes them, so those of one model and currency are made once. */
export function pricingOf(model: Model, currency: string, settings: Settings): Pricing {
  const cached = frozen.get(model);
  const { by_currency } = cached?.settings === settings ? cached : { by_currency: new Map<string, Pricing>() };
  const pricing = by_currency.get(currency) ?? freezePricing(model, {}, currency, settings);
  by_currency.set(currency, pricing);
  frozen.set(model, { settings, by_currency });
  return pricing;
}
