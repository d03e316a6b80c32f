import type { Json, JsonObject } from '../../catalog/model.ts';
import { citationsIn } from '../citations.ts';
import type { SearchHalf } from '../codec.ts';
import type { WebSearch } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { domainsIn, searchFunction } from '../search-function.ts';

/** Searches of the web in Gemini's style: a tool, and `groundingMetadata` of a candidate. */

const names = ['googleSearch', 'googleSearchRetrieval'] as const;

function searchIn(tool: Json): JsonObject | undefined {
  if (!isObject(tool)) return undefined;
  return names.map((name) => tool[name]).find(isObject);
}

/** Reads and replaces the search among the tools of a request. */
export const gemini_search: SearchHalf = {
  read: ({ tools }) => {
    const search = Array.isArray(tools) ? tools.map(searchIn).find((each) => each !== undefined) : undefined;
    if (!search) return undefined;
    return { searches_max: undefined, allowed_domains: [], blocked_domains: domainsIn(search, 'excludeDomains') };
  },
  withFunction: (body) => {
    const tools = Array.isArray(body['tools']) ? body['tools'] : [];
    const others = tools.flatMap((tool): Json[] => {
      if (!isObject(tool) || !searchIn(tool)) return [tool];
      const { googleSearch: _, googleSearchRetrieval: __, ...rest } = tool;
      return Object.keys(rest).length === 0 ? [] : [rest];
    });
    const { name, description, schema: parametersJsonSchema } = searchFunction(others);
    const declaration = { functionDeclarations: [{ name, description, parametersJsonSchema }] };
    return { name, body: { ...body, tools: [...others, declaration] } };
  },
};

/** Returns the grounding of a text; `text`: all that the model wrote. */
export function groundingOf(text: string, searches: readonly WebSearch[]): JsonObject {
  const results = searches.flatMap((search) => search.results);
  const urls = [...new Set(results.map(({ url }) => url))];
  const titles = new Map(results.map(({ url, title }) => [url, title]));
  // Google counts bytes of UTF-8.
  const place = (at: number) => Buffer.byteLength(text.slice(0, at));
  return {
    webSearchQueries: searches.map(({ query }) => query),
    groundingChunks: urls.map((uri) => ({ web: { uri, title: titles.get(uri) ?? '', domain: new URL(uri).hostname } })),
    groundingSupports: citationsIn(text, results).map(({ result, start, end }) => ({
      segment: { startIndex: place(start), endIndex: place(end), text: text.slice(start, end) },
      groundingChunkIndices: [urls.indexOf(result.url)],
    })),
  };
}
