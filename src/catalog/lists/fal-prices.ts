import { isObject, units_of_kind, type Json, type Kind, type PriceRow, type Unit } from '../model.ts';
import { ListError, objectOf, textOf, unitRow } from './listed.ts';

/**
 * Prices of fal's endpoints: `GET https://api.fal.ai/v1/models/pricing?endpoint_id=…`
 * (https://fal.ai/docs/platform-apis/v1/models/pricing, read on 2026-11-28), one base price for each endpoint, in its own unit.
 */

export type FalPrice = {
  endpoint: string;
  /** A number or a decimal text. */
  amount: Json | undefined;
  /** In fal's words, such as `images`, `megapixels` or `1000 characters`. */
  unit: string;
  currency: string;
};

/** Returns the prices of one answer, and where the next ones begin. Throws ListError for what is no such answer. */
export function readFalPrices(answer: Json): { prices: FalPrice[]; next_cursor: string | undefined } {
  const { prices, next_cursor } = objectOf(answer);
  if (!Array.isArray(prices)) throw new ListError('has no prices.');
  return {
    prices: prices.filter(isObject).flatMap((price) => {
      const endpoint = textOf(price['endpoint_id']);
      if (endpoint === undefined) return [];
      const { unit_price: amount, unit, currency } = price;
      return [{ endpoint, amount, unit: textOf(unit) ?? '', currency: textOf(currency) ?? '' }];
    }),
    next_cursor: textOf(next_cursor),
  };
}

/** Units by fal's words, without the s of several. What it bills by the run of a model is a request here. */
const units_by_word: { readonly [word: string]: Unit } = {
  image: 'image',
  megapixel: 'megapixel',
  second: 'second',
  'video second': 'second',
  'audio second': 'second',
  minute: 'minute',
  character: 'character',
  request: 'request',
  generation: 'request',
  video: 'request',
};

/**
 * Returns the row of a price for a model of this kind. A text says why there is none: fal bills some endpoints by the
 * second of a computer or by credits, which nothing here measures.
 */
export function falRow({ amount, unit, currency }: FalPrice, kind: Kind): PriceRow | string {
  if (currency !== 'USD') return `its price is in ${currency === '' ? 'no currency' : currency}`;
  const [, many = '1', word = ''] =
    /^(?:(\d{1,7}k?) )?(.*?)s?$/.exec(unit.toLowerCase().replaceAll(/[_ ]+/g, ' ')) ?? [];
  const measured = Object.hasOwn(units_by_word, word) ? units_by_word[word] : undefined;
  const per = Number(many.replace('k', '000'));
  if (measured === undefined || per === 0 || !units_of_kind[kind].includes(measured))
    return `fal bills it by ${unit === '' ? 'no unit' : unit}, which is no unit of ${kind} models here`;
  const [row] = unitRow(measured, amount);
  return row ? { ...row, per } : 'its price is nothing';
}
