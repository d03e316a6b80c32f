import { createHmac, timingSafeEqual } from 'node:crypto';
import { assert } from '../lib/assert.ts';
import { parseKey } from './key.ts';

export type Link = {
  url: string;
  /** ISO 8601, a whole second: from this moment on the link answers 404. */
  expires_at: string;
};

/** Seconds since 1970 in the only spelling that a link may carry. */
const expires_form = /^[1-9]\d{0,11}$/;

/**
 * A link that opens one file until it expires, for whoever holds it. Made once, when a task is
 * finished, and stored.
 */
export function makeLink(secret: string, file: { base_url: string; key: string; expires_at_ms: number }): Link {
  const expires_s = Math.floor(file.expires_at_ms / 1000);
  assert(parseKey(file.key) !== undefined, `"${file.key}" is no storage key`);
  assert(expires_form.test(String(expires_s)), `a link cannot expire at ${expires_s}`);
  const url = `${file.base_url.replace(/\/+$/, '')}/files/${file.key}`;
  return {
    url: `${url}?exp=${expires_s}&sig=${sign(secret, file.key, expires_s)}`,
    expires_at: new Date(expires_s * 1000).toISOString(),
  };
}

/** The link of a request: the path after `/files/`, not decoded, and the two query values. */
export type LinkClaim = { key: string; exp: unknown; sig: unknown };

/**
 * Returns the expiry of the link in seconds since 1970; undefined if it is forged, malformed or over. Exactly
 * one spelling of each value is accepted, so that a changed character never passes.
 */
export function verifyLink(secret: string, claim: LinkClaim, now_ms: number): number | undefined {
  const { key, exp, sig } = claim;
  if (typeof exp !== 'string' || !expires_form.test(exp)) return undefined;
  if (typeof sig !== 'string' || !/^[\w-]{43}$/.test(sig)) return undefined;
  if (parseKey(key) === undefined) return undefined;
  const expires_s = Number(exp);
  // As texts: the 43rd character carries two spare bits, decoding would let three others pass.
  if (!timingSafeEqual(Buffer.from(sig), Buffer.from(sign(secret, key, expires_s)))) return undefined;
  return now_ms < expires_s * 1000 ? expires_s : undefined;
}

/** The prefix keeps the signature apart from whatever else the same secret signs. */
function sign(secret: string, key: string, expires_s: number): string {
  assert(secret.length >= 16, 'links need a secret of at least 16 characters');
  return createHmac('sha256', secret).update(`medley file link\n${expires_s}\n${key}`).digest('base64url');
}
