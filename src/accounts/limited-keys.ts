import type { Queryable } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import type { KeysOfProjects } from '../money/key-budgets.ts';
import { areInOneProject, projectOf } from '../money/ledger.ts';
import type { Caller } from './authenticate.ts';
import { keysInSight, type ProjectScope } from './project-scope.ts';

/** Keys of members who are limited to projects. They call models, and read what their project's members see of it. */

/** Endpoints below /v1 that these keys may call: each of them answers nothing that another project made. */
const open_to_limited: readonly { method: 'GET' | 'POST' | 'DELETE'; path: RegExp }[] = [
  { method: 'GET', path: /^\/v1(?:beta)?\/models(?:\/|$)/ },
  { method: 'GET', path: /^\/v1\/key$/ },
  { method: 'POST', path: /^\/v1(?:beta)?\/models\// },
  { method: 'POST', path: /^\/v1\/(?:chat\/completions|completions|embeddings|rerank|moderations)$/ },
  { method: 'POST', path: /^\/v2\/rerank$/ },
  { method: 'POST', path: /^\/v1\/messages(?:\/count_tokens)?$/ },
  { method: 'POST', path: /^\/v1\/responses(?:\/input_tokens|\/compact)?$/ },
  { method: 'POST', path: /^\/v1\/(?:generate|estimate)$/ },
  { method: 'POST', path: /^\/v1\/images\/(?:generations|edits|variations)$/ },
  { method: 'POST', path: /^\/v1\/audio\/(?:speech|transcriptions|translations)$/ },
  { method: 'GET', path: /^\/v1\/(?:calls|speed|usage|usage\/refusals)$/ },
  { method: 'GET', path: /^\/v1\/chat\/\{request_id\}(?:\/content)?$/ },
  { method: 'DELETE', path: /^\/v1\/chat\/\{request_id\}\/content$/ },
  { method: 'GET', path: /^\/v1\/chat\/contents$/ },
  ...everyCall(/^\/v1\/feedback(?:\/|$)/),
  { method: 'GET', path: /^\/v1\/tasks(?:\/\{id\})?$/ },
  { method: 'POST', path: /^\/v1\/tasks\/\{id\}\/(?:cancel|links)$/ },
  { method: 'DELETE', path: /^\/v1\/tasks\/\{id\}\/output$/ },
  ...everyCall(/^\/v1\/(?:files|videos|uploads|batches)(?:\/|$)/),
  ...everyCall(/^\/v1beta\/files(?:\/|$)/),
  { method: 'POST', path: /^\/upload\/v1(?:beta)?\/files$/ },
  { method: 'POST', path: /^\/mcp$/ }, // each tool is checked as the endpoint that it calls
];

/** Returns all calls of a resource whose rows have the key that made them. */
function everyCall(path: RegExp) {
  return (['GET', 'POST', 'DELETE'] as const).map((method) => ({ method, path }));
}

/** Tells whether keys of limited members may call an endpoint. */
export function isOpenToLimited(endpoint: { method: string; path: string }): boolean {
  return open_to_limited.some(({ method, path }) => method === endpoint.method && path.test(endpoint.path));
}

/** Throws ApiError 403 for a limited key at an endpoint that is about the whole account. */
export function checkLimitedKey({ key }: Caller, endpoint: { method: string; path: string }): void {
  if (!key.is_limited || isOpenToLimited(endpoint)) return;
  const message =
    'This key is limited to its project: it calls models, and has the tasks, calls, contents, feedback, files, videos, batches, usage and speed of its project. Use a key of a member who sees all of the account for this.';
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

/** Returns what a key sees of its account: a limited one its project; undefined: all of it. */
export async function scopeOfKey(db: Queryable, { account, key }: Caller): Promise<ProjectScope | undefined> {
  if (!key.is_limited) return undefined;
  const project_id = await projectOf(db, key.id);
  return { account_id: account.id, project_ids: project_id === undefined ? [] : [project_id] };
}

/** Returns the filter of lists of tasks and calls that this caller sees. */
export async function keysSeenBy(db: Queryable, caller: Caller): Promise<KeysOfProjects> {
  return keysInSight(db, caller.account.id, await scopeOfKey(db, caller));
}
