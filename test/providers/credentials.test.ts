import { createHash, createHmac, generateKeyPairSync, verify } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openGuard } from '../../src/net/guard.ts';
import type { Credentials, ProviderConfig } from '../../src/catalog/model.ts';
import { gemini } from '../../src/providers/adapters/gemini/adapter.ts';
import { openai } from '../../src/providers/adapters/openai/adapter.ts';
import { NotStarted } from '../../src/providers/provider.ts';
import { errorsIn, problemLines } from '../catalog/problem-lines.ts';
import { callOf, textOf } from './upstreams.ts';

type Seen = { url: string; headers: IncomingMessage['headers']; body: string };

const seen: Seen[] = [];
let token: { status: number; body: object } = { status: 200, body: {} };
const tokens_asked = () => seen.filter(({ url }) => url === '/token').length;
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => {
      seen.push({ url: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() });
      const { status, body } = request.url === '/token' ? token : { status: 200, body: { hello: 1 } };
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
});

let origin = '';
const guard = openGuard();
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const configOf = (credentials: Credentials, path = '/openai/v1'): ProviderConfig => ({
  name: 'p',
  adapter: 'openai',
  base_url: origin + path,
  allow_private: true,
  credentials,
  query: { v: 'a b/ü' },
});

async function ask(credentials: Credentials): Promise<Seen> {
  const provider = openai.openChat(configOf(credentials), { guard });
  expect(await textOf(provider, callOf('completions'))).toBe('{"hello":1}');
  await provider.close?.();
  const last = seen.at(-1);
  if (!last) throw new Error('the upstream was asked');
  return last;
}

describe('requests that are signed for AWS', () => {
  const credentials: Credentials = {
    kind: 'aws',
    region: 'eu-central-1',
    service: 'bedrock',
    access_key_id: 'AKIDEXAMPLE',
    secret_access_key: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  };

  /** Signature version 4, written anew from its description by AWS. */
  function signatureOf({ url, headers, body }: Seen, signed_names: string[], secret: string): string {
    const hex = (text: string) => createHash('sha256').update(text).digest('hex');
    const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
    const { pathname, searchParams } = new URL(url, origin);
    const encode = (text: string) =>
      encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
    const query = [...searchParams]
      .map(([name, value]) => `${encode(name)}=${encode(value)}`)
      .toSorted()
      .join('&');
    const lines = signed_names.map((name) => `${name}:${String(headers[name]).trim()}\n`).join('');
    const canonical = ['POST', pathname, query, lines, signed_names.join(';'), hex(body)].join('\n');
    const time = String(headers['x-amz-date']);
    const scope = `${time.slice(0, 8)}/eu-central-1/bedrock/aws4_request`;
    const text = ['AWS4-HMAC-SHA256', time, scope, hex(canonical)].join('\n');
    const key = ['eu-central-1', 'bedrock', 'aws4_request'].reduce<Buffer>(
      (so_far, part) => mac(so_far, part),
      mac(`AWS4${secret}`, time.slice(0, 8)),
    );
    return createHmac('sha256', key).update(text).digest('hex');
  }

  it('have the signature that AWS computes, over their query and their body', async () => {
    const request = await ask(credentials);
    const match =
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-central-1\/bedrock\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
        request.headers.authorization ?? '',
      );
    const names = match?.[1]?.split(';') ?? [];
    expect(names).toEqual(expect.arrayContaining(['host', 'x-amz-date']));
    expect(match?.[2]).toBe(signatureOf(request, names, credentials.secret_access_key ?? ''));
  });
});

describe('requests that are signed for AWS without keys in the file', () => {
  it('have those of the environment', async () => {
    process.env['AWS_ACCESS_KEY_ID'] = 'AKIDOFENV';
    process.env['AWS_SECRET_ACCESS_KEY'] = 'secret';
    try {
      const { headers } = await ask({ kind: 'aws', region: 'eu-central-1', service: 'bedrock' });
      expect(headers.authorization).toContain('Credential=AKIDOFENV/');
    } finally {
      delete process.env['AWS_ACCESS_KEY_ID'];
      delete process.env['AWS_SECRET_ACCESS_KEY'];
    }
  });
});

