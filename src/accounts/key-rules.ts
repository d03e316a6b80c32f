import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { ApiError } from '../errors.ts';
import { isWithin } from '../net/address.ts';
import { parseDuration } from '../lib/duration.ts';
import type { ContentRules } from './content-rules.ts';
import { KeyRuleError } from './key-rule-error.ts';

/** Rights of a key: call chat models, make media, read the account's data and history. */
export const scopes = ['chat', 'media', 'read'] as const;

export type Scope = (typeof scopes)[number];

/** Restrictions of a key beyond its limit; null: none. */
export type KeyRules = {
  expires_at: Date | null;
  /** At least one; null: all. */
  scopes: readonly Scope[] | null;
  /** CIDR ranges, at least one; null: any address. */
  addresses: readonly string[] | null;
  /** Ids, aliases and prefixes of models (`src/catalog/key-models.ts`), at least one; null: all. */
  models: readonly string[] | null;
  /** The limit of each kind of request: generate, chat, everything else; null: the limits of the service alone. */
  requests_per_minute: number | null;
  /** Content of its chat calls is stored; null: none is. */
  log_content: ContentRules | null;
};

export const no_rules: KeyRules = {
  expires_at: null,
  scopes: null,
  addresses: null,
  models: null,
  requests_per_minute: null,
  log_content: null,
};

export const rule_names = [
  'expires_at',
  'scopes',
  'addresses',
  'models',
  'requests_per_minute',
  'log_content',
] as const satisfies readonly (keyof KeyRules)[];

const addresses_max = 50;
const requests_per_minute_max = 1_000_000;

/** Scopes of a list of words, each once; null for all of them or for null. Throws KeyRuleError. */
export function readScopes(value: unknown): readonly Scope[] | null {
  if (value === null) return null;
  const words: readonly unknown[] = Array.isArray(value) ? value : [];
  const chosen = scopes.filter((scope) => words.includes(scope));
  if (words.length === 0 || words.some((word) => !chosen.some((scope) => scope === word)))
    throw new KeyRuleError(`must be a list with at least one of ${scopes.join(', ')}; null allows all.`);
  return chosen.length === scopes.length ? null : chosen;
}

/** Ranges of a list of addresses and CIDR ranges; null for none or for null. Throws KeyRuleError. */
export function readAddresses(value: unknown): readonly string[] | null {
  if (value === null || (Array.isArray(value) && value.length === 0)) return null;
  if (!Array.isArray(value) || value.length > addresses_max)
    throw new KeyRuleError(`must be a list of at most ${addresses_max} addresses; null allows any.`);
  return [...new Set(value.map(readRange))];
}

/** Reads the limit of requests per minute; null for none. Throws KeyRuleError. */
export function readRequestsPerMinute(value: unknown): number | null {
  if (value === null) return null;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= requests_per_minute_max)
    return value;
  throw new KeyRuleError(`must be a whole number from 1 to ${requests_per_minute_max}; null for no limit of its own.`);
}

function readRange(value: unknown): string {
  const text = typeof value === 'string' ? value.trim() : '';
  const [address = '', bits] = text.split('/');
  const range = bits === undefined ? `${address}/${isIP(address) === 6 ? 128 : 32}` : text;
  // A zone (fe80::1%eth0) names an interface of one machine.
  if (isIP(address) !== 0 && !address.includes('%') && ipaddr.isValidCIDR(range)) return range;
  const shown = JSON.stringify(text.slice(0, 60));
  throw new KeyRuleError(`must have addresses such as 203.0.113.7 or ranges such as 203.0.113.0/24, not ${shown}.`);
}

/**
 * Reads the expiry of a key: a date and time (ISO 8601), a duration from now such as `90d`, or null for never.
 * Throws KeyRuleError.
 */
export function readExpiry(value: unknown, now: Date): Date | null {
  if (value === null) return null;
  const text = typeof value === 'string' ? value.trim() : '';
  const duration_ms = parseDuration(text);
  const at = duration_ms === undefined ? dateOf(text) : new Date(now.getTime() + duration_ms);
  if (at && at > now && at.getUTCFullYear() < 2200) return at;
  throw new KeyRuleError('must be a time in the future such as 2027-01-31T00:00:00Z, or a duration such as 90d.');
}

function dateOf(text: string): Date | undefined {
  if (!/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/.test(text))
    return undefined;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? undefined : at;
}

/**
 * Refuses a call that the rules of its key exclude. `of_call`: scopes of which one is enough; undefined where any will
 * do; none where the key must have no such rule. Throws ApiError 403.
 */
export function checkKeyRules(
  rules: Pick<KeyRules, 'scopes' | 'addresses'>,
  call: { of_call: readonly Scope[] | undefined; address: string },
): void {
  if (rules.addresses && !isWithin(call.address, rules.addresses)) {
    const message = 'This key may not be used from this address. Use it from an allowed one, or allow this one.';
    throw refusal('address_not_allowed', message);
  }
  const { of_call } = call;
  if (!rules.scopes || !of_call || of_call.some((scope) => rules.scopes?.includes(scope))) return;
  const needs = of_call.length === 0 ? 'everything' : of_call.join(' or ');
  const message = `This key may only be used for ${rules.scopes.join(' and ')}. Use a key that may be used for ${needs}.`;
  throw refusal('scope_missing', message);
}

function refusal(code: 'address_not_allowed' | 'scope_missing', message: string): ApiError {
  return new ApiError('forbidden', message, {
    code,
    headers: { 'x-should-retry': 'false' },
    refusal: { reason: code },
  });
}
