import type { JsonObject } from '../../../catalog/model.ts';
import { openReranker, withoutShortening } from '../../http/reranker.ts';
import type { Adapter } from '../../provider.ts';

const default_base_url = 'https://api.voyageai.com/v1';

/**
 * Voyage's reranking, `POST /v1/rerank` (the types of its SDK and https://docs.voyageai.com/docs/reranker, read on
 * 2026-11-27). It reports tokens in `usage.total_tokens`: those of the query for each document, and of all documents.
 */
export const voyage = {
  serves: (kind) => kind === 'rerank',
  limits: { label: 'Voyage AI' },
  openChat: (config, parts) =>
    openReranker({ ...config, base_url: config.base_url ?? default_base_url }, parts, { path: '/rerank', bodyOf }),
} satisfies Adapter;

/** By itself it cuts what is too long; `truncation: false` makes that an error. */
function bodyOf(body: JsonObject): JsonObject {
  const { top_n = null, max_tokens_per_doc: _, ...rest } = withoutShortening(body);
  const { truncation } = body;
  return { ...rest, top_k: top_n, ...(typeof truncation === 'boolean' && { truncation }) };
}
