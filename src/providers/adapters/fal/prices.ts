import { falRow } from '../../../catalog/lists/fal-prices.ts';
import { ListError } from '../../../catalog/lists/listed.ts';
import type { PriceRow } from '../../../catalog/model.ts';
import { askFalPrices, fal_prices_path, fal_prices_url } from '../../fal-prices.ts';
import { OfferError, type ReadPrices } from '../../offer/offer.ts';
import { readUpstreamObject } from '../../offer/read-list.ts';

/** Reads fal's own prices. They have an address of their own; a server in its place has them below `/v1`. */
export const readFalModelPrices: ReadPrices = async (config, { guard }, { models, signal }) => {
  const base_url = config.base_url === undefined ? fal_prices_url : `${config.base_url}/v1`;
  const headers: Record<string, string> =
    config.api_key === undefined ? {} : { authorization: `Key ${config.api_key}` };
  const place = { config: { ...config, base_url }, guard, headers, path: fal_prices_path };
  const endpoints = [...new Set(models.map(({ upstream_model }) => upstream_model))];
  try {
    const prices = await askFalPrices(endpoints, (query) => readUpstreamObject({ ...place, query }, signal));
    return new Map(
      models.flatMap(({ upstream_model, kind }): [string, PriceRow][] => {
        const price = prices.get(upstream_model);
        const row = price && falRow(price, kind);
        return row === undefined || typeof row === 'string' ? [] : [[upstream_model, row]];
      }),
    );
  } catch (error) {
    throw error instanceof ListError
      ? new OfferError('base_url', `${base_url}${fal_prices_path} ${error.message}`)
      : error;
  }
};
