import { describe, expect, it } from 'vitest';
import { readCatalogFile } from '../../src/catalog/file.ts';
import { signInOf } from '../../src/catalog/sign-in.ts';

const surroundings = {
  adapters: [],
  canServe: () => true,
  secret: (reference: string) => (reference === 'env:SET' ? 'x' : undefined),
};

const secret = 'client_id: a, client_secret: env:SET';

function read(sign_in: string) {
  return readCatalogFile(`version: 1\nsign_in: ${sign_in}\n`, 'medley.yaml', surroundings);
}

function problemsOf(sign_in: string): string[] {
  const reading = read(sign_in);
  const problems = reading.ok ? reading.warnings : reading.problems;
  return problems.map(({ severity, path, message }) => `${severity} ${path}: ${message}`);
}

function issuerOf(entry: string) {
  const reading = read(`{ issuers: { ${entry} } }`);
  return reading.ok ? signInOf(reading.content.sign_in).issuers[0] : undefined;
}

describe('sign_in', () => {
  it('has passwords and no issuers by default', () => {
    expect(signInOf(undefined)).toEqual({
      password: true,
      passkeys: true,
      operators_need_second_factor: false,
      issuers: [],
    });
  });

  it.each([
    [`google: { ${secret} }`, 'https://accounts.google.com', 'Google', 'oidc'],
    [`github: { ${secret} }`, 'https://github.com', 'GitHub', 'github'],
    [
      `microsoft: { ${secret}, tenant: 00000000-1111-2222-3333-444444444444 }`,
      'https://login.microsoftonline.com/00000000-1111-2222-3333-444444444444/v2.0',
      'Microsoft',
      'oidc',
    ],
    [
      `own: { ${secret}, issuer: "https://login.example.com/" }`,
      'https://login.example.com',
      'login.example.com',
      'oidc',
    ],
  ])('knows the address of %s', (entry, issuer, name, protocol) => {
    expect(issuerOf(entry)).toMatchObject({ issuer, name, protocol, newcomers: 'refused', verified_emails: false });
  });

  it('says what becomes of new people', () => {
    const account = 'acct_01k00000000000000000000000';
    expect(issuerOf(`google: { ${secret}, auto_create: account }`)?.newcomers).toBe('own_account');
    expect(issuerOf(`google: { ${secret}, auto_create: join, join: { account: ${account} } }`)?.newcomers).toEqual({
      account_id: account,
      role: 'viewer',
    });
  });

  it.each([
    ['{ password: false }', 'error sign_in.password: false would leave nobody a way in'],
    [`{ issuers: { own: { ${secret} } } }`, 'error sign_in.issuers.own: issuer is missing'],
    [`{ issuers: { microsoft: { ${secret} } } }`, 'error sign_in.issuers.microsoft: tenant is missing'],
    [`{ issuers: { google: { ${secret}, auto_create: join } } }`, 'error sign_in.issuers.google: join is missing'],
    [
      `{ issuers: { google: { ${secret}, join: { account: acct_01k00000000000000000000000 } } } }`,
      'error sign_in.issuers.google.join: needs auto_create: join',
    ],
    [
      `{ issuers: { a: { ${secret}, issuer: "https://x.example" }, b: { ${secret}, issuer: "https://x.example/" } } }`,
      'error sign_in.issuers.b: is the same issuer as a',
    ],
    [`{ issuers: { a: { ${secret}, issuer: "http://x.example" } } }`, 'warning sign_in.issuers.a.issuer: is not https'],
    [
      '{ issuers: { google: { client_id: a, client_secret: env:NOT_SET } } }',
      'warning sign_in.issuers.google.client_secret: the environment variable NOT_SET is not set: nobody signs in by google.',
    ],
    [
      `{ issuers: { microsoft: { ${secret}, tenant: 00000000-1111-2222-3333-444444444444, auto_create: account } } }`,
      'warning sign_in.issuers.microsoft.auto_create: does nothing',
    ],
  ])('%s is reported', (text, expected) => {
    expect(problemsOf(text)).toEqual([expect.stringContaining(expected)]);
  });

  it('of an issuer here needs no https', () => {
    expect(problemsOf(`{ issuers: { a: { ${secret}, issuer: "http://127.0.0.1:9000" } } }`)).toEqual([]);
  });
});
