/**
 * Search units: how Cohere and those who sell its models bill a search. One unit is a query with up to 100 documents. A
 * document of more than 500 tokens, the query's included, is split into chunks, and each chunk counts as a document
 * (https://cohere.com/pricing, as quoted by Pinecone's documentation on 2026-11-27).
 */
const documents_per_unit = 100;
const chunk_tokens = 500;

/** A long query leaves at least so much of a chunk to the document. */
const chunk_room_min = 250;

/** Longer documents are cut, unless the request says otherwise (https://docs.cohere.com/reference/rerank, 2026-11-27). */
const tokens_per_document_usual = 4_096;

/** Returns the units of one search, at least 1. */
export function searchUnits(
  query_tokens: number,
  documents_tokens: Iterable<number>,
  tokens_per_document_max = tokens_per_document_usual,
): number {
  const room = Math.max(chunk_room_min, chunk_tokens - query_tokens);
  let chunks = 0;
  for (const tokens of documents_tokens)
    chunks += Math.max(1, Math.ceil(Math.min(tokens, tokens_per_document_max) / room));
  return Math.max(1, Math.ceil(chunks / documents_per_unit));
}
