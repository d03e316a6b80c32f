import type { PriceView } from '../../../../src/dashboard/views/models.ts';
import { amountSent } from '../../ui/amount.ts';
import { withMarkup } from '../../ui/markup.ts';

/** Prices of models that operators add. */

/** An amount that is typed for a kind of model. */
export type TypedUnit = { unit: string; per: number; label: string };

const million = 1_000_000;

const units_of: Record<string, readonly TypedUnit[]> = {
  chat: [
    { unit: 'input_token', per: million, label: 'Input, per million tokens' },
    { unit: 'output_token', per: million, label: 'Output, per million tokens' },
  ],
  embedding: [{ unit: 'input_token', per: million, label: 'Input, per million tokens' }],
  rerank: [{ unit: 'request', per: 1_000, label: 'Per thousand requests' }],
  moderation: [{ unit: 'request', per: 1_000, label: 'Per thousand requests' }],
  image: [{ unit: 'image', per: 1, label: 'Per image' }],
  video: [{ unit: 'request', per: 1, label: 'Per video' }],
  audio: [{ unit: 'request', per: 1, label: 'Per audio file' }],
};

/** Units of the prices that are typed for models of a kind. */
export function typedUnits(kind: string): readonly TypedUnit[] {
  return units_of[kind] ?? [];
}

/** Amounts by unit, as they were typed. */
export type Amounts = Record<string, string>;

const amount_form = /^\d{1,9}(?:\.\d{1,12})?$/;

/** Returns the rows of a price as they are sent; undefined if an amount is missing or is none. */
export function typedPrice(
  kind: string,
  amounts: Amounts,
): { unit: string; per: number; amount: string }[] | undefined {
  const rows = typedUnits(kind).map(({ unit, per }) => ({ unit, per, amount: amountSent(amounts[unit] ?? '') }));
  return rows.length > 0 && rows.every(({ amount }) => amount_form.test(amount)) ? rows : undefined;
}

/** Returns prices with a margin on them, in the currency of prices; undefined while the margin is no percentage. */
export function pricesWith(rows: readonly PriceView[], percent: string, currency: string): PriceView[] | undefined {
  const marked = rows.map((row) => {
    const amount = withMarkup(row.amount, percent);
    return amount === undefined ? undefined : { ...row, amount, currency };
  });
  const complete = marked.filter((row) => row !== undefined);
  return complete.length === rows.length ? complete : undefined;
}
