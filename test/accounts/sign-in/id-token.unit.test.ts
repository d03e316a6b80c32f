import { generateKeyPairSync, sign, type KeyObject, type SignKeyObjectInput } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readIdToken, type Jwk } from '../../../src/accounts/sign-in/id-token.ts';
import { SignInProblem } from '../../../src/accounts/sign-in/problem.ts';

const now = new Date('2026-11-28T12:00:00Z');
const now_s = now.getTime() / 1000;
const expected = { issuer: 'https://i.example', client_id: 'medley', nonce: 'n', now };
const claims = { iss: 'https://i.example', aud: 'medley', nonce: 'n', sub: 's', iat: now_s, exp: now_s + 60 };

type Pair = { privateKey: KeyObject; publicKey: KeyObject };

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function tokenOf(
  alg: string,
  { privateKey }: Pair,
  { hash, options }: { hash: string | null; options?: Omit<SignKeyObjectInput, 'key'> },
  body: object = claims,
): string {
  const signed = `${part({ alg, kid: 'k' })}.${part(body)}`;
  return `${signed}.${sign(hash, Buffer.from(signed), { key: privateKey, ...options }).toString('base64url')}`;
}

const jwkOf = ({ publicKey }: Pair): Jwk => ({ ...publicKey.export({ format: 'jwk' }), kid: 'k' });

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });
const p1363 = { dsaEncoding: 'ieee-p1363' } as const;

/** Returns the subject, or the code of the problem. */
function outcomeOf(token: string): string {
  try {
    return readIdToken(token, [jwkOf(rsa)], expected).sub;
  } catch (error) {
    return error instanceof SignInProblem ? error.code : String(error);
  }
}

describe('an ID token', () => {
  it.each([
    ['RS256', rsa, { hash: 'sha256' }],
    ['RS512', rsa, { hash: 'sha512' }],
    ['PS256', rsa, { hash: 'sha256', options: { padding: 6, saltLength: 32 } }],
    ['ES256', ec('P-256'), { hash: 'sha256', options: p1363 }],
    ['ES384', ec('P-384'), { hash: 'sha384', options: p1363 }],
    ['ES512', ec('P-521'), { hash: 'sha512', options: p1363 }],
    ['EdDSA', generateKeyPairSync('ed25519'), { hash: null }],
  ])('signed by %s is believed, and by nobody else', (alg, pair, how) => {
    const token = tokenOf(alg, pair, how);
    expect(readIdToken(token, [jwkOf(pair)], expected).sub).toBe('s');
    const [head, , signature] = token.split('.');
    const forged = `${head}.${part({ ...claims, sub: 'other' })}.${signature}`;
    expect(() => readIdToken(forged, [jwkOf(pair)], expected)).toThrow('the signature of the ID token is wrong');
  });

  it('is not signed by a key that is too short, of another kind, or for something else', () => {
    const short = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const none = 'no key of the issuer fits';
    expect(() => readIdToken(tokenOf('RS256', short, { hash: 'sha256' }), [jwkOf(short)], expected)).toThrow(none);
    const token = tokenOf('RS256', rsa, { hash: 'sha256' });
    expect(() => readIdToken(token, [jwkOf(ec('P-256'))], expected)).toThrow(none);
    expect(() => readIdToken(token, [{ ...jwkOf(rsa), use: 'enc' }], expected)).toThrow(none);
    expect(() => readIdToken(token, [{ kty: 'RSA', kid: 'k' }, { kid: 'k' }], expected)).toThrow(none);
  });

  it.each([
    ['issuer', { iss: 'https://i.example/' }],
    ['audience', { aud: ['other'] }],
    ['authorized party', { aud: ['medley', 'other'] }],
    ['authorized party', { azp: 'other' }],
    ['nonce', { nonce: undefined }],
    ['subject', { sub: '' }],
    ['subject', { sub: 7 }],
    ['time', { exp: undefined }],
  ])('with the wrong %s is not believed (%o)', (what, change) => {
    const token = tokenOf('RS256', rsa, { hash: 'sha256' }, { ...claims, ...change });
    expect(() => readIdToken(token, [jwkOf(rsa)], expected)).toThrow(`the ID token has the wrong ${what}`);
  });

  it.each([
    [{ exp: now_s - 119 }, 's'],
    [{ exp: now_s - 121 }, 'clock'],
    [{ iat: now_s + 119 }, 's'],
    [{ iat: now_s + 121 }, 'clock'],
    [{ nbf: now_s + 121 }, 'clock'],
  ])('may be off by two minutes: %o is "%s"', (change, outcome) => {
    const token = tokenOf('RS256', rsa, { hash: 'sha256' }, { ...claims, ...change });
    expect(outcomeOf(token)).toBe(outcome);
  });

  it.each(['', 'a.b', 'a.b.c', `${part({ alg: 'RS256' })}.x.y`, `${part([])}.${part({})}.z`])('%j is none', (text) => {
    expect(() => readIdToken(text, [jwkOf(rsa)], expected)).toThrow(/ID token/);
  });
});
