import { createHmac, timingSafeEqual } from 'node:crypto';
import { checkUserUrl } from '../net/address.ts';
import { assert } from '../lib/assert.ts';
import { isId } from '../lib/ids.ts';
import type { TaskRef } from './task.ts';

/** The run that an upstream tells of: one try of a task. */
export type RunName = TaskRef & { number: number };

/**
 * Returns the URL for event notices about a run; undefined if the upstream could not reach us. The holder of
 * the URL can make us poll that run sooner, and nothing else.
 */
export function eventsUrl(secret: string, base_url: string, run: RunName): string | undefined {
  const is_public = checkUserUrl(base_url, { allow: [], allow_private: false }) === undefined;
  if (!is_public || !base_url.startsWith('https://')) return undefined;
  return `${base_url}/events/${makeToken(secret, run)}`;
}

function makeToken(secret: string, { account_id, task_id, number }: RunName): string {
  const name = `${account_id}.${task_id}.${number}`;
  return `${name}.${sign(secret, name)}`;
}

/** The run of a token of ours; undefined for every other text. */
export function readToken(secret: string, token: string): RunName | undefined {
  const match = /^((\w{1,40})\.(\w{1,40})\.([1-9]\d{0,3}))\.([\w-]{43})$/.exec(token);
  if (!match) return undefined;
  const [, name = '', account_id = '', task_id = '', number = '', signature = ''] = match;
  if (!isId('acct', account_id) || !isId('task', task_id)) return undefined;
  if (!timingSafeEqual(Buffer.from(signature), Buffer.from(sign(secret, name)))) return undefined;
  return { account_id, task_id, number: Number(number) };
}

/** The prefix keeps the signature apart from whatever else the same secret signs. */
function sign(secret: string, name: string): string {
  assert(secret.length >= 16, 'tokens need a secret of at least 16 characters');
  return createHmac('sha256', secret).update(`medley run event\n${name}`).digest('base64url');
}
