import { describe, expect, test } from 'vitest';
import { AssertionError } from '../../src/lib/assert.ts';
import { makeLink, verifyLink } from '../../src/storage/links.ts';
import { newKey } from './samples.ts';

const secret = 'a secret of the tests';
const expires_s = 1_800_000_000;
const before_ms = expires_s * 1000 - 1;
const key = newKey('mp4', 3);
const link = makeLink(secret, { base_url: 'https://api.example.com', key, expires_at_ms: expires_s * 1000 + 999 });

/** The claim of a request for this address. */
function claimOf(url: string) {
  const { pathname, searchParams } = new URL(url);
  return { key: pathname.replace('/files/', ''), exp: searchParams.get('exp'), sig: searchParams.get('sig') };
}

describe('makeLink', () => {
  test('returns an address below the base address that ends like a file', () => {
    expect(link.url).toMatch(
      /^https:\/\/api\.example\.com\/files\/acct_\w{26}\/task_\w{26}\/3\.mp4\?exp=1800000000&sig=[\w-]{43}$/,
    );
  });

  test('contains the second at which the link ends', () => {
    expect(link.expires_at).toBe(new Date(expires_s * 1000).toISOString());
  });

  test('keeps a path in the base address with or without a slash', () => {
    const at = (base_url: string) => makeLink(secret, { base_url, key, expires_at_ms: 1e12 }).url;
    expect(at('http://host/medley/')).toBe(at('http://host/medley'));
    expect(at('http://host/medley')).toContain(`http://host/medley/files/${key}?`);
  });

  test.each([
    ['a key that is none', { key: '../secret' }],
    ['no time', { expires_at_ms: Number.NaN }],
    ['a time before 1970', { expires_at_ms: -1 }],
    ['an endless time', { expires_at_ms: Infinity }],
  ])('refuses %s', (_, wrong) => {
    const file = { base_url: 'http://host', key, expires_at_ms: 1e12, ...wrong };
    expect(() => makeLink(secret, file)).toThrow(AssertionError);
  });

  test.each(['', 'short'])('refuses the secret %j', (empty) => {
    expect(() => makeLink(empty, { base_url: 'http://host', key, expires_at_ms: 1e12 })).toThrow(AssertionError);
  });
});

describe('verifyLink', () => {
  test('returns the time until which a link is valid', () => {
    expect(verifyLink(secret, claimOf(link.url), before_ms)).toBe(expires_s);
  });

  test('refuses a link from its last second on', () => {
    expect(verifyLink(secret, claimOf(link.url), expires_s * 1000)).toBeUndefined();
  });

  test('refuses a link under another secret', () => {
    expect(verifyLink(`${secret}.`, claimOf(link.url), before_ms)).toBeUndefined();
  });

  test('refuses every change of every character of key, expiry and signature', () => {
    const claim = claimOf(link.url);
    const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_+/= .%&\n\0é';
    for (const part of ['key', 'exp', 'sig'] as const) {
      const value = claim[part] ?? '';
      for (let at = 0; at <= value.length; at++) {
        for (const other of ['', ...alphabet]) {
          for (const changed of [
            value.slice(0, at) + other + value.slice(at + 1),
            value.slice(0, at) + other + value.slice(at),
          ]) {
            if (changed === value) continue;
            expect(verifyLink(secret, { ...claim, [part]: changed }, 0), `${part}: ${changed}`).toBeUndefined();
          }
        }
      }
    }
  });

  test('refuses a later expiry under the same signature, in any spelling', () => {
    const claim = claimOf(link.url);
    for (const exp of [
      '1800000001',
      '01800000000',
      '1800000000.0',
      '1.8e9',
      '+1800000000',
      ' 1800000000',
      '0x6b49d200',
      '',
    ]) {
      expect(verifyLink(secret, { ...claim, exp }, 0), `${exp}`).toBeUndefined();
    }
  });

  test.each([undefined, null, 1_800_000_000, ['1800000000'], ['1800000000', '1800000000'], {}])(
    'refuses the expiry %j',
    (exp) => {
      expect(verifyLink(secret, { ...claimOf(link.url), exp }, 0)).toBeUndefined();
    },
  );

  test.each([undefined, null, 0, [claimOf(link.url).sig], {}])('refuses the signature %j', (sig) => {
    expect(verifyLink(secret, { ...claimOf(link.url), sig }, 0)).toBeUndefined();
  });

  test('refuses the signature of another file', () => {
    const other = makeLink(secret, { base_url: 'http://host', key: newKey('mp4', 3), expires_at_ms: expires_s * 1000 });
    expect(verifyLink(secret, { ...claimOf(link.url), sig: claimOf(other.url).sig }, 0)).toBeUndefined();
  });
});
