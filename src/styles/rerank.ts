import type { Json, JsonObject } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { checkShape } from '../lib/json-shape.ts';
import { isObject, memberOf, mistake, needName, needText, readBoolean, readCount, words, wrongType } from './fields.ts';
import { searchUnits } from './search-units.ts';
import { addText, count, tokensOf, type TextSize } from './usage.ts';

/**
 * The format of `/v1/rerank`, which Cohere, Voyage, Jina and servers such as vLLM, Infinity and llama.cpp share but for
 * names. Requests are written anew for each of them, and so is the answer: with the caller's own documents.
 */
export const reranking = {
  name: 'rerank',
  members: {
    sdk: words('model query documents top_n max_tokens_per_doc'),
    vendor: words('top_k return_documents rank_fields truncation truncate truncate_prompt_tokens max_chunks_per_doc'),
  },
} as const;

/** The request of a body of `/v1/rerank`. */
export type RerankRequest = {
  readonly style: typeof reranking;
  readonly stream: false;
  readonly n: 1;
  body: JsonObject;
  model: string;
  query: string;
  /** As the caller gave them. */
  documents: readonly Json[];
  /** Number of results. */
  count: number;
  return_documents: boolean;
};

/** More of them no upstream takes. */
const documents_max = 10_000;

/** Reads a body. Throws ApiError 400 naming the field. */
export function readRerankRequest(body: unknown): RerankRequest {
  if (!isObject(body)) throw new ApiError('invalid_request', 'The body must be a JSON object.');
  const model = needName(body, 'model', 'model');
  const query = needName(body, 'query', 'query');
  const documents = readDocuments(memberOf(body, 'documents'));
  readCount(body, 'max_tokens_per_doc', 'max_tokens_per_doc', 1);
  checkRankFields(memberOf(body, 'rank_fields'));
  const return_documents = readBoolean(body, 'return_documents', 'return_documents') ?? false;
  const results = Math.min(readTop(body) ?? documents.length, documents.length);
  return { style: reranking, stream: false, n: 1, body, model, query, documents, count: results, return_documents };
}

function readDocuments(documents: Json | undefined): Json[] {
  if (documents === undefined) throw mistake('documents', 'is required');
  if (!Array.isArray(documents)) throw wrongType('documents', 'an array', documents);
  if (documents.length === 0) throw mistake('documents', 'must not be empty');
  if (documents.length > documents_max)
    throw mistake('documents', `may have at most ${documents_max} items (got ${documents.length})`);
  for (const [index, document] of documents.entries()) {
    const at = `documents[${index}]`;
    if (typeof document === 'string') continue;
    if (!isObject(document)) throw wrongType(at, 'a string or an object with a text', document);
    needText(document, 'text', `${at}.text`);
  }
  return documents;
}

/** Cohere and Jina say `top_n`, Voyage says `top_k`. */
function readTop(body: JsonObject): number | undefined {
  const top_n = readCount(body, 'top_n', 'top_n', 1);
  const top_k = readCount(body, 'top_k', 'top_k', 1);
  if (top_n !== undefined && top_k !== undefined && top_n !== top_k)
    throw mistake('top_k', `must be the same as top_n (got ${top_k} and ${top_n})`);
  return top_n ?? top_k;
}

function checkRankFields(fields: Json | undefined): void {
  if (fields === undefined || (Array.isArray(fields) && fields.every((each) => each === 'text'))) return;
  throw mistake('rank_fields', 'must be ["text"]: other fields of a document are not looked at', 'unsupported_field');
}

/** Returns the text of a document that was read. */
export function textOf(document: Json): string {
  if (typeof document === 'string') return document;
  const text = isObject(document) ? document['text'] : undefined;
  return typeof text === 'string' ? text : '';
}

/** The size of a request, for its hold and where the upstream reports nothing. */
export type RerankSize = {
  /** The size of the text of all pairs of the query and a document. */
  text_size: TextSize;
  search_units_most: number;
  search_units_counted: number;
};

/** Measures a request. Rerankers read the query again with each document. */
export function measureRerank({ query, documents, body }: RerankRequest): RerankSize {
  const of_query = sizeOf(query);
  const sizes = documents.map((document) => sizeOf(textOf(document)));
  const text_size = {
    ascii_bytes: sizes.reduce((sum, { ascii_bytes }) => sum + of_query.ascii_bytes + ascii_bytes, 0),
    other_bytes: sizes.reduce((sum, { other_bytes }) => sum + of_query.other_bytes + other_bytes, 0),
  };
  const longest = readCount(body, 'max_tokens_per_doc', 'max_tokens_per_doc', 1);
  return {
    text_size,
    search_units_most: searchUnits(bytesOf(of_query), sizes.map(bytesOf), longest),
    search_units_counted: searchUnits(tokensOf(of_query), sizes.map(tokensOf), longest),
  };
}

