import { assert } from '../lib/assert.ts';
import { rational } from '../money/money.ts';
import type { ModelEntry } from './schema.ts';

/** Models whose prices are `margin` times as high: decimal times decimal, so nothing is rounded. */
export function withMargin(models: readonly ModelEntry[], margin = '1'): ModelEntry[] {
  if (margin === '1') return [...models];
  return models.map((model) => ({
    ...model,
    price: (model.price ?? []).map((row) => ({ ...row, amount: multiplied(row.amount, margin) })),
  }));
}

/** The product of two decimal texts, without zeros at its end. */
export function multiplied(amount: string, margin: string): string {
  const [a, b] = [rational(amount), rational(margin)];
  assert(a && b, 'both are decimals');
  const places = (a.denominator * b.denominator).toString().length - 1;
  const digits = (a.numerator * b.numerator).toString().padStart(places + 1, '0');
  const fraction = digits.slice(digits.length - places).replace(/0+$/, '');
  return digits.slice(0, digits.length - places) + (fraction === '' ? '' : `.${fraction}`);
}

/** Returns `20` or `20%` as the factor `1.2`; undefined for what is no percentage. */
export function factorOf(percent: string): string | undefined {
  const match = /^(\d{1,4})(?:\.(\d{1,2}))?\s*%?$/.exec(percent.trim());
  if (!match) return undefined;
  const [, whole = '', fraction = ''] = match;
  const hundredths = BigInt(whole) * 100n + BigInt(fraction.padEnd(2, '0'));
  const digits = (10_000n + hundredths).toString().padStart(5, '0');
  return `${digits.slice(0, -4)}.${digits.slice(-4)}`.replace(/\.?0+$/, '');
}

/** Returns the factor `1.2` as the percentage `20`. */
export function percentOf(factor: string): string {
  const exact = rational(factor);
  assert(exact, 'a factor is a decimal');
  const hundredths = (exact.numerator * 10_000n) / exact.denominator - 10_000n;
  const sign = hundredths < 0n ? '-' : '';
  const digits = (hundredths < 0n ? -hundredths : hundredths).toString().padStart(3, '0');
  return sign + `${digits.slice(0, -2)}.${digits.slice(-2)}`.replace(/\.?0+$/, '');
}
