import {
  constants,
  createPublicKey,
  verify,
  type KeyObject,
  type VerifyKeyObjectInput,
  type webcrypto,
} from 'node:crypto';
import { isRecord } from '../../lib/is-record.ts';
import { SignInProblem } from './problem.ts';

/** ID tokens of OpenID Connect (Core 1.0, 3.1.3.7): their signature, and what they must say. */

export type Claims = Readonly<Record<string, unknown>> & { readonly sub: string };

/** A public key as JSON (RFC 7517). */
export type Jwk = Readonly<Record<string, unknown>>;

type Expected = {
  issuer: string;
  client_id: string;
  nonce: string;
  now: Date;
};

type Algorithm = {
  type: 'rsa' | 'ec' | 'ed25519';
  hash: string | null;
  curve?: string;
  options?: Omit<VerifyKeyObjectInput, 'key'>;
};

const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
const ec = { dsaEncoding: 'ieee-p1363' } as const;

/** Those with a key pair: with a shared secret, and with none, anybody who has that secret is the issuer. */
const algorithms: ReadonlyMap<string, Algorithm> = new Map<string, Algorithm>([
  ['RS256', { type: 'rsa', hash: 'sha256' }],
  ['RS384', { type: 'rsa', hash: 'sha384' }],
  ['RS512', { type: 'rsa', hash: 'sha512' }],
  ['PS256', { type: 'rsa', hash: 'sha256', options: pss }],
  ['PS384', { type: 'rsa', hash: 'sha384', options: pss }],
  ['PS512', { type: 'rsa', hash: 'sha512', options: pss }],
  ['ES256', { type: 'ec', hash: 'sha256', curve: 'prime256v1', options: ec }],
  ['ES384', { type: 'ec', hash: 'sha384', curve: 'secp384r1', options: ec }],
  ['ES512', { type: 'ec', hash: 'sha512', curve: 'secp521r1', options: ec }],
  ['EdDSA', { type: 'ed25519', hash: null }],
]);

const rsa_bits_min = 2048;

/** Difference of two clocks that is let pass. */
const skew_s = 120;

const no_token = () => new SignInProblem('answer', 'the ID token is none');

/** Checks a token by the issuer's keys. Throws SignInProblem; `unknown_key` where another look at the keys may help. */
export function readIdToken(token: string, keys: readonly Jwk[], expected: Expected): Claims {
  const header = partOf(token, 0);
  const algorithm = algorithms.get(String(header['alg']));
  if (!algorithm) throw new SignInProblem('answer', `the ID token is signed by ${String(header['alg']).slice(0, 20)}`);
  const candidates = keysFor(algorithm, header, keys);
  if (candidates.length === 0) throw new SignInProblem('unknown_key', 'no key of the issuer fits the ID token');
  const [head = '', body = '', signature = ''] = token.split('.');
  const signed = Buffer.from(`${head}.${body}`);
  const proof = Buffer.from(signature, 'base64url');
  const is_genuine = candidates.some((key) => verify(algorithm.hash, signed, { key, ...algorithm.options }, proof));
  if (!is_genuine) throw new SignInProblem('answer', 'the signature of the ID token is wrong');
  return checkClaims(partOf(token, 1), expected);
}

function partOf(token: string, index: 0 | 1): Record<string, unknown> {
  const parts = token.split('.');
  if (parts.length !== 3) throw no_token();
  try {
    const part: unknown = JSON.parse(Buffer.from(parts[index] ?? '', 'base64url').toString('utf8'));
    if (isRecord(part)) return part;
  } catch {
    throw no_token();
  }
  throw no_token();
}

function keysFor({ type, curve }: Algorithm, header: Record<string, unknown>, keys: readonly Jwk[]): KeyObject[] {
  const named = keys.filter((key) => key['use'] === undefined || key['use'] === 'sig');
  const own = header['kid'] === undefined ? named : named.filter((key) => key['kid'] === header['kid']);
  return own.flatMap((jwk) => {
    const key = keyOf(jwk);
    const { asymmetricKeyType, asymmetricKeyDetails: details = {} } = key ?? {};
    if (!key || asymmetricKeyType !== type) return [];
    if (type === 'rsa' && (details.modulusLength ?? 0) < rsa_bits_min) return [];
    return curve === undefined || details.namedCurve === curve ? [key] : [];
  });
}

function keyOf(jwk: Jwk): KeyObject | undefined {
  const key: webcrypto.JsonWebKey = {};
  for (const name of ['kty', 'n', 'e', 'crv', 'x', 'y'] as const) {
    const value = jwk[name];
    if (typeof value === 'string') key[name] = value;
  }
  try {
    return createPublicKey({ key, format: 'jwk' });
  } catch {
    return undefined; // of a kind that nobody knows here
  }
}

function checkClaims(claims: Record<string, unknown>, { issuer, client_id, nonce, now }: Expected): Claims {
  const { iss, aud, azp, sub, exp, iat, nbf } = claims;
  const wrong = (what: string) => new SignInProblem('answer', `the ID token has the wrong ${what}`);
  // Google's own documents allow it without https://, too.
  if (iss !== issuer && !(issuer === 'https://accounts.google.com' && iss === 'accounts.google.com'))
    throw wrong('issuer');
  const audiences = [aud].flat();
  if (!audiences.includes(client_id)) throw wrong('audience');
  if ((audiences.length > 1 || azp !== undefined) && azp !== client_id) throw wrong('authorized party');
  if (claims['nonce'] !== nonce) throw wrong('nonce');
  if (typeof sub !== 'string' || sub === '' || sub.length > 255) throw wrong('subject');
  if (typeof exp !== 'number' || typeof iat !== 'number') throw wrong('time');
  const now_s = now.getTime() / 1000;
  if (exp + skew_s < now_s) throw new SignInProblem('clock', `the ID token expired ${Math.round(now_s - exp)} s ago`);
  const begin = Math.max(iat, typeof nbf === 'number' ? nbf : iat);
  if (begin - skew_s > now_s)
    throw new SignInProblem('clock', `the ID token is of ${Math.round(begin - now_s)} s from now`);
  return { ...claims, sub };
}
