import { readFalPrices, type FalPrice } from '../catalog/lists/fal-prices.ts';
import type { Json } from '../catalog/model.ts';

/** The adapter whose prices these are, and its provider in the default catalogue. */
export const fal_adapter = 'fal';

export const fal_prices_url = 'https://api.fal.ai/v1';

/** Of the prices, below the address. */
export const fal_prices_path = '/models/pricing';

/** Endpoints in one question, as its documentation says (November 2026). */
const endpoints_max = 50;
const pages_max = 20;

/** Asks with a query; undefined where the answer is a 404. */
type Get = (query: { endpoint_id: string; cursor?: string }) => Promise<Json | undefined>;

/** Asks fal for the prices of these endpoints. Those that it does not know are absent. Throws what `get` throws, and ListError. */
export async function askFalPrices(endpoints: readonly string[], get: Get): Promise<Map<string, FalPrice>> {
  const prices = new Map<string, FalPrice>();
  for (let at = 0; at < endpoints.length; at += endpoints_max) {
    for (const price of await askSome(endpoints.slice(at, at + endpoints_max), get)) prices.set(price.endpoint, price);
  }
  return prices;
}

/** One endpoint that is unknown makes the answer a 404: the others are asked for in halves. */
async function askSome(endpoints: readonly string[], get: Get): Promise<FalPrice[]> {
  const prices = await askPages(endpoints.join(','), get);
  if (prices || endpoints.length === 1) return prices ?? [];
  const middle = Math.ceil(endpoints.length / 2);
  return [...(await askSome(endpoints.slice(0, middle), get)), ...(await askSome(endpoints.slice(middle), get))];
}

async function askPages(endpoint_id: string, get: Get): Promise<FalPrice[] | undefined> {
  const all: FalPrice[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages_max; page += 1) {
    const answer = await get({ endpoint_id, ...(cursor !== undefined && { cursor }) });
    if (answer === undefined) return undefined;
    const { prices, next_cursor } = readFalPrices(answer);
    all.push(...prices);
    if (next_cursor === undefined || next_cursor === cursor) return all;
    cursor = next_cursor;
  }
  return all;
}
