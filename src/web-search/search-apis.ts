import { isObject, type Json, type JsonObject, type SearchApi, type WebSearchSettings } from '../catalog/model.ts';

/**
 * Requests and answers of search APIs, by their documentation of November 2026 (read on 2026-11-27): Brave
 * (api-dashboard.search.brave.com), Tavily (docs.tavily.com), SearXNG (docs.searxng.org) and Exa (exa.ai/docs).
 */

/** A search, as a model asks for it. */
export type Query = {
  readonly text: string;
  /** Only pages of these domains; empty: of all. */
  readonly allowed_domains: readonly string[];
  readonly blocked_domains: readonly string[];
};

export type SearchRequest = {
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body?: JsonObject;
};

/** A result as the API has it, before it is checked. */
export type RawResult = { url: Json; title: Json; text: Json; age: Json };

type Shape = {
  request(settings: WebSearchSettings, query: Query, key: string): SearchRequest;
  results(answer: JsonObject): Json;
  read(result: JsonObject): RawResult;
};

const brave: Shape = {
  request: ({ base_url, results_max }, query, key) => ({
    method: 'GET',
    url: `${base_url}/res/v1/web/search?${new URLSearchParams({ q: withSites(query), count: String(results_max) })}`,
    headers: { 'x-subscription-token': key },
  }),
  results: ({ web }) => (isObject(web) ? (web['results'] ?? null) : null),
  read: ({ url = null, title = null, description = null, extra_snippets, page_age, age }) => ({
    url,
    title,
    text: joined([description, ...(Array.isArray(extra_snippets) ? extra_snippets : [])]),
    age: page_age ?? age ?? null,
  }),
};

const tavily: Shape = {
  request: ({ base_url, results_max }, { text, allowed_domains, blocked_domains }, key) => ({
    method: 'POST',
    url: `${base_url}/search`,
    headers: { authorization: `Bearer ${key}` },
    body: {
      query: text,
      max_results: results_max,
      ...(allowed_domains.length > 0 && { include_domains: [...allowed_domains] }),
      ...(blocked_domains.length > 0 && { exclude_domains: [...blocked_domains] }),
    },
  }),
  results: ({ results = null }) => results,
  read: ({ url = null, title = null, content = null, published_date: age = null }) => ({
    url,
    title,
    text: content,
    age,
  }),
};

const searxng: Shape = {
  request: ({ base_url }, query, key) => ({
    method: 'GET',
    url: `${base_url}/search?${new URLSearchParams({ q: withSites(query), format: 'json' })}`,
    headers: key === '' ? {} : { authorization: `Bearer ${key}` },
  }),
  results: ({ results = null }) => results,
  read: ({ url = null, title = null, content = null, publishedDate: age = null }) => ({
    url,
    title,
    text: content,
    age,
  }),
};

const text_length = 1_000;

const exa: Shape = {
  request: ({ base_url, results_max }, { text, allowed_domains, blocked_domains }, key) => ({
    method: 'POST',
    url: `${base_url}/search`,
    headers: { 'x-api-key': key },
    body: {
      query: text,
      numResults: results_max,
      contents: { text: { maxCharacters: text_length } },
      ...(allowed_domains.length > 0 && { includeDomains: [...allowed_domains] }),
      ...(blocked_domains.length > 0 && { excludeDomains: [...blocked_domains] }),
    },
  }),
  results: ({ results = null }) => results,
  read: ({ url = null, title = null, text, highlights, publishedDate: age = null }) => ({
    url,
    title,
    text: text ?? joined(Array.isArray(highlights) ? highlights : []),
    age,
  }),
};

const shapes: { readonly [api in SearchApi]: Shape } = { brave, tavily, searxng, exa };

/** Returns the request of a search. */
export function searchRequest(settings: WebSearchSettings, query: Query, key: string): SearchRequest {
  return shapes[settings.api].request(settings, query, key);
}

/** Returns the results in an answer, unchecked; undefined if it is none. */
export function rawResults({ api }: WebSearchSettings, answer: JsonObject): RawResult[] | undefined {
  const { results, read } = shapes[api];
  const list = results(answer);
  // Brave leaves `web` out where nothing was found.
  if (list === null && api === 'brave' && answer['web'] === undefined && answer['query'] !== undefined) return [];
  return Array.isArray(list) ? list.filter(isObject).map(read) : undefined;
}

const sites_max = 8;

/** Search engines have words for sites in the text of a search. */
function withSites({ text, allowed_domains, blocked_domains }: Query): string {
  const allowed = allowed_domains.slice(0, sites_max).map((domain) => `site:${domain}`);
  const blocked = blocked_domains.slice(0, sites_max).map((domain) => `-site:${domain}`);
  return [text, allowed.join(' OR '), ...blocked].filter((part) => part !== '').join(' ');
}

function joined(texts: readonly Json[]): string {
  return texts.filter((text) => typeof text === 'string').join('\n');
}
