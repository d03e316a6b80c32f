import { createHmac } from 'node:crypto';
import type { Json, JsonObject } from '../catalog/model.ts';
import { isObject } from './fields.ts';

/** Members of a body that name an end user of the caller's, or a cache for its prompts. */
const names = ['user', 'safety_identifier', 'prompt_cache_key'] as const;

/** The scope of end users' names: the account, and the secret that keeps the upstream from guessing them. */
export type NameScope = { account_id: string; secret: string };

/**
 * The body with names of end users and caches that belong to one account: at the upstream all accounts share one
 * customer, so that two of them with a "user-1" would share its cache, its limits and its ban. The same name of the
 * same account stays the same. 43 characters; OpenAI takes 64 for each.
 */
export function scopeEndUsers(body: JsonObject, scope: NameScope): JsonObject {
  const present = names.filter((name) => typeof body[name] === 'string');
  const metadata = isObject(body['metadata']) ? body['metadata'] : undefined;
  const has_user_id = typeof metadata?.['user_id'] === 'string';
  if (present.length === 0 && !has_user_id) return body;
  const scoped = { ...body };
  for (const name of present) scoped[name] = scopedName(body[name], scope);
  if (metadata && has_user_id) scoped['metadata'] = { ...metadata, user_id: scopedName(metadata['user_id'], scope) };
  return scoped;
}

function scopedName(name: Json | undefined, { account_id, secret }: NameScope): string {
  return createHmac('sha256', secret)
    .update(`${account_id} ${String(name)}`)
    .digest('base64url');
}
