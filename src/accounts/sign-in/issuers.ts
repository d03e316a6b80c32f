import { createHash } from 'node:crypto';
import { resolveSecret } from '../../config.ts';
import { isRecord } from '../../lib/is-record.ts';
import { GuardError, type Guard, type SendOptions } from '../../net/guard.ts';
import { readIdToken, type Claims, type Jwk } from './id-token.ts';
import { SignInProblem } from './problem.ts';
import type { SignInIssuer } from './settings.ts';

/**
 * Requests to issuers: OpenID Connect by the authorization code flow with PKCE, and GitHub's OAuth 2.0. All
 * requests go by the guarded connector; their addresses are the operator's choice, so they may be private.
 */

/** A person as an issuer knows them. */
export type Identity = {
  subject: string;
  name: string | undefined;
  /** In lower case. */
  email: string | undefined;
  email_verified: boolean;
  /** Time at which they gave their password there; undefined where the issuer does not say. */
  authenticated_at: Date | undefined;
};

/** One sign-in that is under way. */
export type Handshake = { redirect_uri: string; state: string; nonce: string; verifier: string; fresh: boolean };

export type Issuers = {
  /** The address at which the issuer asks who is there. Rejects with SignInProblem. */
  begin(issuer: SignInIssuer, handshake: Handshake): Promise<string>;
  /** Returns who that was. Rejects with SignInProblem. */
  identify(issuer: SignInIssuer, handshake: Handshake & { code: string; iss: string | undefined }): Promise<Identity>;
  /** Looks whether the issuer can be used. Rejects with SignInProblem. */
  examine(issuer: SignInIssuer): Promise<void>;
};

type Metadata = {
  /** As it writes itself: perhaps with a slash at the end, which the setting need not have. */
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
  jwks_uri: string;
  userinfo_endpoint: string | undefined;
  by_body: boolean;
  names_itself: boolean;
};

type Remembered<T> = { at_ms: number; value: Promise<T> };

type Memory = { metadata: Map<string, Remembered<Metadata>>; keys: Map<string, Remembered<Jwk[]>> };

type Parts = { guard: Guard; now(): Date; memory: Memory };

const google = 'https://accounts.google.com';

const lifetime_ms = 10 * 60_000;
/** Between two looks at the keys for a token whose key nobody knows. */
const key_wait_ms = 10_000;
const issuers_max = 50;
/** Time since somebody gave their password there, where a fresh sign-in was asked for. */
const fresh_ms = 10 * 60_000;

export function openIssuers(options: { guard: Guard; now(): Date }): Issuers {
  const parts: Parts = { ...options, memory: { metadata: new Map(), keys: new Map() } };
  return {
    begin: (issuer, handshake) =>
      issuer.protocol === 'github' ? beginAtGithub(issuer, handshake) : begin(parts, issuer, handshake),
    identify: (issuer, handshake) =>
      issuer.protocol === 'github' ? identifyAtGithub(parts, issuer, handshake) : identify(parts, issuer, handshake),
    examine: async (issuer) => {
      secretOf(issuer);
      if (issuer.protocol === 'github') await fetchJson(parts, githubApi(issuer), github_headers);
      else await keysOf(parts, await metadataOf(parts, issuer), { after_ms: lifetime_ms });
    },
  };
}

const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

function addressWith(endpoint: string, values: Record<string, string>): string {
  const url = new URL(endpoint);
  for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
  return url.href;
}

async function begin(parts: Parts, issuer: SignInIssuer, { fresh, ...handshake }: Handshake): Promise<string> {
  secretOf(issuer);
  const { authorization_endpoint } = await metadataOf(parts, issuer);
  return addressWith(authorization_endpoint, {
    response_type: 'code',
    client_id: issuer.client_id,
    redirect_uri: handshake.redirect_uri,
    scope: 'openid email profile',
    state: handshake.state,
    nonce: handshake.nonce,
    code_challenge: challengeOf(handshake.verifier),
    code_challenge_method: 'S256',
    ...(fresh && { prompt: 'login', max_age: '0' }),
  });
}

