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