function sizeOf(text: string): TextSize {
  const size: TextSize = { ascii_bytes: 0, other_bytes: 0 };
  addText(size, text);
  return size;
}

/** No text makes more tokens than it has bytes. */
function bytesOf({ ascii_bytes, other_bytes }: TextSize): number {
  return ascii_bytes + other_bytes;
}

/** A document by its place in the request, with its score. */
export type RankedDocument = { index: number; relevance_score: number };

/** An upstream's answer. Counts are absent if it reports none that can be believed. */
export type Ranking = {
  id: string | undefined;
  results: RankedDocument[];
  input_tokens: number | undefined;
  search_units: number | undefined;
};

/**
 * Reads an upstream's answer: `results` of Cohere, Jina and most servers, `data` of Voyage, or the bare list of
 * text-embeddings-inference. Returns the best `count` documents, best first. Throws Error if it is no answer to a
 * request with so many documents.
 */
export function readRanking(
  bytes: Buffer,
  { documents, count: results_min }: Pick<RerankRequest, 'documents' | 'count'>,
): Ranking {
  const text = bytes.toString('utf8');
  checkShape(text);
  const body: unknown = JSON.parse(text);
  const fields = isObject(body) ? body : {};
  const list = Array.isArray(body) ? body : (fields['results'] ?? fields['data']);
  if (!Array.isArray(list)) throw new Error('The answer has no results.');
  const seen = new Set<number>();
  const results = list.map((each: unknown) => readRanked(each, documents.length, seen));
  if (results.length < results_min) throw new Error(`The answer has not ${results_min} results.`);
  const id = memberOf(fields, 'id');
  return {
    id: typeof id === 'string' && id !== '' && id.length <= id_length_max ? id : undefined,
    results: results.toSorted((a, b) => b.relevance_score - a.relevance_score).slice(0, results_min),
    ...countsIn(fields),
  };
}

const id_length_max = 128;

function readRanked(value: unknown, documents: number, seen: Set<number>): RankedDocument {
  const { index, relevance_score, score } = isObject(value) ? value : {};
  const relevance = relevance_score ?? score;
  if (typeof index !== 'number' || !Number.isSafeInteger(index) || index < 0 || index >= documents || seen.has(index))
    throw new Error('A result of the answer names no document of the request.');
  if (typeof relevance !== 'number' || !Number.isFinite(relevance))
    throw new Error('A result of the answer has no score.');
  seen.add(index);
  return { index, relevance_score: relevance };
}

/** Counts that are billed go before those that were read. */
function countsIn({ usage, meta }: JsonObject): Pick<Ranking, 'input_tokens' | 'search_units'> {
  const of_meta = isObject(meta) ? meta : {};
  const billed = isObject(of_meta['billed_units']) ? of_meta['billed_units'] : {};
  const read = isObject(of_meta['tokens']) ? of_meta['tokens'] : {};
  const used = isObject(usage) ? usage : {};
  const tokens = [
    billed['input_tokens'],
    billed['total_tokens'],
    used['total_tokens'],
    used['prompt_tokens'],
    read['input_tokens'],
  ];
  return {
    input_tokens: tokens.map(count).find((each) => each !== undefined),
    search_units: count(billed['search_units']) ?? count(used['search_units']),
  };
}

/** The counts that an answer shows: those that the call is charged by. */
export type ShownCounts = { input_tokens?: number; search_units?: number };

/** Writes the answer for the caller. */
export function renderRanking(
  { documents, return_documents }: RerankRequest,
  { results }: Pick<Ranking, 'results'>,
  named: { id: string; model: string },
  { input_tokens, search_units }: ShownCounts,
): Buffer {
  const shown = results.map(({ index, relevance_score }) => {
    const document = documents[index] ?? '';
    const own = typeof document === 'string' ? { text: document } : document;
    return { index, relevance_score, ...(return_documents && { document: own }) };
  });
  const billed_units = search_units === undefined ? { input_tokens } : { search_units };
  const answer = {
    object: 'list',
    id: named.id,
    model: named.model,
    results: shown,
    ...(input_tokens !== undefined && { usage: { prompt_tokens: input_tokens, total_tokens: input_tokens } }),
    meta: { api_version: { version: '2' }, billed_units },
  };
  return Buffer.from(JSON.stringify(answer));
}
