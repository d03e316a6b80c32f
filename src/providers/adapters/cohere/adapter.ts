import { openReranker, withoutShortening } from '../../http/reranker.ts';
import type { Adapter } from '../../provider.ts';

const default_base_url = 'https://api.cohere.com';

/**
 * Cohere's reranking, `POST /v2/rerank` (https://docs.cohere.com/reference/rerank and the types of its SDK, read on
 * 2026-11-27). It reports search units or tokens in `meta.billed_units`.
 */
export const cohere = {
  serves: (kind) => kind === 'rerank',
  limits: { label: 'Cohere' },
  openChat: (config, parts) => {
    const base_url = (config.base_url ?? default_base_url).replace(/\/v[12]\/*$/, '');
    return openReranker({ ...config, base_url }, parts, { path: '/v2/rerank', bodyOf: withoutShortening });
  },
} satisfies Adapter;
