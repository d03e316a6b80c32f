import { createHash, createHmac, createPrivateKey, createSign, type KeyObject } from 'node:crypto';
import type { Credentials, ProviderConfig } from '../../catalog/model.ts';
import { isObject } from '../../catalog/model.ts';
import type { Guard } from '../../net/guard.ts';
import { NotStarted } from '../provider.ts';
import { openTokenRequests, type AskToken, type Token } from './token-request.ts';

/** A request as it is about to be sent; `path` is with its query. */
export type Outgoing = {
  method: string;
  origin: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
};

/** The headers of a request with those that prove who sends it. Throws NotStarted: without them nothing is sent. */
export type Authorize = (request: Outgoing) => Promise<Record<string, string>>;

/** Opens credentials that are more than a key; undefined if the provider has none. */
export function openCredentials(config: ProviderConfig, guard: Guard): Authorize | undefined {
  const { credentials } = config;
  if (!credentials) return undefined;
  const askToken = openTokenRequests(config, guard);
  switch (credentials.kind) {
    case 'aws':
      return openAws(credentials);
    case 'google':
      return withBearer(googleToken(credentials));
    case 'oauth':
      return withBearer(oauthToken(credentials, askToken));
  }
}

/** A token is not used in its last minute: a request takes time, and clocks differ. */
const spare_ms = 60_000;

/** Requests at the same moment share one question for a token; one that failed is asked for again by the next. */
function withBearer(ask: () => Promise<Token>): Authorize {
  let token: Token | undefined;
  let asking: Promise<Token> | undefined;
  const current = async () => {
    if (token && Date.now() < token.until_ms - spare_ms) return token;
    asking ??= ask().finally(() => (asking = undefined));
    return (token = await asking);
  };
  return async ({ headers }) => ({ ...headers, authorization: `Bearer ${(await current()).text}` });
}

const google_lifetime_s = 3_600;

/**
 * Google takes tokens that a service account signs itself: a JWT with the scope, for an hour
 * (google.aip.dev/auth/4111, November 2026).
 */
function googleToken({ service_account, scope }: Credentials & { kind: 'google' }): () => Promise<Token> {
  let account: { email: string; key_id: string; key: KeyObject } | undefined;
  return async () => {
    account ??= readAccount(service_account);
    const now_s = Math.floor(Date.now() / 1000);
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

/** The client credentials grant of OAuth 2.0 (RFC 6749, 4.4): Microsoft Entra and many gateways. */
function oauthToken(
  { token_url, client_id, client_secret, scope }: Credentials & { kind: 'oauth' },
  askToken: AskToken,
): () => Promise<Token> {
  return () => {
    const form = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret });
    if (scope !== undefined) form.set('scope', scope);
    return askToken(token_url, { form });
  };
}

/** Signature version 4 of AWS: Bedrock and whatever else is behind it. Its own library signs. */
function openAws({ region, service, access_key_id, secret_access_key }: Credentials & { kind: 'aws' }): Authorize {
  const opened = (async () => {
    const [{ SignatureV4 }, { S3Client }] = await Promise.all([
      import('@smithy/signature-v4'),
      import('@aws-sdk/client-s3'),
    ]);
    const is_own = access_key_id !== undefined && secret_access_key !== undefined;
    const own = { accessKeyId: access_key_id ?? '', secretAccessKey: secret_access_key ?? '' };
    // Any client of AWS has the chain of environment, profile and role, and keeps what it finds until that ends.
    const { credentials: chain } = new S3Client({ region }).config;
    return new SignatureV4({ region, service, sha256: Sha256, credentials: is_own ? own : chain });
  })();
  opened.catch(() => {}); // whoever signs says it
  return async ({ method, origin, path, headers, body }) => {
    const url = new URL(origin + path);
    const query = Object.fromEntries([...url.searchParams.keys()].map((name) => [name, url.searchParams.getAll(name)]));
    const { protocol, hostname, port, host, pathname } = url;
    try {
      const signed = await (
        await opened
      ).sign({
        method,
        protocol,
        hostname,
        ...(port !== '' && { port: Number(port) }),
        path: pathname,
        query,
        headers: { ...headers, host },
        body,
      });
      return signed.headers;
    } catch (error) {
      throw new NotStarted(
        'rejected_credentials',
        `the request could not be signed: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  };
}

/** SHA-256, or its HMAC with a key, as that library wants it. */
class Sha256 {
  readonly #hash;

  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = key === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(key));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error('a hash is used once');
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof data === 'string') return Buffer.from(data);
  return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
}
