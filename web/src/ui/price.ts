import type { PriceView } from '../../../src/dashboard/views/models.ts';
import { decimalText } from './decimal.ts';
import { moneyText, type Cost } from './Money.tsx';
import { unitName } from './units.ts';

/** Prices as a person reads them. */

/** `$2.00`, `$0.0004`: the amount of a price with at least two decimals. */
export function priceText({ amount, currency }: Cost): string {
  const [whole = '0', fraction = ''] = amount.split('.');
  return moneyText({ amount: `${whole}.${fraction.padEnd(2, '0')}`, currency });
}

/** `image`, `million input tokens`. */
export function perText({ unit, per }: Pick<PriceView, 'unit' | 'per'>): string {
  if (per === 1) return unitName(unit, 1);
  return `${per === 1_000_000 ? 'million' : per.toLocaleString('en-US')} ${unitName(unit, per)}`;
}

/** `12,345 input tokens`, `1 image`. */
export function quantityText({ unit, quantity }: { unit: string; quantity: string }): string {
  return `${decimalText(quantity)} ${unitName(unit, Number(quantity))}`;
}

/** `Input tokens`: a unit as the label of a quantity. */
export function unitLabel(unit: string): string {
  const text = unitName(unit);
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Names the inputs for which a row is meant: `resolution 720p, inputs above 200,000 tokens`. */
export function conditionText({ when, above_input_tokens }: PriceView): string {
  const parts = Object.entries(when ?? {}).map(([field, values]) => `${field} ${[values].flat().join(' or ')}`);
  if (above_input_tokens !== undefined) parts.push(`input above ${above_input_tokens.toLocaleString('en-US')} tokens`);
  return parts.join(', ');
}

const minor = new Set([
  'cached_input_token',
  'cache_write_token',
  'cache_write_1h_token',
  'web_search',
  'code_interpreter',
]);

/** Tells whether nothing has to be paid by these prices. */
export function isFree(pricing: readonly Pick<PriceView, 'amount'>[]): boolean {
  return pricing.every(({ amount }) => Number(amount) === 0);
}

/** The cheapest row of each unit: `$0.02 per image`, `from $0.10 per second`. */
export function priceTexts(pricing: readonly PriceView[]): string[] {
  if (isFree(pricing)) return ['free'];
  const shown = pricing.filter(({ unit, above_input_tokens }) => above_input_tokens === undefined && !minor.has(unit));
  const units = [...new Set(shown.map(({ unit }) => unit))];
  const texts = units.flatMap((unit) => {
    const rows = shown.filter((row) => row.unit === unit).toSorted((a, b) => Number(a.amount) - Number(b.amount));
    const [cheapest] = rows;
    return cheapest ? [`${rows.length > 1 ? 'from ' : ''}${priceText(cheapest)} per ${perText(cheapest)}`] : [];
  });
  return texts.length === 0 ? ['free'] : texts;
}
