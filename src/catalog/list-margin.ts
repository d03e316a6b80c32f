import { divide, roundHalfUp, type Rational } from '../money/money.ts';
import type { CostRow, Model, PriceRow, Route, Settings } from './model.ts';
import { priceOf, rateOf } from './price.ts';

/**
 * Returns the margin of a price over the cost of a route, in tenths of a percent of the price: the lowest of its units. A
 * unit that costs something and has the price 0 counts as -1000. Undefined where no unit has both.
 */
export function listMargin(
  { price }: Pick<Model, 'price'>,
  { cost }: Pick<Route, 'cost'>,
  { currencies, base_currency }: Pick<Settings, 'currencies' | 'base_currency'>,
): number | undefined {
  const margins = price.flatMap((row) => {
    const costs = costsOf(row, cost).flatMap((each) => inBase(each, { currencies, base_currency }) ?? []);
    return costs.map((each) => marginOf(priceOf(row), each));
  });
  return margins.length === 0 ? undefined : Math.min(...margins);
}

/** The costs of what the row prices: those with its conditions, or else every one of its unit. */
function costsOf(row: PriceRow, costs: readonly CostRow[]): readonly CostRow[] {
  const of_unit = costs.filter(({ unit }) => unit === row.unit);
  const same = of_unit.filter((each) => conditionsOf(each) === conditionsOf(row));
  return same.length > 0 ? same : of_unit;
}

function conditionsOf({ when = {}, above_input_tokens = 0 }: PriceRow): string {
  return JSON.stringify([Object.entries(when).toSorted(([a], [b]) => (a < b ? -1 : 1)), above_input_tokens]);
}

function inBase(
  row: CostRow,
  { currencies, base_currency }: Pick<Settings, 'currencies' | 'base_currency'>,
): Rational | undefined {
  if (row.currency === base_currency) return priceOf(row);
  const rate = currencies.get(row.currency);
  return rate === undefined ? undefined : divide(priceOf(row), rateOf(rate));
}

function marginOf(price: Rational, cost: Rational): number {
  if (price.numerator === 0n) return cost.numerator === 0n ? 0 : -1_000;
  const share = divide(cost, price);
  return Number(roundHalfUp((share.denominator - share.numerator) * 1_000n, share.denominator));
}
