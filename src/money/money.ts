/**
 * Money is a bigint of millionths of the currency unit. No floating point exists in this module:
 * test/tidy.test.ts forbids it. Amounts enter and leave as decimal strings.
 */
export type Money = bigint;

export const million = 1_000_000n;

/** The largest amount that fits a bigint column and leaves a margin for sums: one billion units. */
export const money_max: Money = 1_000_000_000n * million;

/** A Cost of the specification (2.3) with the extra field `exact`, six digits, what the ledger books. */
export type Cost = { amount: string; currency: string; exact: string };

/**
 * Parses a plain decimal such as `25`, `25.00`, `-0.000001`: at most six fraction digits, no
 * exponent, no sign but `-`, within ±money_max. Returns undefined for anything else.
 */
export function parseMoney(text: string): Money | undefined {
  const match = /^(-?)(\d{1,12})(?:\.(\d{1,6}))?$/.exec(text);
  if (!match) return undefined;
  const value = BigInt(match[2] ?? '') * million + BigInt((match[3] ?? '').padEnd(6, '0'));
  if (value > money_max) return undefined;
  return match[1] === '-' ? -value : value;
}

/** All six digits: `0.012500`. */
export function exact(value: Money): string {
  const digits = (value < 0n ? -value : value).toString().padStart(7, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

function twoDigits(cents: bigint): string {
  const digits = (cents < 0n ? -cents : cents).toString().padStart(3, '0');
  return `${cents < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

const cent = 10_000n;

/** Returns a cost for display: two digits, half up, but a positive cost never shows 0.00. */
export function costView(value: Money, currency: string): Cost {
  const cents = value > 0n && value < cent ? 1n : roundHalfUp(value, cent);
  return { amount: twoDigits(cents), currency, exact: exact(value) };
}

/** Returns a hold for display: two digits, rounded up. */
export function estimateView(value: Money, currency: string): Cost {
  return { amount: twoDigits(divideUp(value, cent)), currency, exact: exact(value) };
}

/**
 * Returns an amount that can be spent (balance, available, remaining): two digits, rounded down, so never
 * promised twice.
 */
export function balanceView(value: Money, currency: string): Cost {
  return { amount: twoDigits(divideDown(value, cent)), currency, exact: exact(value) };
}

/** numerator / denominator rounded to the nearest whole number, halves away from zero. */
export function roundHalfUp(numerator: bigint, denominator: bigint): bigint {
  const half = denominator / 2n;
  return numerator < 0n ? -((-numerator + half) / denominator) : (numerator + half) / denominator;
}

/** numerator / denominator rounded towards plus infinity; denominator > 0. */
export function divideUp(numerator: bigint, denominator: bigint): bigint {
  const down = divideDown(numerator, denominator);
  return down * denominator === numerator ? down : down + 1n;
}

/** numerator / denominator rounded towards minus infinity; denominator > 0. */
export function divideDown(numerator: bigint, denominator: bigint): bigint {
  const cut = numerator / denominator;
  return numerator < 0n && cut * denominator !== numerator ? cut - 1n : cut;
}

/**
 * An exact non-negative rational: what a decimal text or a product of them is before it is rounded
 * once. `value = numerator / denominator`.
 */
export type Rational = { numerator: bigint; denominator: bigint };

/** The exact value of a plain non-negative decimal (any number of fraction digits up to 18). */
export function rational(text: string): Rational | undefined {
  const match = /^(\d{1,18})(?:\.(\d{1,18}))?$/.exec(text);
  if (!match) return undefined;
  const fraction = match[2] ?? '';
  return {
    numerator: BigInt((match[1] ?? '') + fraction),
    denominator: 10n ** BigInt(fraction.length),
  };
}

export function times(a: Rational, b: Rational): Rational {
  return { numerator: a.numerator * b.numerator, denominator: a.denominator * b.denominator };
}

/** `b` is not zero. */
export function divide(a: Rational, b: Rational): Rational {
  return { numerator: a.numerator * b.denominator, denominator: a.denominator * b.numerator };
}

export function plus(a: Rational, b: Rational): Rational {
  return {
    numerator: a.numerator * b.denominator + b.numerator * a.denominator,
    denominator: a.denominator * b.denominator,
  };
}

export const zero: Rational = { numerator: 0n, denominator: 1n };

/** A rational number of currency units as Money, rounded once: half up for charges, up for holds. */
export function toMoney(units: Rational, rounding: 'half_up' | 'up'): Money {
  const round = rounding === 'up' ? divideUp : roundHalfUp;
  return round(units.numerator * million, units.denominator);
}