async function identify(
  parts: Parts,
  issuer: SignInIssuer,
  handshake: Handshake & { code: string; iss: string | undefined },
): Promise<Identity> {
  const metadata = await metadataOf(parts, issuer);
  const { iss } = handshake;
  if (iss === undefined ? metadata.names_itself : iss !== metadata.issuer)
    throw new SignInProblem('answer', 'the answer is of another issuer'); // RFC 9207
  const tokens = await redeem(parts, issuer, metadata, handshake);
  const claims = await claimsOf(parts, issuer, metadata, { token: tokens.id_token, nonce: handshake.nonce });
  const at = timeIn(claims['auth_time']);
  if (handshake.fresh && at && parts.now().getTime() - at.getTime() > fresh_ms)
    throw new SignInProblem('not_fresh', 'the issuer did not ask again');
  if (claims['email'] !== undefined || metadata.userinfo_endpoint === undefined) return identityOf(issuer, claims);
  const headers = { authorization: `Bearer ${tokens.access_token}` };
  const more = await fetchJson(parts, metadata.userinfo_endpoint, headers);
  if (!isRecord(more) || more['sub'] !== claims.sub)
    throw new SignInProblem('answer', 'userinfo is about somebody else');
  return identityOf(issuer, { ...more, ...claims });
}

function identityOf({ issuer, verified_emails }: SignInIssuer, claims: Claims): Identity {
  const { sub, name, email, email_verified } = claims;
  const address = emailIn(email);
  // Some write it as a text. Of addresses elsewhere Google knows only that they were proved once, to Google.
  const is_for_it = issuer !== google || claims['hd'] !== undefined || address?.endsWith('@gmail.com') === true;
  const says_verified = is_for_it && (email_verified === true || email_verified === 'true');
  return {
    subject: sub,
    name: nameIn(name),
    email: address,
    email_verified: address !== undefined && (verified_emails || says_verified),
    authenticated_at: timeIn(claims['auth_time']),
  };
}

/** A time in seconds, which no issuer has before 1970 or long after now. */
function timeIn(value: unknown): Date | undefined {
  return typeof value === 'number' && value >= 0 && value < 1e11 ? new Date(value * 1000) : undefined;
}

function nameIn(value: unknown): string | undefined {
  const name =
    typeof value === 'string'
      ? value
          .replaceAll(/\p{Cc}/gu, ' ')
          .trim()
          .slice(0, 100)
      : '';
  return name === '' ? undefined : name;
}

function emailIn(value: unknown): string | undefined {
  const email = typeof value === 'string' ? value.trim().toLowerCase() : '';
  return email.length <= 254 && /^[^\s\p{Cc}@]+@[^\s\p{Cc}@]+\.[^\s\p{Cc}@]+$/u.test(email) ? email : undefined;
}

async function claimsOf(
  parts: Parts,
  issuer: SignInIssuer,
  metadata: Metadata,
  { token, nonce }: { token: string; nonce: string },
): Promise<Claims> {
  const expected = { issuer: metadata.issuer, client_id: issuer.client_id, nonce, now: parts.now() };
  try {
    return readIdToken(token, await keysOf(parts, metadata, { after_ms: lifetime_ms }), expected);
  } catch (error) {
    if (!(error instanceof SignInProblem) || error.code !== 'unknown_key') throw error;
    const keys = await keysOf(parts, metadata, { after_ms: key_wait_ms }); // it may have new ones
    try {
      return readIdToken(token, keys, expected);
    } catch (again) {
      if (again instanceof SignInProblem && again.code === 'unknown_key')
        throw new SignInProblem('answer', again.message);
      throw again;
    }
  }
}

function secretOf({ client_secret }: SignInIssuer): string {
  const secret = resolveSecret(client_secret);
  if (secret === undefined) throw new SignInProblem('unreachable', `its secret (${client_secret}) is not set`);
  return secret;
}

