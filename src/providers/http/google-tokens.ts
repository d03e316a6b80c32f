import { createPrivateKey, createSign, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isObject, type Credentials, type JsonObject } from '../../catalog/model.ts';
import { NotStarted } from '../provider.ts';
import type { AskToken, Token } from './token-request.ts';

/** Tokens for Google's clouds: of a service account's own key, or by an identity that another provider vouches for. */

const google_lifetime_s = 3_600;

/**
 * Google takes tokens that a service account signs itself: a JWT with the scope, for an hour
 * (google.aip.dev/auth/4111, November 2026).
 */
function serviceAccountToken(service_account: string, scope: string, now: () => number): () => Promise<Token> {
  let account: { email: string; key_id: string; key: KeyObject } | undefined;
  return async () => {
    account ??= readAccount(service_account);
    const now_s = Math.floor(now() / 1000);
    const { email, key_id, key } = account;
    const head = { alg: 'RS256', typ: 'JWT', kid: key_id };
    const claims = { iss: email, sub: email, scope, iat: now_s, exp: now_s + google_lifetime_s };
    const text = [head, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
    const signature = createSign('RSA-SHA256').update(text).sign(key, 'base64url');
    return { text: `${text}.${signature}`, until_ms: (now_s + google_lifetime_s) * 1000 };
  };
}

function readAccount(text: string): { email: string; key_id: string; key: KeyObject } {
  try {
    const account: unknown = JSON.parse(text);
    if (isObject(account)) {
      const { client_email, private_key_id, private_key } = account;
      if (typeof client_email === 'string' && typeof private_key === 'string') {
        const key_id = typeof private_key_id === 'string' ? private_key_id : '';
        return { email: client_email, key_id, key: createPrivateKey(private_key) };
      }
    }
  } catch {
    // said below, without a word of the key
  }
  throw new NotStarted('rejected_credentials', 'service_account is no JSON of a Google service account with its key');
}

/** Scope of the token by which a service account is impersonated. */
const cloud_scope = 'https://www.googleapis.com/auth/cloud-platform';

/**
 * Workload identity federation (google.aip.dev/auth/4117, and google-auth-library 10, November 2026): a token of another
 * identity provider is exchanged at Google's STS, and that, if the file says so, for one of a service account.
 */
function externalAccountToken(text: string, scope: string, askToken: AskToken): () => Promise<Token> {
  let account: ExternalAccount | undefined;
  return async () => {
    account ??= readExternal(text);
    const { audience, subject_token_type, token_url, impersonation_url, lifetime_s, source } = account;
    const form = new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience,
      scope: impersonation_url === undefined ? scope : cloud_scope,
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      subject_token: await subjectToken(source),
      subject_token_type,
    });
    const exchanged = await askToken(token_url, { form });
    if (impersonation_url === undefined) return exchanged;
    const json = { scope: scope.split(' '), lifetime: `${lifetime_s}s` };
    const headers = { authorization: `Bearer ${exchanged.text}` };
    return askToken(impersonation_url, { json, headers }, { token: 'accessToken', until: 'expireTime' });
  };
}

type ExternalAccount = {
  audience: string;
  subject_token_type: string;
  token_url: string;
  impersonation_url: string | undefined;
  lifetime_s: number;
  source: Source;
};

/** The place of the token of the other identity provider; `field` in JSON, else it is the whole text. */
type Source = { place: { file: string } | { url: string; headers: Record<string, string> }; field: string | undefined };

function readExternal(text: string): ExternalAccount {
  const account = parsed(text);
  const { audience, subject_token_type, token_url, credential_source: source } = account;
  const impersonation_url = account['service_account_impersonation_url'];
  const impersonation = account['service_account_impersonation'];
  const lifetime = isObject(impersonation) ? impersonation['token_lifetime_seconds'] : undefined;
  if (
    account['type'] !== 'external_account' ||
    typeof audience !== 'string' ||
    typeof subject_token_type !== 'string' ||
    !isUrl(token_url) ||
    (impersonation_url !== undefined && !isUrl(impersonation_url)) ||
    !isObject(source)
  )
    throw unusable('is no JSON of an external account, as Google makes it for workload identity federation');
  return {
    audience,
    subject_token_type,
    token_url,
    impersonation_url,
    lifetime_s: typeof lifetime === 'number' ? lifetime : google_lifetime_s,
    source: readSource(source),
  };
}

function parsed(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function isUrl(value: unknown): value is string {
  return typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value);
}

function readSource({ file, url, headers, format }: JsonObject): Source {
  const { type = 'text', subject_token_field_name } = isObject(format) ? format : {};
  const field = type === 'json' && typeof subject_token_field_name === 'string' ? subject_token_field_name : undefined;
  if (type !== 'text' && field === undefined)
    throw unusable('has a credential_source without subject_token_field_name');
  if (typeof file === 'string') return { place: { file }, field };
  if (!isUrl(url)) throw unusable('must have a credential_source with file or url: others are not read');
  const own = Object.entries(isObject(headers) ? headers : {}).map(([name, value]) => [name, String(value)] as const);
  return { place: { url, headers: Object.fromEntries(own) }, field };
}

const source_limit_ms = 10_000;

/** Reads the other provider's token anew each time: it is replaced long before ours ends. */
async function subjectToken({ place, field }: Source): Promise<string> {
  let text: string;
  try {
    text = 'file' in place ? await readFile(place.file, 'utf8') : await fetchText(place);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new NotStarted('unavailable', `the token of the other identity provider could not be read: ${problem}`);
  }
  const value = field === undefined ? text.trim() : parsed(text)[field];
  if (typeof value === 'string' && value !== '') return value;
  throw unusable('has a credential_source in which there is no token');
}

/** The machine's own metadata service may be meant, so this is asked without a proxy and without a check of its address. */
async function fetchText({ url, headers }: { url: string; headers: Record<string, string> }): Promise<string> {
  const answer = await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(source_limit_ms) });
  if (answer.ok) return answer.text();
  throw new Error(`${new URL(url).host} answered ${answer.status}`);
}

function unusable(problem: string): NotStarted {
  return new NotStarted('rejected_credentials', `external_account ${problem}`);
}

/** Opens the tokens of either kind. */
export function googleToken(
  credentials: Credentials & { kind: 'google' },
  askToken: AskToken,
  now: () => number,
): () => Promise<Token> {
  const { scope } = credentials;
  return 'external_account' in credentials
    ? externalAccountToken(credentials.external_account, scope, askToken)
    : serviceAccountToken(credentials.service_account, scope, now);
}
