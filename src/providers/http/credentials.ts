import { createHash, createHmac } from 'node:crypto';
import type { Credentials, ProviderConfig } from '../../catalog/model.ts';
import { systemClock } from '../../lib/clock.ts';
import { NotStarted, type UpstreamParts } from '../provider.ts';
import type { Authorize } from './authorize.ts';
import { openHmac } from './hmac-signature.ts';
import { googleToken } from './google-tokens.ts';
import { openTencent } from './tencent-signature.ts';
import { openVolcengine } from './volcengine-signature.ts';
import { openTokenRequests, type AskToken, type Token } from './token-request.ts';

/** Opens credentials that are more than a key; undefined if the provider has none. */
export function openCredentials(
  config: ProviderConfig,
  { guard, clock = systemClock }: UpstreamParts,
): Authorize | undefined {
  const { credentials } = config;
  if (!credentials) return undefined;
  const now = () => clock.now();
  const askToken = openTokenRequests(config, guard, now);
  switch (credentials.kind) {
    case 'aws':
      return openAws(credentials, now);
    case 'google':
      return withBearer(googleToken(credentials, askToken, now), now);
    case 'oauth':
      return withBearer(oauthToken(credentials, askToken), now);
    case 'tencent':
      return openTencent(credentials, now);
    case 'volcengine':
      return openVolcengine(credentials, now);
    case 'hmac':
      return openHmac(credentials, now);
  }
}

type Now = () => number;

/** A token is not used in its last minute: a request takes time, and clocks differ. */
const spare_ms = 60_000;

/** Requests at the same moment share one question for a token; one that failed is asked for again by the next. */
function withBearer(ask: () => Promise<Token>, now: Now): Authorize {
  let token: Token | undefined;
  let asking: Promise<Token> | undefined;
  const current = async () => {
    if (token && now() < token.until_ms - spare_ms) return token;
    asking ??= ask().finally(() => (asking = undefined));
    return (token = await asking);
  };
  return async ({ headers }) => ({ headers: { ...headers, authorization: `Bearer ${(await current()).text}` } });
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
function openAws(
  { region, service, access_key_id, secret_access_key }: Credentials & { kind: 'aws' },
  now: Now,
): Authorize {
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
      const signer = await opened;
      const request = {
        method,
        protocol,
        hostname,
        ...(port !== '' && { port: Number(port) }),
        path: pathname,
        query,
        headers: { ...headers, host },
        body,
      };
      const signed = await signer.sign(request, { signingDate: new Date(now()) });
      return { headers: signed.headers };
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
