import type { Json, JsonObject } from '../../catalog/model.ts';
import { citationsIn } from '../citations.ts';
import type { SearchHalf } from '../codec.ts';
import type { WebSearch } from '../conversation.ts';
import { isObject, readCount } from '../fields.ts';
import { domainsIn, searchFunction } from '../search-function.ts';
import type { SearchResult } from '../../web-search/search.ts';

/**
 * Searches of the web in messages style: `web_search_*` among the tools, blocks of a call and of its results, and
 * citations in texts. The service's own carry a mark, since an upstream that searches itself refuses what it has not
 * sealed.
 */

const id_mark = 'srvtoolu_medley_';
const content_mark = 'medley:';
const cited_length_max = 150;

function isSearch(tool: Json): boolean {
  return isObject(tool) && typeof tool['type'] === 'string' && tool['type'].startsWith('web_search');
}

/** Reads and replaces the search among the tools of a request. */
export const messages_search: SearchHalf = {
  read: ({ tools }) => {
    const at = Array.isArray(tools) ? tools.findIndex(isSearch) : -1;
    const tool = Array.isArray(tools) ? tools[at] : undefined;
    if (!isObject(tool)) return undefined;
    return {
      searches_max: readCount(tool, 'max_uses', `tools[${at}].max_uses`, 1),
      allowed_domains: domainsIn(tool, 'allowed_domains'),
      blocked_domains: domainsIn(tool, 'blocked_domains'),
    };
  },
  withFunction: (body) => {
    const tools = Array.isArray(body['tools']) ? body['tools'] : [];
    const others = tools.filter((tool) => !isSearch(tool));
    const { name, description, schema } = searchFunction(others);
    const { tool_choice: choice = null } = body;
    const is_forced = isObject(choice) && choice['type'] === 'tool' && choice['name'] === 'web_search';
    return {
      name,
      body: {
        ...body,
        tools: [...others, { name, description, input_schema: schema }],
        ...(is_forced &&
          name !== 'web_search' &&
          !names(others).has('web_search') && { tool_choice: { ...choice, name } }),
      },
    };
  },
};

function names(tools: readonly Json[]): Set<Json | undefined> {
  return new Set(tools.map((tool) => (isObject(tool) ? tool['name'] : undefined)));
}

/** Returns the block of a search that begins. */
export function searchBlock(id: string, query: string): JsonObject {
  return {
    type: 'server_tool_use',
    id: id_mark + id,
    name: 'web_search',
    input: { query },
    caller: { type: 'direct' },
  };
}

/** Returns the block of what a search found. */
export function resultBlock({ id, results, failure }: WebSearch): JsonObject {
  const content =
    failure === undefined
      ? results.map(({ url, title, text, age }) => ({
          type: 'web_search_result',
          url,
          title,
          encrypted_content: content_mark + Buffer.from(text).toString('base64'),
          page_age: age ?? null,
        }))
      : { type: 'web_search_tool_result_error', error_code: failure };
  return { type: 'web_search_tool_result', tool_use_id: id_mark + id, content, caller: { type: 'direct' } };
}

/** Returns the citations of a text. */
export function writeCitations(text: string, results: readonly SearchResult[]): JsonObject[] {
  return citationsIn(text, results).map(({ result, start }) => ({
    type: 'web_search_result_location',
    url: result.url,
    title: result.title,
    cited_text: result.text.slice(0, cited_length_max).toWellFormed(),
    encrypted_index: `${content_mark}${start}`,
  }));
}

/** Returns the excerpt in a result of the service's own; undefined in others. */
export function excerptIn({ encrypted_content: sealed }: JsonObject): string | undefined {
  if (typeof sealed !== 'string' || !sealed.startsWith(content_mark)) return undefined;
  return Buffer.from(sealed.slice(content_mark.length), 'base64').toString('utf8');
}

/** Tells whether a block of a conversation comes from a search of the service's own, or cites one. */
export function isOwnSearch(block: Json): boolean {
  if (!isObject(block)) return false;
  const { type, id, tool_use_id, citations } = block;
  if (type === 'server_tool_use') return isMarked(id, id_mark);
  if (type === 'web_search_tool_result') return isMarked(tool_use_id, id_mark);
  return Array.isArray(citations) && citations.some(isOwnCitation);
}

/** A block without citations of the service's own. */
export function withoutOwnCitations(block: JsonObject): JsonObject {
  const { citations, ...rest } = block;
  if (!Array.isArray(citations)) return block;
  const others = citations.filter((each) => !isOwnCitation(each));
  return others.length === 0 ? rest : { ...rest, citations: others };
}

function isOwnCitation(citation: Json): boolean {
  return isObject(citation) && isMarked(citation['encrypted_index'], content_mark);
}

function isMarked(value: Json | undefined, mark: string): boolean {
  return typeof value === 'string' && value.startsWith(mark);
}
