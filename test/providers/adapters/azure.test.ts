import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Credentials, ProviderConfig } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { anthropic } from '../../../src/providers/adapters/anthropic/adapter.ts';
import { openai } from '../../../src/providers/adapters/openai/adapter.ts';
import type { ChatProvider } from '../../../src/providers/provider.ts';
import { callOf, never, textOf } from '../upstreams.ts';

const key = '0123456789abcdef0123456789abcdef';
const token = 'entra-token';
type Seen = { path: string; headers: IncomingHttpHeaders; body: Record<string, unknown> };
const seen: Seen[] = [];

/** Refusals of deployments, as Azure words them (learn.microsoft.com, Azure OpenAI, November 2026). */
const refusals: Record<string, [number, object]> = {
  filtered: [
    400,
    {
      error: {
        message: 'The response was filtered due to the prompt triggering Azure OpenAI’s content management policy.',
        type: null,
        param: 'prompt',
        code: 'content_filter',
        status: 400,
        innererror: { code: 'ResponsibleAIPolicyViolation' },
      },
    },
  ],
  busy: [
    429,
    { error: { code: '429', message: 'Requests have exceeded token rate limit. Please retry after 7 seconds.' } },
  ],
  gone: [
    404,
    { error: { code: 'DeploymentNotFound', message: 'The API deployment for this resource does not exist.' } },
  ],
};

/** The endpoints of one resource: which api-version each takes, if any. */
const endpoints: [RegExp, string | undefined][] = [
  [/^\/openai\/v1\/(?:chat\/completions|responses|embeddings)$/, 'preview'],
  [/^\/openai\/deployments\/[\w-]+\/(?:chat\/completions|embeddings)$/, '2024-10-21'],
  [/^\/models\/chat\/completions$/, '2024-05-01-preview'],
  [/^\/anthropic\/v1\/messages(?:\/count_tokens)?$/, undefined],
  [/^\/tenant\/oauth2\/v2\.0\/token$/, undefined],
];

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://h');
      const { headers } = request;
      const say = (status: number, json: object, more = {}) =>
        response.writeHead(status, { 'content-type': 'application/json', ...more }).end(JSON.stringify(json));
      const endpoint = endpoints.find(([form]) => form.test(pathname));
      if (!endpoint) return say(404, { error: { code: '404', message: 'Resource not found' } });
      if (pathname.endsWith('/token')) return say(200, { access_token: token, expires_in: 3_600 });
      const body = JSON.parse(text) as Record<string, unknown>;
      seen.push({ path: request.url ?? '', headers, body });
      if (searchParams.get('api-version') !== (endpoint[1] ?? null)) {
        return say(400, { error: { code: 'BadRequest', message: 'API version not supported' } });
      }
      const own = pathname.startsWith('/anthropic') ? headers['x-api-key'] : headers['api-key'];
      const is_known = own === key || headers.authorization === `Bearer ${token}`;
      if (!is_known)
        return say(401, { error: { code: '401', message: 'Access denied due to invalid subscription key.' } });
      const name = /deployments\/([\w-]+)/.exec(pathname)?.[1] ?? String(body['model']);
      const [status, refusal] = refusals[name] ?? [
        200,
        pathname.endsWith('count_tokens') ? { input_tokens: 7 } : { hello: 1 },
      ];
      return say(status, refusal, status === 429 ? { 'retry-after': '7' } : {});
    });
});

let origin = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const guard = openGuard();
const config = (path: string, more: Partial<ProviderConfig>): ProviderConfig => ({
  name: 'azure',
  adapter: 'openai',
  base_url: origin + path,
  allow_private: true,
  ...more,
});
const headers = { 'api-key': key };
const entra = (): Credentials => ({
  kind: 'oauth',
  token_url: `${origin}/tenant/oauth2/v2.0/token`,
  client_id: 'client',
  client_secret: 'secret',
  scope: 'https://cognitiveservices.azure.com/.default',
});
const with_key = (path: string, version: string) => config(path, { headers, query: { 'api-version': version } });
const with_entra = (path: string, version: string) =>
  config(path, { credentials: entra(), query: { 'api-version': version } });

async function requestOf(provider: ChatProvider, model = 'assistant'): Promise<Seen | undefined> {
  const body = { model, messages: [{ role: 'user', content: 'Hello' }] };
  expect(await textOf(provider, callOf('completions', { model, body }))).toBe('{"hello":1}');
  await provider.close?.();
  return seen.at(-1);
}

