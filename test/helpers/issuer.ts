import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readBytes } from '../../src/lib/read-bytes.ts';

/** A person of the imitated issuer. */
export type IssuerPerson = {
  sub: string;
  name?: string;
  email?: string;
  email_verified?: boolean | string;
};

/** Ways in which the issuer misbehaves. Each is one that a real one, or somebody between, could have. */
export type Misbehaviour =
  | 'wrong nonce'
  | 'wrong audience'
  | 'wrong issuer'
  | 'wrong signature'
  | 'unsigned'
  | 'signed with the secret'
  | 'expired'
  | 'from the future'
  | 'another authorized party'
  | 'no ID token'
  | 'old password'
  | 'code refused'
  | 'token endpoint 500'
  | 'token endpoint silent'
  | 'discovery 500'
  | 'discovery of another issuer'
  | 'userinfo of somebody else'
  | 'answers as another issuer';

export type IssuerImitation = {
  url: string;
  /** Of its secret, for `client_secret`. */
  readonly reference: string;
  /** The person who presses "Yes" there; undefined: they decline. */
  person: IssuerPerson | undefined;
  misbehaves: Misbehaviour | undefined;
  /** Answers the person's claims at userinfo only. */
  claims_at_userinfo: boolean;
  /** Queries of the authorization endpoint, in order. */
  readonly authorization_queries: URLSearchParams[];
  /** Makes new keys, as issuers do from time to time. */
  rotateKeys(): void;
  stop(): Promise<void>;
};

type Code = { query: URLSearchParams; person: IssuerPerson };

const client_id = 'medley';
const client_secret = 'a secret of the issuer: +/&%';

type Keys = { kid: string; private_key: KeyObject; public_key: KeyObject };

function newKeys(): Keys {
  const { privateKey: private_key, publicKey: public_key } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { kid: randomBytes(4).toString('hex'), private_key, public_key };
}

const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

type State = { self: IssuerImitation; keys: Keys; codes: Map<string, Code> };

type Json = (body: unknown, status?: number) => void;

