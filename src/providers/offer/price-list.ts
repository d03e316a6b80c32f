import { readList } from '../../catalog/lists/index.ts';
import type { ListedModel } from '../../catalog/lists/listed.ts';
import type { Guard } from '../../net/guard.ts';
import { readUpstreamList } from './read-list.ts';

/** Reads the list at an address that the operator chose, which may be a copy in their own network. Throws OfferError. */
export function readPriceList(url: string, guard: Guard, signal: AbortSignal): Promise<ListedModel[]> {
  const { origin, pathname, search } = new URL(url);
  return readUpstreamList({
    config: { name: 'price-list', adapter: 'openai', base_url: origin, allow_private: true },
    guard,
    headers: {},
    path: pathname + search,
    read: (text) => readList('litellm', text),
    signal,
  });
}
