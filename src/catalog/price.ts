import { ApiError } from '../errors.ts';
import { assert } from '../lib/assert.ts';
import { money_max, plus, rational, times, toMoney, zero, type Money, type Rational } from '../money/money.ts';
import type { Condition, Factor, Json, JsonObject, Model, PriceRow, Settings, Unit } from './model.ts';

/** Exact quantities per unit, as decimal texts. */
export type Units = { [unit in Unit]?: string };

/**
 * The prices that hold for one task, frozen at its creation and kept as JSON: one row per unit (for calls
 * one more per step of `above_input_tokens`), in the base currency, and the rate of the account's currency.
 */
export type Pricing = {
  currency: string;
  rate: string;
  rows: { unit: Unit; amount: string; per: number; above_input_tokens?: number }[];
  /** Units measured on the caller's files when the task was created. */
  input_units?: Units;
};

/** Measurements of a produced file. */
export type MeasuredOutput = {
  type: 'image' | 'video' | 'audio' | 'text';
  width?: number;
  height?: number;
  duration?: number;
};

/** Freezes the first price row of each unit that fits `input` (defaults filled in). */
export function freezePricing(
  model: Pick<Model, 'price'>,
  input: JsonObject,
  currency: string,
  settings: Pick<Settings, 'currencies'>,
): Pricing {
  const rate = settings.currencies.get(currency);
  // A start and a reload refuse a catalogue without it; an account may be made between two of them.
  if (rate === undefined) throw new ApiError('unavailable', `This service has no prices in ${currency} at the moment.`);
  const rows = new Map<string, PriceRow>();
  for (const row of model.price) {
    const place = `${row.unit} ${row.above_input_tokens ?? 0}`;
    if (!rows.has(place) && fits(row.when, input)) rows.set(place, row);
  }
  return { currency, rate, rows: [...rows.values()].map(frozen) };
}

function frozen({ unit, amount, per, above_input_tokens }: PriceRow): Pricing['rows'][number] {
  return { unit, amount, per, ...(above_input_tokens !== undefined && { above_input_tokens }) };
}

/** The prices for a call with so many tokens of input: of each unit the row of the highest step that it passes. */
export function pricingOfInput(pricing: Pricing, input_tokens: number): Pricing {
  if (pricing.rows.every((row) => row.above_input_tokens === undefined)) return pricing;
  const rows = rowsOfInput(pricing.rows, input_tokens);
  return { ...pricing, rows: rows.map(({ unit, amount, per }) => ({ unit, amount, per })) };
}

/** Returns, of each unit, the row of the highest step that so many tokens of input pass. */
export function rowsOfInput<Row extends { unit: Unit; above_input_tokens?: number }>(
  all: readonly Row[],
  input_tokens: number,
): Row[] {
  const rows = new Map<Unit, Row>();
  for (const row of all) {
    const step = row.above_input_tokens ?? -1;
    if (step < input_tokens && step >= (rows.get(row.unit)?.above_input_tokens ?? -1)) rows.set(row.unit, row);
  }
  return [...rows.values()];
}

/** Tells whether a price row applies to this input. */
export function fits(when: Condition | undefined, input: JsonObject): boolean {
  return Object.entries(when ?? {}).every(
    ([field, values]) => Object.hasOwn(input, field) && [values].flat().some((value) => value === input[field]),
  );
}

/** Field → how long the files in it are together, seconds as a decimal text. */
export type Durations = ReadonlyMap<string, string>;

/** The units to hold for by the model's estimate. Throws ApiError 422 naming the field that has no countable value. */
export function estimateUnits(
  model: Pick<Model, 'estimate'>,
  input: JsonObject,
  durations: Durations = new Map(),
): Units {
  const units: Units = {};
  for (const [unit, factors] of entriesOf(model.estimate)) {
    const texts = (factors ?? []).map((factor) => factorText(unit, factor, input, durations));
    units[unit] = product(factors ?? [], texts);
  }
  return units;
}

/** Returns those of the held units that are no estimate, because they were measured of the caller's files. */
export function measuredUnits(model: Pick<Model, 'estimate'>, held_units: Units): Units {
  const measured = entriesOf(model.estimate).filter(([, factors]) => factors?.some((each) => 'duration_of' in each));
  return Object.fromEntries(measured.map(([unit]) => [unit, held_units[unit]]));
}

