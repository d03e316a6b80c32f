import type { Queryable } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import { areInOneProject } from '../money/ledger.ts';
import type { Caller } from './authenticate.ts';

/** Keys of members who are limited to projects. They call models, and reach what keys of their own project made. */

/** Endpoints below /v1 that these keys may call: each of them answers nothing that another project made. */
const open_to_limited: readonly { method: 'GET' | 'POST' | 'DELETE'; path: RegExp }[] = [
  { method: 'GET', path: /^\/v1(?:beta)?\/models(?:\/|$)/ },
  { method: 'GET', path: /^\/v1\/key$/ },
  { method: 'POST', path: /^\/v1(?:beta)?\/models\// },
  { method: 'POST', path: /^\/v1\/(?:chat\/completions|completions|embeddings|rerank|moderations)$/ },
  { method: 'POST', path: /^\/v2\/rerank$/ },
  { method: 'POST', path: /^\/v1\/messages(?:\/count_tokens)?$/ },
  { method: 'POST', path: /^\/v1\/responses(?:\/input_tokens)?$/ },
  { method: 'POST', path: /^\/v1\/(?:generate|files)$/ },
  { method: 'POST', path: /^\/v1\/images\/(?:generations|edits|variations)$/ },
  { method: 'POST', path: /^\/v1\/audio\/(?:speech|transcriptions|translations)$/ },
  { method: 'GET', path: /^\/v1\/tasks\/\{id\}$/ },
  { method: 'POST', path: /^\/v1\/tasks\/\{id\}\/(?:cancel|links)$/ },
  { method: 'DELETE', path: /^\/v1\/tasks\/\{id\}\/output$/ },
];

/** Tells whether keys of limited members may call an endpoint. */
export function isOpenToLimited(endpoint: { method: string; path: string }): boolean {
  return open_to_limited.some(({ method, path }) => method === endpoint.method && path.test(endpoint.path));
}

/** Throws ApiError 403 for a limited key at an endpoint that is about the whole account. */
export function checkLimitedKey({ key }: Caller, endpoint: { method: string; path: string }): void {
  if (!key.is_limited || isOpenToLimited(endpoint)) return;
  const message =
    'This key is limited to its project: it calls models and reads tasks of its project. Use a key of a member who sees all of the account for this.';
  throw new ApiError('forbidden', message, {
    code: 'limited_to_projects',
    headers: { 'x-should-retry': 'false' },
    refusal: { reason: 'limited_to_projects' },
  });
}

/** Tells whether a caller reaches what this key made: limited ones do if both keys are in one project now. */
export async function reaches(db: Queryable, { account, key }: Caller, key_id: string): Promise<boolean> {
  if (!key.is_limited || key.id === key_id) return true;
  return areInOneProject(db, account.id, [key.id, key_id]);
}
