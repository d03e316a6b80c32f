import { plus, roundHalfUp, times, toMoney, zero, type Money, type Rational } from '../money/money.ts';
import { chargedQuantity, priceOf, quantity, rateOf, unitsByRows, type Pricing, type Units } from './price.ts';

/** One line of a charge: so many units at the price of its row. */
export type ChargePart = {
  unit: Pricing['rows'][number]['unit'];
  /** As charged. */
  quantity: string;
  /** The measured quantity, if another one is charged. */
  measured: string | undefined;
  /** Of the row, in the base currency. */
  price: { amount: string; per: number };
  /** In the currency of the account, with all its digits up to twelve. */
  amount: string;
};

/** The parts of a charge or a hold. The amounts of `parts` and `rounding` add up to `sum`. */
export type Breakdown = {
  parts: ChargePart[];
  /** From the exact sum to a whole number of millionths, with a sign. */
  rounding: string;
  sum: Money;
  /** The rate of the account's currency; undefined where it is the base currency's own. */
  rate: string | undefined;
};

const places = 12;
const parts_per_millionth = 10n ** 6n;

/** Takes a charge apart: by the quantities that are charged, rounded half up, as chargeOf does. */
export function chargeParts(pricing: Pricing, units: Units, held_units: Units): Breakdown {
  const counted = unitsByRows(units, pricing.rows);
  return breakdown(pricing, 'half_up', (unit) => ({
    charged: chargedQuantity(unit, counted, held_units),
    measured: quantity(counted, unit),
  }));
}

/** Takes a hold apart: by the estimated quantities, rounded up. */
export function holdParts(pricing: Pricing, held_units: Units): Breakdown {
  return breakdown(pricing, 'up', (unit) => ({ charged: quantity(held_units, unit) ?? zero, measured: undefined }));
}

type Quantities = { charged: Rational; measured: Rational | undefined };

function breakdown(
  pricing: Pricing,
  rounding: 'half_up' | 'up',
  quantitiesOf: (unit: ChargePart['unit']) => Quantities,
): Breakdown {
  const rate = rateOf(pricing.rate);
  const lines = pricing.rows.map((row) => {
    const { charged, measured } = quantitiesOf(row.unit);
    return { row, charged, measured, amount: times(times(charged, priceOf(row)), rate) };
  });
  const exact_sum = lines.reduce((so_far, { amount }) => plus(so_far, amount), zero);
  const sum = toMoney(exact_sum, rounding);
  const shown = lines.filter(({ charged }) => charged.numerator > 0n);
  const shown_sum = shown.reduce((so_far, { amount }) => so_far + digitsOf(amount), 0n);
  return {
    parts: shown.map(({ row: { unit, amount: price, per }, charged, measured, amount }) => ({
      unit,
      quantity: textOf(digitsOf(charged)),
      measured: measured && isSame(measured, charged) ? undefined : measured && textOf(digitsOf(measured)),
      price: { amount: price, per },
      amount: textOf(digitsOf(amount)),
    })),
    rounding: textOf(sum * parts_per_millionth - shown_sum),
    sum,
    rate: pricing.rate === '1' ? undefined : pricing.rate,
  };
}

function isSame(a: Rational, b: Rational): boolean {
  return a.numerator * b.denominator === b.numerator * a.denominator;
}

/** Returns a value in units of its twelfth decimal: a third of a minute has no end. */
function digitsOf({ numerator, denominator }: Rational): bigint {
  return roundHalfUp(numerator * 10n ** BigInt(places), denominator);
}

/** `0.037035`: without useless zeros. */
function textOf(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(places + 1, '0');
  const fraction = digits.slice(-places).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -places)}${fraction === '' ? '' : `.${fraction}`}`;
}
