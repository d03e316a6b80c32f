/**
 * The reranker of the sandbox: how many of the query's words a document has, and how much of the others. The same texts
 * always have the same scores, from 0 to 1.
 */
import type { JsonObject } from '../../catalog/model.ts';
import { searchUnits } from '../../styles/search-units.ts';
import type { ChatReply, WholeCall } from '../provider.ts';
import { readChatScript } from './chat-script.ts';
import { behave, refused } from './chat.ts';
import { TokenCounter } from './tokens.ts';
import { partsOf, wordsOf } from './words.ts';

/** As at the models that the kind comes from. */
const documents_max = 1_000;

/** So many characters of a document are looked at. */
const read_length_max = 65_536;

/** Directives in the query script the call. */
export async function rerank(call: WholeCall, signal: AbortSignal): Promise<ChatReply> {
  const { body, model, options, request_id } = call;
  const documents = textsIn(body);
  if (documents.length > documents_max)
    throw refused(`documents has ${documents.length} items, this model takes ${documents_max}.`);
  const script = readChatScript(String(body['query']), options);
  await behave(script, false, signal);
  const counter = new TokenCounter();
  const query_tokens = await counter.count(script.text);
  const query = queryOf(script.text);
  const results: JsonObject[] = [];
  const tokens: number[] = [];
  for (const [index, document] of documents.entries()) {
    tokens.push(await counter.count(document));
    results.push({ index, relevance_score: scoreOf(query, document) });
    await new Promise<void>((resolve) => setImmediate(resolve)); // others have their turn
    signal.throwIfAborted();
  }
  const total_tokens = tokens.reduce((sum, each) => sum + query_tokens + each, 0);
  const { max_tokens_per_doc: longest } = body;
  const search_units = searchUnits(query_tokens, tokens, typeof longest === 'number' ? longest : undefined);
  const reported = script.tells_usage && { usage: { total_tokens }, meta: { billed_units: { search_units } } };
  return { body: oneChunk({ id: request_id, model, results, ...reported }) };
}

function textsIn({ documents }: JsonObject): string[] {
  return Array.isArray(documents) ? documents.map(String) : [];
}

type QueryWord = { word: string; parts: readonly string[]; weight: number };

/** Words of up to three letters mostly say nothing of what is looked for. */
const short_weight = 0.2;

function queryOf(text: string): QueryWord[] {
  return [...new Set(wordsOf(text))].map((word) => ({
    word,
    parts: partsOf(word),
    weight: word.length <= 3 ? short_weight : 1,
  }));
}

/** A word that is only like one of the document counts at most half. */
const likeness_weight = 0.5;

function scoreOf(query: readonly QueryWord[], document: string): number {
  const words = new Set(wordsOf(document.slice(0, read_length_max)));
  const parts = new Set([...words].flatMap(partsOf));
  let [score, whole] = [0, 0];
  for (const { word, parts: own, weight } of query) {
    const alike = own.filter((part) => parts.has(part)).length / Math.max(1, own.length);
    score += weight * (words.has(word) ? 1 : likeness_weight * alike);
    whole += weight;
  }
  return whole === 0 ? 0 : Math.round((score / whole) * 1e6) / 1e6;
}

async function* oneChunk(answer: JsonObject): AsyncGenerator<Buffer> {
  yield Buffer.from(JSON.stringify(answer));
}