/** Exchanges the code for tokens (RFC 6749, 4.1.3). */
async function redeem(
  parts: Parts,
  issuer: SignInIssuer,
  { token_endpoint, by_body }: Metadata,
  { code, verifier, redirect_uri }: { code: string; verifier: string; redirect_uri: string },
): Promise<{ id_token: string; access_token: string }> {
  const secret = secretOf(issuer);
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri,
    code_verifier: verifier,
    ...(by_body && { client_id: issuer.client_id, client_secret: secret }),
  });
  const pair = [issuer.client_id, secret]
    .map((text) => new URLSearchParams({ '': text }).toString().slice(1))
    .join(':');
  const answer = await postForm(parts, token_endpoint, form, {
    ...(!by_body && { authorization: `Basic ${Buffer.from(pair).toString('base64')}` }),
  });
  const { id_token, access_token } = answer;
  if (typeof id_token === 'string') return { id_token, access_token: String(access_token) };
  throw new SignInProblem('answer', `the token endpoint answered no ID token${errorIn(answer)}`);
}

function errorIn(answer: Record<string, unknown>): string {
  return typeof answer['error'] === 'string' ? `, but ${JSON.stringify(answer['error'].slice(0, 60))}` : '';
}

async function postForm(
  parts: Parts,
  url: string,
  form: URLSearchParams,
  headers: Record<string, string>,
): Promise<Record<string, unknown>> {
  const answer = await ask(parts, url, {
    method: 'POST',
    headers: { ...headers, accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    body: Buffer.from(form.toString()),
  });
  if (!isRecord(answer.json)) throw new SignInProblem('answer', `${new URL(url).host} answered no JSON`);
  // A code that was used, or a wrong secret: RFC 6749, 5.2
  if (answer.status !== 200 && answer.status !== 400 && answer.status !== 401) throw unusable(url, answer.status);
  return answer.json;
}

/** The discovery document (OpenID Connect Discovery 1.0, 4). */
function metadataOf(parts: Parts, { issuer }: SignInIssuer): Promise<Metadata> {
  return remembered(parts, parts.memory.metadata, issuer, lifetime_ms, async () => {
    const document = await fetchJson(parts, `${issuer}/.well-known/openid-configuration`);
    if (!isRecord(document)) throw new SignInProblem('unreachable', `the discovery document of ${issuer} is none`);
    const name = String(document['issuer']);
    if (name.replace(/\/+$/, '') !== issuer)
      throw new SignInProblem('unreachable', `the discovery document of ${issuer} is of another issuer`);
    const methods = document['token_endpoint_auth_methods_supported'];
    return {
      issuer: name,
      authorization_endpoint: urlIn(document, 'authorization_endpoint'),
      token_endpoint: urlIn(document, 'token_endpoint'),
      jwks_uri: urlIn(document, 'jwks_uri'),
      userinfo_endpoint: document['userinfo_endpoint'] === undefined ? undefined : urlIn(document, 'userinfo_endpoint'),
      by_body:
        Array.isArray(methods) && !methods.includes('client_secret_basic') && methods.includes('client_secret_post'),
      names_itself: document['authorization_response_iss_parameter_supported'] === true,
    };
  });
}

function urlIn(document: Record<string, unknown>, name: string): string {
  const value = document[name];
  if (typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)) return value;
  throw new SignInProblem('unreachable', `the discovery document has no ${name}`);
}

function keysOf(parts: Parts, { jwks_uri }: Metadata, { after_ms }: { after_ms: number }): Promise<Jwk[]> {
  return remembered(parts, parts.memory.keys, jwks_uri, after_ms, async () => {
    const set = await fetchJson(parts, jwks_uri);
    const keys = isRecord(set) ? set['keys'] : undefined;
    if (!Array.isArray(keys)) throw new SignInProblem('unreachable', `${jwks_uri} has no keys`);
    return keys.filter(isRecord).slice(0, 100);
  });
}

