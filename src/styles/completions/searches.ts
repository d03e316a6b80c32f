import type { Json, JsonObject } from '../../catalog/model.ts';
import type { Citation } from '../citations.ts';
import type { SearchHalf } from '../codec.ts';
import { isObject } from '../fields.ts';
import { searchFunction } from '../search-function.ts';

/** Searches of the web in chat completions: `web_search_options`, OpenRouter's plugin `web`, and annotations of messages. */

function isWeb(plugin: Json): boolean {
  return isObject(plugin) && plugin['id'] === 'web' && plugin['enabled'] !== false;
}

/** Reads the request for a search, and replaces it. */
export const completions_search: SearchHalf = {
  read: ({ web_search_options: options, plugins }) => {
    const is_asked = isObject(options) || (Array.isArray(plugins) && plugins.some(isWeb));
    return is_asked ? { searches_max: undefined, allowed_domains: [], blocked_domains: [] } : undefined;
  },
  withFunction: (body) => {
    const { web_search_options: _, plugins, ...rest } = body;
    const { tools, functions } = rest;
    const is_legacy = Array.isArray(functions) && !(Array.isArray(tools) && tools.length > 0);
    const others = is_legacy ? functions : Array.isArray(tools) ? tools : [];
    const { name, description, schema: parameters } = searchFunction(others);
    const added = { name, description, parameters };
    const left = Array.isArray(plugins) ? plugins.filter((plugin) => !isWeb(plugin)) : [];
    return {
      name,
      body: {
        ...rest,
        ...(left.length > 0 && { plugins: left }),
        ...(is_legacy
          ? { functions: [...others, added] }
          : { tools: [...others, { type: 'function', function: added }] }),
      },
    };
  },
};

/** Returns the annotations of a message. */
export function annotationsOf(citations: readonly Citation[]): JsonObject[] {
  return citations.map(({ result: { url, title }, start, end }) => ({
    type: 'url_citation',
    url_citation: { start_index: start, end_index: end, url, title },
  }));
}