describe('OpenAI on Azure', () => {
  it.each<[string, () => ProviderConfig, string]>([
    ['the v1 API by a key', () => with_key('/openai/v1', 'preview'), '/openai/v1/chat/completions?api-version=preview'],
    [
      'the v1 API by Entra',
      () => with_entra('/openai/v1/', 'preview'),
      '/openai/v1/chat/completions?api-version=preview',
    ],
    [
      'a deployment by a key',
      () => with_key('/openai/deployments/assistant', '2024-10-21'),
      '/openai/deployments/assistant/chat/completions?api-version=2024-10-21',
    ],
    [
      'a deployment by Entra',
      () => with_entra('/openai/deployments/assistant', '2024-10-21'),
      '/openai/deployments/assistant/chat/completions?api-version=2024-10-21',
    ],
    [
      'models of Foundry by a key',
      () => with_key('/models', '2024-05-01-preview'),
      '/models/chat/completions?api-version=2024-05-01-preview',
    ],
  ])('is asked as %s', async (_, config_of, path) => {
    const request = await requestOf(openai.openChat(config_of(), { guard }));
    expect(request?.path).toBe(path);
    expect(request?.body).toMatchObject({ model: 'assistant' });
    const { 'api-key': own, authorization } = request?.headers ?? {};
    expect([own, authorization]).toEqual(config_of().credentials ? [undefined, `Bearer ${token}`] : [key, undefined]);
  });

  it.each(['/openai/v1', '/openai/deployments/embedder'])('makes embeddings below %s', async (path) => {
    const version = path === '/openai/v1' ? 'preview' : '2024-10-21';
    const provider = openai.openChat(with_key(path, version), { guard });
    const { timeout_ms } = callOf('completions');
    const call = {
      request_id: 'r',
      model: 'embedder',
      body: { model: 'embedder', input: 'Hi' },
      timeout_ms,
      options: {},
    };
    for await (const _ of (await provider.embed?.(call, never))?.body ?? []);
    expect(seen.at(-1)?.path).toBe(`${path}/embeddings?api-version=${version}`);
    await provider.close?.();
  });

  it('is asked for responses by the v1 API', async () => {
    const provider = openai.openChat(with_key('/openai/v1', 'preview'), { guard });
    const body = { model: 'assistant', input: 'Hello' };
    await textOf(provider, callOf('responses', { body }));
    expect(seen.at(-1)?.path).toBe('/openai/v1/responses?api-version=preview');
    await provider.close?.();
  });

  it.each([
    ['filtered', { name: 'InputRefused', type: 'content_policy_violation' }],
    ['busy', { name: 'NotStarted', reason: 'rate_limited', retry_after_ms: 7_000 }],
    ['gone', { name: 'NotStarted', reason: 'unavailable' }],
  ])('refuses in words that are known: %s', async (model, expected) => {
    const provider = openai.openChat(with_key(`/openai/deployments/${model}`, '2024-10-21'), { guard });
    await expect(requestOf(provider, model)).rejects.toMatchObject(expected);
  });

  it('that does not know the key pauses the route, and its message has no key', async () => {
    const wrong = config('/openai/v1', {
      headers: { 'api-key': 'wrong-key' },
      query: { 'api-version': 'preview' },
      secrets: ['wrong-key'],
    });
    const error = await requestOf(openai.openChat(wrong, { guard })).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'NotStarted', reason: 'rejected_credentials' });
    expect(String(error)).not.toContain('wrong-key');
  });
});

describe('Claude on Foundry', () => {
  it.each(['/anthropic', '/anthropic/', '/anthropic/v1'])('is asked below %s by a key', async (path) => {
    const provider = anthropic.openChat(config(path, { adapter: 'anthropic', api_key: key }), { guard });
    expect(await textOf(provider, callOf('messages'))).toBe('{"hello":1}');
    expect(seen.at(-1)).toMatchObject({ path: '/anthropic/v1/messages', headers: { 'x-api-key': key } });
    expect(await provider.countTokens?.(callOf('messages'), never)).toBe(7);
    await provider.close?.();
  });

  it('is asked by Entra', async () => {
    const provider = anthropic.openChat(config('/anthropic', { adapter: 'anthropic', credentials: entra() }), {
      guard,
    });
    expect(await textOf(provider, callOf('messages'))).toBe('{"hello":1}');
    expect(seen.at(-1)?.headers.authorization).toBe(`Bearer ${token}`);
    await provider.close?.();
  });
});
