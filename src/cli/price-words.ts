import { tool_units, type Model, type PriceRow, type Unit } from '../catalog/model.ts';

/** Prices as a person reads them. */

const words: { readonly [unit in Unit]: string } = {
  request: 'run',
  image: 'image',
  megapixel: 'megapixel',
  second: 'second',
  minute: 'minute',
  character: 'character',
  input_token: 'input token',
  cached_input_token: 'cached input token',
  cache_write_token: 'cache-writing input token',
  cache_write_1h_token: 'one-hour cache-writing input token',
  output_token: 'output token',
  web_search: 'web search',
  code_interpreter: 'code container',
  search_unit: 'search unit',
};

/** `0.10 USD per second, with resolution 720p`. */
export function showRow({ unit, amount, per, when, above_input_tokens, from }: PriceRow, currency: string): string {
  const conditions = Object.entries(when ?? {}).map(([field, values]) => `${field} ${[values].flat().join(' or ')}`);
  return [
    `${amount} ${currency} per ${quantity(unit, per)}`,
    ...(conditions.length === 0 ? [] : [`with ${conditions.join(', ')}`]),
    ...(above_input_tokens === undefined ? [] : [`for inputs above ${grouped(above_input_tokens)} tokens`]),
    ...(from === undefined ? [] : [`from ${from} on`]),
  ].join(', ');
}

function quantity(unit: Unit, per: number): string {
  if (per === 1) return words[unit];
  const many = words[unit].endsWith('search') ? `${words[unit]}es` : `${words[unit]}s`;
  return `${per === 1_000_000 ? 'million' : grouped(per)} ${many}`;
}

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** The cheapest row of each unit, without conditions: `from 0.05 USD per second`. */
export function briefPrice({ price }: Pick<Model, 'price'>, currency: string): string {
  if (price.every(({ amount }) => Number(amount) === 0)) return 'free';
  const shown = price.filter(({ above_input_tokens, unit }) => above_input_tokens === undefined && !minor.has(unit));
  const brief = [...new Set(shown.map(({ unit }) => unit))].map((unit) => {
    const rows = shown.filter((row) => row.unit === unit).toSorted((a, b) => Number(a.amount) - Number(b.amount));
    const [cheapest] = rows;
    if (!cheapest) return '';
    return `${rows.length > 1 ? 'from ' : ''}${cheapest.amount} ${currency} per ${quantity(unit, cheapest.per)}`;
  });
  return brief.length === 0 ? 'free' : brief.join(', ');
}

const minor: ReadonlySet<Unit> = new Set([
  'cached_input_token',
  'cache_write_token',
  'cache_write_1h_token',
  ...tool_units,
]);