/** An OpenID Connect issuer and GitHub's OAuth 2.0 on loopback, which checks what it is sent. */
export async function startIssuer(): Promise<IssuerImitation> {
  const server = createServer((request, response) => {
    void answer(state, request, response).catch((error: unknown) => {
      response.statusCode = 500;
      response.end(String(error));
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const folder = mkdtempSync(join(tmpdir(), 'medley-issuer-'));
  writeFileSync(join(folder, 'secret'), client_secret);
  const self: IssuerImitation = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reference: `file:${join(folder, 'secret')}`,
    person: undefined,
    misbehaves: undefined,
    claims_at_userinfo: false,
    authorization_queries: [],
    rotateKeys: () => (state.keys = newKeys()),
    stop: () =>
      new Promise((stopped) => {
        server.closeAllConnections();
        server.close(() => stopped());
        rmSync(folder, { recursive: true, force: true });
      }),
  };
  const state: State = { self, keys: newKeys(), codes: new Map() };
  return self;
}

async function answer(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { self, keys } = state;
  const { pathname, searchParams } = new URL(request.url ?? '/', self.url);
  const json: Json = (body, status = 200) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  switch (pathname) {
    case '/.well-known/openid-configuration':
      return self.misbehaves === 'discovery 500' ? json({}, 500) : json(discoveryOf(self));
    case '/keys':
      return json({ keys: [{ ...keys.public_key.export({ format: 'jwk' }), kid: keys.kid, use: 'sig' }] });
    case '/authorize':
    case '/login/oauth/authorize':
      return authorize(state, searchParams, response);
    case '/token':
    case '/login/oauth/access_token':
      return redeem(state, request, json);
    case '/userinfo':
    case '/api/v3/user':
    case '/api/v3/user/emails':
    case '/api/v3':
      return json(aboutBearer(self, pathname, request));
    default:
      return json({ error: 'not found' }, 404);
  }
}

function authorize({ self, codes }: State, query: URLSearchParams, response: ServerResponse): void {
  self.authorization_queries.push(query);
  const back = new URL(query.get('redirect_uri') ?? '');
  back.searchParams.set('state', query.get('state') ?? '');
  if (self.misbehaves === 'answers as another issuer') back.searchParams.set('iss', 'https://evil.example');
  if (self.person) {
    const code = randomBytes(8).toString('hex');
    codes.set(code, { query, person: self.person });
    back.searchParams.set('code', code);
  } else {
    back.searchParams.set('error', 'access_denied');
  }
  response.writeHead(302, { location: back.href });
  response.end();
}

async function redeem({ self, keys, codes }: State, request: IncomingMessage, json: Json): Promise<void> {
  const form = new URLSearchParams((await readBytes(request, 10_000)).toString());
  if (self.misbehaves === 'token endpoint silent') return;
  if (self.misbehaves === 'token endpoint 500') return json({}, 500);
  const code = codes.get(form.get('code') ?? '');
  codes.delete(form.get('code') ?? '');
  const challenge = createHash('sha256')
    .update(form.get('code_verifier') ?? '')
    .digest('base64url');
  const fits =
    code?.query.get('code_challenge') === challenge &&
    code.query.get('code_challenge_method') === 'S256' &&
    form.get('redirect_uri') === code.query.get('redirect_uri') &&
    isClient(request, form);
  if (!code || !fits || self.misbehaves === 'code refused') return json({ error: 'invalid_grant' }, 400);
  const access_token = code.person.sub;
  if (self.misbehaves === 'no ID token') return json({ access_token, token_type: 'Bearer' });
  return json({ access_token, token_type: 'Bearer', id_token: idTokenOf(self, keys, code) });
}

function aboutBearer({ person, url, misbehaves }: IssuerImitation, path: string, request: IncomingMessage): unknown {
  if (path === '/api/v3') return { current_user_url: `${url}/api/v3/user` };
  if (person === undefined || request.headers.authorization !== `Bearer ${person.sub}`) return {};
  const { email, email_verified } = person;
  if (path === '/api/v3/user') return { id: Number(person.sub), login: 'octo', name: person.name ?? null };
  if (path === '/api/v3/user/emails')
    return [
      { email: 'other@example.org', primary: false, verified: true },
      { email, primary: true, verified: email_verified === true },
    ];
  return misbehaves === 'userinfo of somebody else' ? { ...person, sub: 'somebody else' } : person;
}

function discoveryOf({ url, misbehaves }: IssuerImitation): object {
  return {
    issuer: misbehaves === 'discovery of another issuer' ? 'https://evil.example' : url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/keys`,
    userinfo_endpoint: `${url}/userinfo`,
  };
}

/** By basic authentication, as OpenID Connect has it by default, or in the form, as GitHub has it. */
function isClient(request: IncomingMessage, form: URLSearchParams): boolean {
  const basic = Buffer.from((request.headers.authorization ?? '').replace('Basic ', ''), 'base64').toString();
  const [id = '', secret = ''] = basic.split(':').map((part) => decodeURIComponent(part.replaceAll('+', '%20')));
  const credentials = basic === '' ? [form.get('client_id'), form.get('client_secret')] : [id, secret];
  return credentials[0] === client_id && credentials[1] === client_secret;
}

function idTokenOf(self: IssuerImitation, keys: Keys, { query, person }: Code): string {
  const { misbehaves, url, claims_at_userinfo } = self;
  const now = Math.floor(Date.now() / 1000);
  const shift = misbehaves === 'expired' ? -3_600 : misbehaves === 'from the future' ? 3_600 : 0;
  const claims = {
    iss: misbehaves === 'wrong issuer' ? 'https://evil.example' : url,
    aud: misbehaves === 'wrong audience' ? 'somebody-else' : client_id,
    ...(misbehaves === 'another authorized party' && { azp: 'somebody-else' }),
    nonce: misbehaves === 'wrong nonce' ? 'another' : query.get('nonce'),
    iat: now + shift,
    exp: now + shift + 300,
    ...(misbehaves === 'old password' && { auth_time: now - 86_400 }),
    ...(claims_at_userinfo ? { sub: person.sub } : person),
  };
  const alg = misbehaves === 'unsigned' ? 'none' : misbehaves === 'signed with the secret' ? 'HS256' : 'RS256';
  const signed = `${base64({ alg, kid: keys.kid })}.${base64(claims)}`;
  const by = misbehaves === 'wrong signature' ? newKeys() : keys;
  const signature = alg === 'none' ? '' : sign('sha256', Buffer.from(signed), by.private_key).toString('base64url');
  return `${signed}.${signature}`;
}
