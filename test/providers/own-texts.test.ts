import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { mediaModel, optional_prompt } from '../helpers/catalog.ts';
import { errorsIn, problemLines } from '../catalog/problem-lines.ts';

/** The part of a request that an upstream keeps. */
type Seen = Pick<IncomingMessage, 'url' | 'headers'>;

const seen: Seen[] = [];
let refusal: string | undefined;
const server = createServer((request, response) => {
  seen.push({ url: request.url, headers: request.headers });
  request.resume().on('end', () => {
    const answer = request.url?.includes('/images/')
      ? { data: [{ b64_json: png }] }
      : {
          id: 'c',
          model: 'm',
          choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
        };
    const body = refusal === undefined ? answer : { error: { message: refusal } };
    response
      .writeHead(refusal === undefined ? 200 : 400, { 'content-type': 'application/json' })
      .end(JSON.stringify(body));
  });
});

/** One black pixel. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABc3UBGAAAAABJRU5ErkJggg==';

let service: TestApp;
let client: Client;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  process.env['TEST_OWN_KEY'] = 'key-of-azure-0123456789';
  const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/openai/v1`;
  service = await startTestApp({
    yaml: `version: 1
sandbox: false
providers:
  azure:
    adapter: openai
    base_url: "${base_url}"
    allow_private: true
    headers: { Api-Key: env:TEST_OWN_KEY, User-Agent: acme/1.0 }
    query: { api-version: preview, tenant: "a b&c" }
models:
  - { id: a/talk, kind: chat, price: [{ unit: output_token, amount: "0" }, { unit: input_token, amount: "0" }], routes: [{ provider: azure }] }${mediaModel(
    {
      id: 'a/draw',
      schema: optional_prompt,
      price: '0',
      more: ['estimate: { image: 1 }'],
      routes: ['{ provider: azure, upstream_model: draw }'],
    },
  )}
`,
  });
  client = await service.client();
});
afterAll(async () => {
  await service.stop();
  server.close();
  delete process.env['TEST_OWN_KEY'];
});

const chat = () =>
  client.call('POST', '/v1/chat/completions', { model: 'a/talk', messages: [{ role: 'user', content: 'Hi' }] });

describe('headers and a query of a provider', () => {
  it('go with every request, in place of the adapter’s own, and without a key there is no other', async () => {
    expect((await chat()).status).toBe(200);
    const drawn = await client.call('POST', '/v1/generate?wait=120', { model: 'a/draw', input: { prompt: 'x' } });
    expect(drawn.json).toMatchObject({ status: 'succeeded' });
    expect(seen.map(({ url }) => url)).toEqual([
      '/openai/v1/chat/completions?api-version=preview&tenant=a+b%26c',
      '/openai/v1/images/generations?api-version=preview&tenant=a+b%26c',
    ]);
    for (const { headers } of seen) {
      expect(headers).toMatchObject({ 'api-key': 'key-of-azure-0123456789', 'user-agent': 'acme/1.0' });
      expect(headers.authorization).toBeUndefined();
    }
  });

  it('are in no message: an upstream that repeats the key is not repeated', async () => {
    refusal = 'Access denied for key-of-azure-0123456789.';
    const { text, status } = await chat();
    refusal = undefined;
    expect(status).toBe(400);
    expect(text).toContain('Access denied for [key].');
  });

  const file = (more: string) => `version: 1\nproviders:\n  p: { adapter: mock, ${more} }\nmodels: []\n`;

  it('may be secrets; one that is not there makes the provider unusable', () => {
    expect(problemLines(file('headers: { X-Key: ▸env:NOT_SET }'))).toEqual([
      'warning: ▸providers.p.headers.X-Key: the environment variable NOT_SET is not set: the routes of p are not used.',
    ]);
    expect(problemLines(file('headers: { X-Key: env:SET }, query: { v: "1" }'))).toEqual([]);
  });

  it.each([
    ['headers: { Authorization: ▸Bearer sk-1 }', 'is a key in plain text: write env:NAME or file:/path'],
    ['headers: { ▸Host: example.com }', 'must be names of headers that a client may set'],
    ['headers: { ▸"a b": x }', 'must be names of headers that a client may set'],
    ['headers: { X: ▸"a\\nb" }', 'must be 1 to 4096 printable characters'],
    ['query: { ▸"a&b": x }', 'must be letters, digits or . _ ~ -'],
    ['query: { v: ▸1 }', 'must be 1 to 4096 printable characters'],
  ])('are checked: %s', (more, message) => {
    expect(errorsIn(file(more)).join('\n')).toContain(message);
  });
});
