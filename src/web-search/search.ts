import { isObject, type Json, type WebSearchSettings } from '../catalog/model.ts';
import { resolveSecret } from '../config.ts';
import { checkShape } from '../lib/json-shape.ts';
import { GuardError, type Guard } from '../net/guard.ts';
import { rawResults, searchRequest, type Query, type RawResult, type SearchRequest } from './search-apis.ts';

/** A page that was found; every text is bounded, and comes from a stranger. */
export type SearchResult = {
  readonly url: string;
  readonly title: string;
  readonly text: string;
  readonly age?: string;
};

/** Reasons for which there are no results, in the words of the messages style. */
export type SearchFailure =
  | 'invalid_tool_input'
  | 'query_too_long'
  | 'max_uses_exceeded'
  | 'too_many_requests'
  | 'unavailable';

/** A search that was answered is paid for, with results or without; `reason` is for the log. */
export type SearchOutcome =
  | { readonly results: readonly SearchResult[] }
  | { readonly failure: SearchFailure; readonly reason: string };

/** More is refused, as Brave does. */
const query_length_max = 400;

const answer_bytes_max = 2_000_000;
const connect_timeout_ms = 5_000;

/** All results of a search, as the model reads them: every byte may be a token, and so many are held for. */
const results_bytes_max = 7_000;

const lengths = { url: 500, title: 200, text: 1_500, age: 40 };

/**
 * Asks the operator's search API. Never rejects, but with the signal's reason: whatever comes back, late, huge or
 * hostile, is a failure that the model is told. Redirects are not followed.
 */
export async function searchWeb(
  guard: Guard,
  settings: WebSearchSettings,
  query: Query,
  signal: AbortSignal,
): Promise<SearchOutcome> {
  const { text } = query;
  if (text === '') return { failure: 'invalid_tool_input', reason: 'the search has no text' };
  if (text.length > query_length_max) return { failure: 'query_too_long', reason: 'the search is too long' };
  const key = settings.api_key === undefined ? '' : resolveSecret(settings.api_key);
  if (key === undefined) return { failure: 'unavailable', reason: 'the key of the search API is not set' };
  try {
    const { status, answer } = await sendToApi(guard, settings, searchRequest(settings, query, key), signal);
    if (status === 429) return { failure: 'too_many_requests', reason: 'the search API answered 429' };
    if (status !== 200) return { failure: 'unavailable', reason: `the search API answered ${status}` };
    if (answer.length === answer_bytes_max) return { failure: 'unavailable', reason: 'the answer is too large' };
    return readAnswer(settings, query, answer);
  } catch (error) {
    if (signal.aborted) throw error;
    return { failure: 'unavailable', reason: reasonOf(error) };
  }
}

/** Sends one request to the search API, within its time and the bounds of every answer. */
export function sendToApi(
  guard: Guard,
  settings: WebSearchSettings,
  { method, url, headers, body }: SearchRequest,
  signal: AbortSignal,
): Promise<{ status: number; answer: Buffer }> {
  return guard.send(url, {
    method,
    headers: {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'Medley',
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body && { body: Buffer.from(JSON.stringify(body)) }),
    answer_bytes_max,
    rules: { allow: [], allow_private: settings.allow_private },
    connect_timeout_ms: Math.min(connect_timeout_ms, settings.timeout_ms),
    timeout_ms: settings.timeout_ms,
    signal,
  });
}

/** The reason of a request that was not answered, without secrets. */
export function reasonOf(error: unknown): string {
  return error instanceof GuardError ? error.message : 'the search API could not be asked';
}

function readAnswer(settings: WebSearchSettings, query: Query, bytes: Buffer): SearchOutcome {
  const raw = rawOf(settings, bytes);
  if (!raw) return { failure: 'unavailable', reason: 'the answer of the search API cannot be read' };
  const results: SearchResult[] = [];
  let left_bytes = results_bytes_max;
  const seen = new Set<string>();
  for (const each of raw) {
    const result = checked(each);
    if (!result || seen.has(result.url) || !isWanted(result.url, query)) continue;
    const size_bytes = sizeOf(result);
    if (size_bytes > left_bytes) continue;
    left_bytes -= size_bytes;
    seen.add(result.url);
    results.push(result);
    if (results.length === settings.results_max) break;
  }
  return { results };
}

function rawOf(settings: WebSearchSettings, bytes: Buffer): RawResult[] | undefined {
  try {
    const text = bytes.toString('utf8');
    checkShape(text);
    const answer: unknown = JSON.parse(text);
    return isObject(answer) ? rawResults(settings, answer) : undefined;
  } catch {
    return undefined;
  }
}

/** Bytes around the texts of a result, for the model. */
const frame_bytes = 40;

function sizeOf({ url, title, text, age = '' }: SearchResult): number {
  return Buffer.byteLength(url + title + text + age) + frame_bytes;
}

function checked({ url, title, text, age }: RawResult): SearchResult | undefined {
  if (typeof url !== 'string' || url.length > lengths.url || !/^https?:\/\/[^\s"'<>\\^`{|}\p{Cc}]+$/u.test(url))
    return undefined;
  if (!URL.canParse(url)) return undefined;
  const named = plain(title, lengths.title);
  const aged = plain(age, lengths.age);
  return {
    url,
    title: named === '' ? new URL(url).hostname : named,
    text: plain(text, lengths.text),
    ...(aged !== '' && { age: aged }),
  };
}

const entities: ReadonlyMap<string, string> = new Map([
  ['&amp;', '&'],
  ['&lt;', '<'],
  ['&gt;', '>'],
  ['&quot;', '"'],
  ['&#39;', "'"],
  ['&#x27;', "'"],
  ['&nbsp;', ' '],
]);

/** A text in one line, without marks: APIs send HTML, and pages send what they like. */
function plain(value: Json, length_max: number): string {
  if (typeof value !== 'string') return '';
  return value
    .slice(0, length_max * 4)
    .toWellFormed()
    .replaceAll(/<\/?[a-zA-Z][^<>]{0,200}>/g, '')
    .replaceAll(/&(?:amp|lt|gt|quot|#39|#x27|nbsp);/g, (entity) => entities.get(entity) ?? entity)
    .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
    .slice(0, length_max)
    .toWellFormed();
}

function isWanted(url: string, { allowed_domains, blocked_domains }: Query): boolean {
  const { hostname, pathname } = new URL(url);
  const isOf = (domain: string) => {
    const [host = '', ...path] = domain.toLowerCase().split('/');
    const is_host = hostname === host || hostname.endsWith(`.${host}`);
    return is_host && pathname.startsWith(`/${path.join('/')}`);
  };
  if (blocked_domains.some(isOf)) return false;
  return allowed_domains.length === 0 || allowed_domains.some(isOf);
}