function factorText(unit: Unit, factor: Factor, input: JsonObject, durations: Durations): string {
  if ('constant' in factor) return factor.constant;
  if ('field' in factor) return fieldText(unit, factor.field, input);
  if ('bytes_of' in factor)
    return String(tokens_around + added(factor.bytes_of.map((field) => textBytes(input[field]))));
  const duration = durations.get(factor.duration_of);
  if (duration === undefined) throw uncountable(factor.duration_of, 'is required, since the price depends on it.');
  return duration;
}

/** A token is at least a byte of text; so many more are what an upstream may put around the texts. */
const tokens_around = 64;

function textBytes(value: Json | undefined): number {
  return typeof value === 'string' ? Buffer.byteLength(value) : 0;
}

function added(counts: readonly number[]): number {
  return counts.reduce((so_far, count) => so_far + count, 0);
}

function product(factors: readonly Factor[], texts: readonly string[]): string {
  const value = texts.reduce((so_far, text) => times(so_far, decimal(text)), one);
  const text = decimalText(value);
  if (text !== undefined) return text;
  const field = factors.find((factor) => 'field' in factor)?.field ?? '';
  throw uncountable(field, 'is too large, or has too many digits, to be priced.');
}

const one: Rational = { numerator: 1n, denominator: 1n };

/** The value of a field as a decimal text, or how many characters it has where those are counted. */
function fieldText(unit: Unit, field: string, input: JsonObject): string {
  const value = Object.hasOwn(input, field) ? input[field] : undefined;
  if (value === undefined) throw uncountable(field, 'is required, since the price depends on it.');
  if (unit === 'character' && typeof value === 'string') return String(characters(value));
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || rational(text) === undefined) {
    throw uncountable(
      field,
      'must be a plain number that is not negative and not too large, since the price depends on it.',
    );
  }
  return text;
}

function uncountable(field: string, reason: string): ApiError {
  const name = `input.${field}`;
  return new ApiError('invalid_input', `${name} ${reason}`, { param: name });
}

/** Code points; an array of them would take hundreds of megabytes for the largest request. */
function characters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/**
 * Returns the hold for `units`: one exact sum of units × price × rate, rounded up. Throws ApiError 422 if it
 * is too much.
 */
export function holdAmount(pricing: Pricing, units: Units): Money {
  const amount = heldFor(pricing, units);
  if (amount <= money_max) return amount;
  throw new ApiError('invalid_input', 'The estimated cost of this input is larger than any balance.', {
    param: 'input',
  });
}

/** The same sum, however large. */
function heldFor(pricing: Pricing, units: Units): Money {
  const sum = total(pricing, (unit) => quantity(units, unit) ?? zero);
  return toMoney(sum, 'up');
}

/**
 * Returns the charge of a finished task: one exact sum, rounded half up, never above the hold. A unit that was
 * not measured is charged as held, and so is a measurement slightly above the hold.
 */
export function chargeAmount(pricing: Pricing, units: Units, held_units: Units): Money {
  const held = holdAmount(pricing, held_units);
  const cost = measuredCost(pricing, units, held_units);
  return cost < held ? cost : held;
}

/** The same sum before it is cut to what was held: the difference is the operator's loss. */
export function measuredCost(pricing: Pricing, units: Units, held_units: Units): Money {
  const counted = unitsByRows(units, pricing.rows);
  const cost = toMoney(
    total(pricing, (unit) => chargedQuantity(unit, counted, held_units)),
    'half_up',
  );
  return cost < money_max ? cost : money_max;
}

/** Returns the units as these rows count them: cached input without a row of its own costs as input. */
export function unitsByRows(units: Units, rows: readonly { unit: Unit }[]): Units {
  const { cached_input_token: cached, input_token: input } = units;
  if (cached === undefined || input === undefined) return units;
  if (rows.some(({ unit }) => unit === 'cached_input_token')) return units;
  const { cached_input_token: _, ...others } = units;
  return { ...others, input_token: decimalText(plus(decimal(input), decimal(cached))) ?? input };
}

function total(pricing: Pricing, quantityOf: (unit: Unit) => Rational): Rational {
  const sum = pricing.rows.reduce((so_far, row) => plus(so_far, times(quantityOf(row.unit), priceOf(row))), zero);
  return times(sum, decimal(pricing.rate));
}

const prices = new WeakMap<object, Rational>();

/** Returns the price of one unit, in the base currency. */
export function priceOf(row: Pricing['rows'][number]): Rational {
  const cached = prices.get(row);
  if (cached) return cached;
  const price = times(decimal(row.amount), { numerator: 1n, denominator: BigInt(row.per) });
  prices.set(row, price);
  return price;
}