describe('tokens of a Google service account', () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const account = {
    client_email: 'medley@example.iam.gserviceaccount.com',
    private_key_id: 'key-1',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  };
  const credentials: Credentials = { kind: 'google', service_account: JSON.stringify(account), scope: 'cloud' };

  it('are signed by the account itself, for an hour, and reach Vertex AI by its own paths', async () => {
    const base = '/v1/projects/p/locations/l/publishers/google';
    const clock = { now: () => Date.parse('2027-07-15T10:12:47.890Z') }; // that of the service, whatever the machine has
    const provider = gemini.openChat(configOf(credentials, base), { guard, clock });
    await textOf(provider, callOf('gemini', { model: 'gemini-3.1-pro' }));
    await provider.close?.();
    const request = seen.at(-1);
    expect(request?.url).toBe(`${base}/models/gemini-3.1-pro:generateContent?v=a+b%2F%C3%BC`);
    const [head = '', claims = '', signature = ''] =
      request?.headers.authorization?.replace('Bearer ', '').split('.') ?? [];
    expect(verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(signature, 'base64url'))).toBe(
      true,
    );
    expect(JSON.parse(Buffer.from(head, 'base64url').toString())).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'key-1' });
    const { iss, sub, scope, iat, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString());
    expect(iat).toBe(1_815_646_367);
    expect({ iss, sub, scope, lifetime: exp - iat }).toEqual({
      iss: account.client_email,
      sub: account.client_email,
      scope: 'cloud',
      lifetime: 3_600,
    });
  });

  it.each(['', '{', '{}', '{"client_email":"a","private_key":"b"}'])(
    'cannot be made of %j, which is said without the key, before anything is sent',
    async (service_account) => {
      const before = seen.length;
      const error = await ask({ ...credentials, service_account }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(NotStarted);
      expect(error).toMatchObject({ reason: 'rejected_credentials', message: expect.not.stringContaining('BEGIN') });
      expect(seen).toHaveLength(before);
    },
  );
});

describe('tokens by OAuth', () => {
  const credentials = (): Credentials => ({
    kind: 'oauth',
    token_url: `${origin}/token`,
    client_id: 'client',
    client_secret: 'shh&=',
    scope: 'https://cognitiveservices.azure.com/.default',
  });

  it('are asked for once for many requests, and again when they end', async () => {
    token = { status: 200, body: { access_token: 'first', expires_in: 3_600 } };
    const provider = openai.openChat(configOf(credentials()), { guard });
    const before = tokens_asked();
    await Promise.all([1, 2, 3].map(() => textOf(provider, callOf('completions'))));
    await textOf(provider, callOf('completions'));
    expect(tokens_asked()).toBe(before + 1);
    const request = seen.find(({ url }) => url === '/token');
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
      grant_type: 'client_credentials',
      client_id: 'client',
      client_secret: 'shh&=',
      scope: 'https://cognitiveservices.azure.com/.default',
    });
    expect(seen.at(-1)?.headers.authorization).toBe('Bearer first');
    await provider.close?.();
    token = { status: 200, body: { access_token: 'short', expires_in: 30 } };
    const short = openai.openChat(configOf(credentials()), { guard });
    await textOf(short, callOf('completions'));
    await textOf(short, callOf('completions'));
    expect(tokens_asked()).toBe(before + 3);
    await short.close?.();
  });

  it('end by the clock of the service', async () => {
    token = { status: 200, body: { access_token: 'an hour', expires_in: 3_600 } };
    let now_ms = Date.parse('2027-07-15T10:12:47.890Z');
    const provider = openai.openChat(configOf(credentials()), { guard, clock: { now: () => now_ms } });
    const before = tokens_asked();
    await textOf(provider, callOf('completions'));
    now_ms += 3_500_000;
    await textOf(provider, callOf('completions'));
    expect(tokens_asked()).toBe(before + 1);
    now_ms += 60_000;
    await textOf(provider, callOf('completions'));
    expect(tokens_asked()).toBe(before + 2);
    await provider.close?.();
  });

  it.each([
    [{ status: 401, body: { error: 'invalid_client' } }, 'rejected_credentials'],
    [{ status: 503, body: {} }, 'unavailable'],
    [{ status: 200, body: { access_token: '' } }, 'rejected_credentials'],
  ])('that are refused leave the request unsent, and the next one asks again: %j', async (answer, reason) => {
    token = answer;
    const provider = openai.openChat(configOf(credentials()), { guard });
    const error = await textOf(provider, callOf('completions')).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'NotStarted', reason, message: expect.not.stringContaining('shh') });
    token = { status: 200, body: { access_token: 'second' } };
    expect(await textOf(provider, callOf('completions'))).toBe('{"hello":1}');
    await provider.close?.();
  });
});

