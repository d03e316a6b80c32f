import type { Scope } from '../accounts/key-rules.ts';

/** Which scope opens a path below /v1, the first that fits; undefined: any; none: only a key without scopes. */
const rules: readonly { path: RegExp; method?: 'GET' | 'POST'; scopes: readonly Scope[] | undefined }[] = [
  { path: /^\/v1(?:beta)?\/models\//, method: 'POST', scopes: ['chat'] },
  { path: /^\/v1\/(?:models|key)(?:\/|$)/, scopes: undefined },
  { path: /^\/v1beta\/models(?:\/|$)/, scopes: undefined },
  {
    path: /^\/v1\/(?:chat\/completions|completions|messages|responses|conversations|embeddings|rerank|moderations)(?:\/|$)/,
    scopes: ['chat'],
  },
  { path: /^\/v2\/rerank$/, scopes: ['chat'] },
  { path: /^\/v1\/chat\//, scopes: ['chat', 'read'] },
  { path: /^\/v1\/batches(?:\/|$)/, method: 'GET', scopes: ['chat', 'read'] },
  { path: /^\/v1\/batches(?:\/|$)/, scopes: ['chat'] },
  { path: /^\/v1\/(?:balance|usage|speed|calls)(?:\/|$)/, scopes: ['read'] },
  { path: /^\/v1\/webhook_endpoints(?:\/|$)/, method: 'GET', scopes: ['read'] },
  { path: /^\/v1\/webhook_endpoints(?:\/|$)/, scopes: [] },
  { path: /^\/v1\/feedback(?:\/|$)/, method: 'GET', scopes: ['chat', 'media', 'read'] },
  { path: /^\/v1\/feedback(?:\/|$)/, scopes: ['chat', 'media'] },
  { path: /^\/v1\/(?:tasks|files|videos)(?:\/|$)/, method: 'GET', scopes: ['media', 'read'] },
  { path: /^\/v1beta\/files(?:\/|$)/, method: 'GET', scopes: ['media', 'read'] },
  { path: /^\/(?:v1beta|upload\/v1|upload\/v1beta)\/files(?:\/|$)/, scopes: ['media'] },
  { path: /^\/v1\//, scopes: ['media'] },
];

/** The scopes of which a key needs one to call this endpoint; undefined if any will do. */
export function scopesOf({ method, path }: { method: string; path: string }): readonly Scope[] | undefined {
  return rules.find((rule) => rule.path.test(path) && (rule.method === undefined || rule.method === method))?.scopes;
}
