import { readFalPrices, type FalPrice } from '../catalog/lists/fal-prices.ts';
import { ListError } from '../catalog/lists/listed.ts';
import { DescriptionError, fetchJson } from './describe.ts';

/** The adapter whose prices these are, and its provider in the default catalogue. */
export const fal_adapter = 'fal';

export const fal_prices_url = 'https://api.fal.ai/v1';

/** Endpoints in one question, as its documentation says (November 2026). */
const endpoints_max = 50;
const pages_max = 20;

/** Asks fal for the prices of these endpoints. Those that it does not know are absent. Throws DescriptionError. */
export async function askFalPrices(
  endpoints: readonly string[],
  { base_url, secret }: { base_url: string; secret: string },
): Promise<Map<string, FalPrice>> {
  const url = `${base_url.replace(/\/+$/, '')}/models/pricing`;
  const prices = new Map<string, FalPrice>();
  for (let at = 0; at < endpoints.length; at += endpoints_max) {
    const some = endpoints.slice(at, at + endpoints_max);
    for (const price of await askSome(url, secret, some)) prices.set(price.endpoint, price);
  }
  return prices;
}

/** One endpoint that is unknown makes the answer a 404: the others are asked for in halves. */
async function askSome(url: string, secret: string, endpoints: readonly string[]): Promise<FalPrice[]> {
  try {
    return await askPages(url, secret, endpoints);
  } catch (error) {
    if (!(error instanceof DescriptionError) || error.status !== 404) throw error;
    if (endpoints.length === 1) return [];
    const middle = Math.ceil(endpoints.length / 2);
    return [
      ...(await askSome(url, secret, endpoints.slice(0, middle))),
      ...(await askSome(url, secret, endpoints.slice(middle))),
    ];
  }
}

async function askPages(url: string, secret: string, endpoints: readonly string[]): Promise<FalPrice[]> {
  const all: FalPrice[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages_max; page += 1) {
    const query = new URLSearchParams(endpoints.map((endpoint) => ['endpoint_id', endpoint]));
    if (cursor !== undefined) query.set('cursor', cursor);
    const { prices, next_cursor } = read(url, await fetchJson(`${url}?${query}`, { authorization: `Key ${secret}` }));
    all.push(...prices);
    if (next_cursor === undefined || next_cursor === cursor) return all;
    cursor = next_cursor;
  }
  return all;
}

function read(url: string, answer: Awaited<ReturnType<typeof fetchJson>>) {
  try {
    return readFalPrices(answer);
  } catch (error) {
    throw error instanceof ListError ? new DescriptionError(`${url} ${error.message}`) : error;
  }
}