/** Returns the rate: units of the account's currency per unit of the base currency. */
export function rateOf(rate: string): Rational {
  return decimal(rate);
}

/** Returns the highest of these prices; zero if there is none. */
export function highestPrice(prices_of_units: readonly Rational[]): Rational {
  return prices_of_units.reduce((highest, price) => (isAbove(price, highest) ? price : highest), zero);
}

/** Tolerance above the held units within which a measurement is still charged as held. */
const slack: { [unit in Unit]?: Rational } = {
  second: { numerator: 1n, denominator: 4n },
  minute: { numerator: 1n, denominator: 240n },
  megapixel: zero,
};
const slack_share: Rational = { numerator: 2n, denominator: 100n };

/** Returns the quantity to charge: as measured, or as held if the measurement is slightly above that. */
export function chargedQuantity(unit: Unit, units: Units, held_units: Units): Rational {
  const held = quantity(held_units, unit) ?? zero;
  const measured = quantity(units, unit) ?? held;
  const allowed = slack[unit];
  if (!allowed || !isAbove(measured, held)) return measured;
  const within_slack =
    !isAbove(measured, plus(held, allowed)) || !isAbove(measured, plus(held, times(held, slack_share)));
  return within_slack ? held : measured;
}

function isAbove(a: Rational, b: Rational): boolean {
  return a.numerator * b.denominator > b.numerator * a.denominator;
}

const sixty: Rational = { numerator: 60n, denominator: 1n };
const sixtieth: Rational = { numerator: 1n, denominator: 60n };

/**
 * Returns the quantity of a unit. Seconds and minutes are converted into each other; a third of a minute has
 * no decimal text.
 */
export function quantity(units: Units, unit: Unit): Rational | undefined {
  const text = units[unit];
  if (text !== undefined) return decimal(text);
  if (unit === 'minute' && units.second !== undefined) return times(decimal(units.second), sixtieth);
  if (unit === 'second' && units.minute !== undefined) return times(decimal(units.minute), sixty);
  return undefined;
}

/** Returns the units measured on the outputs of a run. Minutes follow from `second`. */
export function unitsOfOutputs(outputs: readonly MeasuredOutput[]): Units {
  const images = outputs.filter((output) => output.type === 'image');
  const units: Units = { request: '1' };
  if (images.length > 0) units.image = String(images.length);
  const pixels = images.reduce((sum, { width = 0, height = 0 }) => sum + whole(width) * whole(height), 0n);
  if (pixels > 0n) units.megapixel = decimalText({ numerator: pixels, denominator: 1_000_000n }) ?? '0';
  const durations = outputs.flatMap(({ duration }) => duration ?? []);
  const duration_ms = durations.reduce((sum, duration_s) => sum + whole(Math.round(duration_s * 1000)), 0n);
  if (durations.length > 0) units.second = decimalText({ numerator: duration_ms, denominator: 1_000n }) ?? '0';
  return units;
}

function whole(value: number): bigint {
  assert(Number.isSafeInteger(value) && value >= 0, `${value} is no measure of an output`);
  return BigInt(value);
}

const decimals_max = 10_000;
/** Prices and round numbers of tokens come again and again: reading them was 5 % of what a chat call allocates. */
const decimals = new Map<string, Rational>();

function decimal(text: string): Rational {
  const cached = decimals.get(text);
  if (cached) return cached;
  const value = rational(text);
  assert(value, `"${text}" is no decimal text`);
  if (decimals.size >= decimals_max) decimals.clear();
  decimals.set(text, value);
  return value;
}

/** The digits of a rational whose denominator is a power of ten; undefined beyond 18 before or after the point. */
function decimalText({ numerator, denominator }: Rational): string | undefined {
  const places = denominator.toString().length - 1;
  const digits = numerator.toString().padStart(places + 1, '0');
  const fraction = digits.slice(digits.length - places).replace(/0+$/, '');
  const text = digits.slice(0, digits.length - places) + (fraction === '' ? '' : `.${fraction}`);
  return rational(text) === undefined ? undefined : text;
}

function entriesOf<Key extends string, Value>(record: { readonly [key in Key]?: Value }): [Key, Value | undefined][] {
  const keys = Object.keys(record) as Key[]; // the compiler does not trust keys of a type that may be wider
  return keys.map((key) => [key, record[key]]);
}
