import { divide, money_max, plus, rational, times, toMoney, zero, type Rational } from '../money/money.ts';
import type { UpstreamCharge } from '../money/upstream.ts';
import { input_token_units, type CostRow, type JsonObject, type Settings } from './model.ts';
import { chargedQuantity, fits, quantity, rowsOfInput, unitsByRows, type Units } from './price.ts';

type Rates = Pick<Settings, 'currencies' | 'base_currency'>;

/** A charge as the upstream reports it: a decimal text and a currency. It may be nonsense. */
type ReportedCost = { readonly amount: string; readonly currency: string };

/** By what the cost of a run is found. `rate`: of the account's currency, as it was frozen for the run. */
export type CostFacts = {
  reported?: ReportedCost | undefined;
  rows: readonly CostRow[];
  /** Absent: nobody has counted any. */
  units?: Units | undefined;
  /** Fallback for units that nobody measured, as in the price. */
  held_units: Units;
  rate: string;
  /** Some of the units were counted here, since the upstream did not tell them. */
  is_counted?: boolean;
};

/** Returns those of a route's cost rows that hold for one input: the first of each unit that fits it. */
export function fitCosts(rows: readonly CostRow[], input: () => JsonObject): readonly CostRow[] {
  const values = rows.some((row) => row.when) ? input() : {};
  const fitting = new Map<string, CostRow>();
  for (const { when, ...row } of rows) {
    const place = `${row.unit} ${row.above_input_tokens ?? 0}`;
    if (!fitting.has(place) && fits(when, values)) fitting.set(place, row);
  }
  return [...fitting.values()];
}

/**
 * Returns the upstream's charge for a run: as reported, else by the route's cost rows. If neither gives a
 * possible number, the charge is unknown; nothing is invented, and nothing fails.
 */
export function upstreamCharge(settings: Rates, facts: CostFacts): UpstreamCharge {
  const { reported, rows, rate, is_counted = false } = facts;
  if (rows.length > 0 && rows.every(isFree)) return freeOfCharge(settings);
  if (reported) return chargeOf(settings, 'told', inBase(settings, rational(reported.amount), reported.currency), rate);
  return chargeOf(settings, is_counted ? 'counted' : 'rows', byRows(settings, facts), rate);
}

function isFree({ amount }: CostRow): boolean {
  return rational(amount)?.numerator === 0n;
}

/** A run that the upstream confirmed to be unbilled. */
export function freeOfCharge(settings: Rates): UpstreamCharge {
  return { basis: 'free', cost: 0n, base: 0n, currency: settings.base_currency };
}

function byRows(settings: Rates, { rows, units, held_units }: CostFacts): Rational | undefined {
  if (rows.length === 0 || !units) return undefined;
  let sum: Rational = zero;
  const fitting = rowsOfInput(rows, inputTokens(units));
  const counted = unitsByRows(units, fitting);
  for (const { unit, amount, per, currency } of fitting) {
    const count = quantity(held_units, unit) ? chargedQuantity(unit, counted, held_units) : quantity(counted, unit);
    const price = rational(amount);
    if (!count || !price) return undefined;
    const cost = inBase(settings, times(count, times(price, { numerator: 1n, denominator: BigInt(per) })), currency);
    if (!cost) return undefined;
    sum = plus(sum, cost);
  }
  return sum;
}

function inputTokens(units: Units): number {
  return input_token_units.reduce((sum, unit) => sum + Number(units[unit] ?? 0), 0);
}

function inBase({ currencies }: Rates, amount: Rational | undefined, currency: string): Rational | undefined {
  if (amount?.numerator === 0n) return zero; // in any currency
  const rate = rational(currencies.get(currency) ?? '');
  return amount && rate && rate.numerator > 0n ? divide(amount, rate) : undefined;
}

function chargeOf(
  { base_currency }: Rates,
  basis: 'told' | 'rows' | 'counted',
  exact_base: Rational | undefined,
  rate: string,
): UpstreamCharge {
  const account_rate = rational(rate);
  if (!exact_base || !account_rate) return { basis: 'unknown' };
  const base = toMoney(exact_base, 'half_up');
  const cost = toMoney(times(exact_base, account_rate), 'half_up');
  if (base > money_max || cost > money_max) return { basis: 'unknown' };
  return { basis, cost, base, currency: base_currency };
}