/** Returns the last answer if it is younger than this, else asks again. Failures are not remembered. */
function remembered<T>(
  { now }: Parts,
  memory: Map<string, Remembered<T>>,
  name: string,
  after_ms: number,
  make: () => Promise<T>,
): Promise<T> {
  const now_ms = now().getTime();
  const before = memory.get(name);
  if (before && Math.abs(now_ms - before.at_ms) < after_ms) return before.value;
  if (memory.size >= issuers_max) memory.clear();
  const value = make();
  memory.set(name, { at_ms: now_ms, value });
  value.catch(() => {
    if (memory.get(name)?.value === value) memory.delete(name);
  });
  return value;
}

async function fetchJson(parts: Parts, url: string, headers: Record<string, string> = {}): Promise<unknown> {
  const { status, json } = await ask(parts, url, {
    method: 'GET',
    headers: { accept: 'application/json', ...headers },
  });
  if (status !== 200) throw unusable(url, status);
  return json;
}

const unusable = (url: string, status: number) =>
  new SignInProblem('unreachable', `${new URL(url).host} answered ${status}`);

async function ask(
  { guard }: Parts,
  url: string,
  request: Pick<SendOptions, 'method' | 'headers' | 'body'>,
): Promise<{ status: number; json: unknown }> {
  const rules = { allow: [], allow_private: true };
  const limits = { connect_timeout_ms: 5_000, timeout_ms: 10_000, answer_bytes_max: 512_000 };
  try {
    const { status, answer } = await guard.send(url, { rules, ...limits, ...request });
    return { status, json: jsonIn(answer) };
  } catch (error) {
    if (!(error instanceof GuardError)) throw error;
    throw new SignInProblem('unreachable', `${new URL(url).host}: ${error.message}`);
  }
}

function jsonIn(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

const github_headers = { accept: 'application/vnd.github+json', 'user-agent': 'Medley' };

/** That of GitHub Enterprise Server is below its own address. */
function githubApi({ issuer }: SignInIssuer): string {
  return issuer === 'https://github.com' ? 'https://api.github.com' : `${issuer}/api/v3`;
}

async function beginAtGithub(issuer: SignInIssuer, handshake: Handshake): Promise<string> {
  const { redirect_uri, state, verifier, fresh } = handshake;
  secretOf(issuer);
  return addressWith(`${issuer.issuer}/login/oauth/authorize`, {
    client_id: issuer.client_id,
    redirect_uri,
    scope: 'read:user user:email',
    state,
    code_challenge: challengeOf(verifier),
    code_challenge_method: 'S256',
    ...(fresh && { prompt: 'select_account' }), // it cannot be made to ask for the password
  });
}

/** GitHub answers 200 for everything, and has the proved addresses in a list of their own. */
async function identifyAtGithub(
  parts: Parts,
  issuer: SignInIssuer,
  { code, verifier, redirect_uri }: Handshake & { code: string },
): Promise<Identity> {
  const { client_id } = issuer;
  const form = { client_id, client_secret: secretOf(issuer), code, redirect_uri, code_verifier: verifier };
  const tokens = await postForm(parts, `${issuer.issuer}/login/oauth/access_token`, new URLSearchParams(form), {});
  const { access_token } = tokens;
  if (typeof access_token !== 'string') throw new SignInProblem('answer', `GitHub gave no token${errorIn(tokens)}`);
  const headers = { ...github_headers, authorization: `Bearer ${access_token}` };
  const [user, emails] = await Promise.all([
    fetchJson(parts, `${githubApi(issuer)}/user`, headers),
    fetchJson(parts, `${githubApi(issuer)}/user/emails`, headers),
  ]);
  if (!isRecord(user) || !Number.isSafeInteger(user['id'])) throw new SignInProblem('answer', 'GitHub named nobody');
  const primary = Array.isArray(emails) ? emails.filter(isRecord).find((each) => each['primary'] === true) : undefined;
  const email = emailIn(primary?.['email']);
  return {
    subject: String(user['id']),
    name: nameIn(user['name']) ?? nameIn(user['login']),
    email,
    email_verified: email !== undefined && (issuer.verified_emails || primary?.['verified'] === true),
    authenticated_at: undefined,
  };
}
