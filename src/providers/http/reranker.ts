import type { JsonObject, ProviderConfig } from '../../catalog/model.ts';
import { NotStarted, type ChatProvider, type UpstreamParts, type WholeCall } from '../provider.ts';
import { openChatClient } from './chat-http.ts';

/** The words of an upstream that ranks: where it is asked, and the body in its names. */
export type RerankWords = { path: string; bodyOf(body: JsonObject, options: JsonObject): JsonObject };

/** Opens an upstream that ranks documents and does nothing else. */
export function openReranker(
  config: ProviderConfig & { base_url: string },
  parts: UpstreamParts,
  { path, bodyOf }: RerankWords,
): ChatProvider {
  const client = openChatClient(config, parts);
  const key: Record<string, string> = config.api_key === undefined ? {} : { authorization: `Bearer ${config.api_key}` };
  const headers = { ...key, accept: 'application/json' };
  return {
    styles: [],
    send: () => Promise.reject(new NotStarted('refused', `${config.name} does not chat`)),
    rerank: ({ body, options, timeout_ms }: WholeCall, signal) =>
      client.post(path, headers, bodyOf(body, options), { signal, connect_timeout_ms: timeout_ms.connect }),
    close: () => client.close(),
  };
}

/** The formats that a route of a server without a name of its own may have: that of most, or of text-embeddings-inference. */
export const rerank_formats = ['usual', 'tei'] as const;

/** The body for a server that is none of the vendors. */
export function serverRerankBody(body: JsonObject, { format }: JsonObject): JsonObject {
  if (format !== 'tei') return body;
  const { query = null, documents = null, truncate, truncation } = body;
  return { query, texts: documents, truncate: truncate ?? truncation ?? true };
}

/** The body without the names that other servers have for how to shorten what is too long. */
export function withoutShortening(body: JsonObject): JsonObject {
  const { truncate: _, truncation: __, truncate_prompt_tokens: ___, max_chunks_per_doc: ____, ...rest } = body;
  return rest;
}
