import type { JsonObject } from '../../../catalog/model.ts';
import { openReranker, withoutShortening } from '../../http/reranker.ts';
import type { Adapter } from '../../provider.ts';

const default_base_url = 'https://api.jina.ai/v1';

/** Jina's reranking, `POST /v1/rerank` (https://jina.ai/reranker, read on 2026-11-27). It reports tokens in `usage.total_tokens`. */
export const jina = {
  serves: (kind) => kind === 'rerank',
  limits: { label: 'Jina AI' },
  openChat: (config, parts) =>
    openReranker({ ...config, base_url: config.base_url ?? default_base_url }, parts, { path: '/rerank', bodyOf }),
} satisfies Adapter;

/** It sends the documents back unless it is told not to. */
function bodyOf(body: JsonObject): JsonObject {
  const { max_tokens_per_doc: _, ...rest } = withoutShortening(body);
  return { ...rest, return_documents: false };
}
