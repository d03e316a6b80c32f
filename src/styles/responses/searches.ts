import type { Json, JsonObject } from '../../catalog/model.ts';
import { citationsIn } from '../citations.ts';
import type { SearchHalf } from '../codec.ts';
import type { WebSearch } from '../conversation.ts';
import { isObject, readCount } from '../fields.ts';
import { domainsIn, searchFunction } from '../search-function.ts';
import { withOwnFunction } from './own-tool.ts';
import type { SearchResult } from '../../web-search/search.ts';

/** Searches of the web in the responses style: a tool, items of calls, and annotations of texts. */

function isSearch(tool: Json): boolean {
  return isObject(tool) && typeof tool['type'] === 'string' && tool['type'].startsWith('web_search');
}

/** Reads and replaces the search among the tools of a request. */
export const responses_search: SearchHalf = {
  read: (body) => {
    const tool = Array.isArray(body['tools']) ? body['tools'].find(isSearch) : undefined;
    if (!isObject(tool)) return undefined;
    return {
      searches_max: readCount(body, 'max_tool_calls', 'max_tool_calls', 1),
      allowed_domains: domainsIn(tool['filters'], 'allowed_domains'),
      blocked_domains: domainsIn(tool['filters'], 'blocked_domains'),
    };
  },
  withFunction: (body) =>
    withOwnFunction(body, isSearch, (others) => {
      const { name, description, schema: parameters } = searchFunction(others);
      return { name, description, parameters };
    }),
};

/** Returns the item of a search; `status`: how far it is. */
export function searchItem(
  id: string,
  { query, results, failure }: Omit<WebSearch, 'id'>,
  status?: string,
): JsonObject {
  const sources = results.map(({ url }) => ({ type: 'url', url }));
  return {
    id,
    type: 'web_search_call',
    status: status ?? (failure === undefined ? 'completed' : 'failed'),
    action: { type: 'search', query, queries: [query], sources },
  };
}

/** Returns the annotations of a text. */
export function annotationsOf(text: string, results: readonly SearchResult[]): JsonObject[] {
  return citationsIn(text, results).map(({ result: { url, title }, start, end }) => ({
    type: 'url_citation',
    start_index: start,
    end_index: end,
    url,
    title,
  }));
}
