import type { OptionProblem } from '../../catalog/check-settings.ts';
import { isObject, type Json, type JsonObject } from '../../catalog/model.ts';
import { plus, rational, times, zero, type Rational } from '../../money/money.ts';
import type { UpstreamCost } from '../provider.ts';

/**
 * Reads the upstream's charge in exact decimals: an amount, or credits at the price of the route's option
 * `credit_price`, in the currency of its option `cost_currency`.
 */

const places = 9;
const number_max = 1e12;

/**
 * An amount of an answer as a decimal text: numbers lose what binary fractions add after the ninth digit.
 * Undefined for what is no amount.
 */
export function decimalOf(value: Json | undefined): string | undefined {
  if (typeof value === 'string') return rational(value.trim()) && value.trim();
  if (typeof value !== 'number' || !(value >= 0) || value >= number_max) return undefined;
  return value.toFixed(places).replace(/\.?0+$/, '');
}

/** The sum of counts × prices as an exact decimal text; undefined if it has too many digits for one. */
export function sumOf(parts: readonly { count: string; price: string; per?: bigint }[]): string | undefined {
  let sum: Rational = zero;
  for (const { count, price, per = 1n } of parts) {
    const [factor, unit_price] = [rational(count), rational(price)];
    if (!factor || !unit_price) return undefined;
    sum = plus(sum, times(times(factor, unit_price), { numerator: 1n, denominator: per }));
  }
  return exactText(sum);
}

/** Denominators are powers of ten here: counts and prices are decimals, and so is what prices are per. */
function exactText({ numerator, denominator }: Rational): string | undefined {
  const digits_after = denominator.toString().length - 1;
  const digits = numerator.toString().padStart(digits_after + 1, '0');
  const whole = digits.slice(0, digits.length - digits_after);
  const fraction = digits.slice(digits.length - digits_after).replace(/0+$/, '');
  const text = fraction === '' ? whole : `${whole}.${fraction}`;
  return rational(text) && text;
}

/** Returns the cost of `credits` by the route's option `credit_price`; undefined if either is unknown. */
export function creditCost(credits: Json | undefined, options: JsonObject): UpstreamCost | undefined {
  const [count, price] = [decimalOf(credits), options['credit_price']];
  if (count === undefined || typeof price !== 'string') return undefined;
  return costOf(sumOf([{ count, price }]), options);
}

/** An amount with the currency that the route says the upstream charges in. */
export function costOf(amount: string | undefined, options: JsonObject): UpstreamCost | undefined {
  const currency = options['cost_currency'] ?? 'USD';
  return amount === undefined || typeof currency !== 'string' ? undefined : { amount, currency };
}

/** Checks the options above. */
export function costProblems(options: JsonObject): OptionProblem[] {
  const problems: OptionProblem[] = [];
  const { credit_price, cost_currency } = options;
  if (credit_price !== undefined && !isPrice(credit_price))
    problems.push({ field: 'credit_price', message: 'must be a decimal in quotes, such as "0.01"' });
  if (cost_currency !== undefined && !(typeof cost_currency === 'string' && /^[A-Z]{3}$/.test(cost_currency)))
    problems.push({ field: 'cost_currency', message: 'must be a currency code such as USD' });
  return problems;
}

/** Token counts of an upstream by kind: `text_input`, `image_output`, `cached_input` and the like. */
export type TokenCounts = { [kind in TokenKind]?: number };

export const token_kinds = [
  'text_input',
  'image_input',
  'audio_input',
  'video_input',
  'cached_input',
  'text_output',
  'image_output',
  'audio_output',
  'video_output',
] as const;

export type TokenKind = (typeof token_kinds)[number];

/**
 * Returns the cost of tokens by the route's option `token_prices` (each a decimal text for a million);
 * undefined if one of the counted kinds has no price there.
 */
export function tokenCost(counts: TokenCounts, options: JsonObject): UpstreamCost | undefined {
  const prices = options['token_prices'];
  if (!isObject(prices)) return undefined;
  const parts = [];
  for (const kind of token_kinds) {
    const count = counts[kind] ?? 0;
    const price = prices[kind];
    if (count === 0) continue;
    if (typeof price !== 'string') return undefined;
    parts.push({ count: String(count), price, per: 1_000_000n });
  }
  return parts.length === 0 ? undefined : costOf(sumOf(parts), options);
}

export function tokenPriceProblems(options: JsonObject): OptionProblem[] {
  const { token_prices } = options;
  if (token_prices === undefined) return [];
  const message = `must have prices for a million, decimals in quotes, of: ${token_kinds.join(', ')}`;
  const is_right =
    isObject(token_prices) &&
    Object.entries(token_prices).every(
      ([kind, price]) => token_kinds.some((token_kind) => token_kind === kind) && isPrice(price),
    );
  return is_right ? [] : [{ field: 'token_prices', message }];
}

function isPrice(value: Json): boolean {
  return typeof value === 'string' && rational(value) !== undefined;
}