describe('credentials in a configuration', () => {
  const file = (more: string) => `version: 1\nproviders:\n  p: { adapter: mock, ${more} }\nmodels: []\n`;

  it('are one kind, in place of a key, with their secrets elsewhere', () => {
    const both = 'credentials: { aws: { region: r }, google: { service_account: env:SET } }';
    expect(errorsIn(file(both)).join()).toContain(
      'providers.p.credentials: must be one of aws, google, oauth, tencent, volcengine and hmac.',
    );
    expect(errorsIn(file('api_key: env:SET, credentials: { aws: { region: r } }')).join()).toContain(
      'stand in place of api_key: give one of the two.',
    );
    expect(errorsIn(file('credentials: { aws: { region: r, access_key_id: env:SET } }')).join()).toContain(
      'access_key_id and secret_access_key go together.',
    );
    expect(errorsIn(file('credentials: { google: {} }')).join()).toContain(
      'must have service_account or external_account.',
    );
    const both_accounts = 'credentials: { google: { service_account: env:SET, external_account: env:SET } }';
    expect(errorsIn(file(both_accounts)).join()).toContain('must have service_account or external_account.');
    const tencent = 'credentials: { tencent: { secret_id: env:SET, secret_key: ▸env:NOT_SET, service: aiart } }';
    expect(problemLines(file(tencent))).toEqual([
      expect.stringContaining('NOT_SET is not set: the routes of p are not used.'),
    ]);
    const volcengine = 'access_key_id: env:SET, secret_access_key: plain, region: cn-north-1, service: cv';
    expect(errorsIn(file(`credentials: { volcengine: { ${volcengine} } }`)).join()).toContain('must be env:NAME');
    expect(errorsIn(file('credentials: { google: { service_account: "{}" } }')).join()).toContain(
      'must be env:NAME or file:/path',
    );
    expect(problemLines(file('credentials: { google: { service_account: ▸env:NOT_SET } }'))).toEqual([
      'warning: ▸providers.p.credentials.google.service_account: the environment variable NOT_SET is not set: the routes of p are not used.',
    ]);
    expect(problemLines(file('credentials: { aws: { region: r } }'))).toEqual([]);
  });

  it('of a signature name what they sign, and send it', () => {
    const hmac = (more: string) => file(`credentials: { hmac: { secret: env:SET, ${more} } }`);
    const sent = 'headers: { x-signature: "t=$timestamp,v1=$signature" }';
    expect(problemLines(hmac(`text: "$method\\n$path$$\\n$body_sha256", key_id: env:SET, ${sent}`))).toEqual([]);
    expect(problemLines(hmac('text: $body, query: { sig: $signature }'))).toEqual([]);
    expect(errorsIn(hmac('text: $body')).join()).toContain(
      'credentials.hmac: sends the signature nowhere: name $signature',
    );
    expect(errorsIn(hmac('text: $body, headers: { a: "$signature_of", b: $body }'))).toEqual([
      expect.stringContaining('credentials.hmac: sends the signature nowhere'),
      expect.stringContaining('hmac.headers.a: has $signature_of, which is none of $method, $host,'),
      expect.stringContaining('hmac.headers.b: has $body, which is none of'),
    ]);
    expect(errorsIn(hmac(`text: $secret, ${sent}`)).join()).toContain(
      'hmac.text: has $secret, which is none of $method,',
    );
    expect(errorsIn(hmac(`text: $body, algorithm: md5, ${sent}`)).join()).toContain('hmac.algorithm: must be');
    expect(errorsIn(file(`credentials: { hmac: { secret: plain, text: $body, ${sent} } }`)).join()).toContain(
      'hmac.secret: must be env:NAME or file:/path',
    );
    expect(problemLines(file(`credentials: { hmac: { secret: ▸env:NOT_SET, text: $body, ${sent} } }`))).toEqual([
      expect.stringContaining('NOT_SET is not set: the routes of p are not used.'),
    ]);
  });
});
