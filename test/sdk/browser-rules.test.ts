import Anthropic1 from 'anthropic-1';
import OpenAI7 from 'openai-7';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';

/** The SDKs as a page of another origin calls them: with the preflight that a browser sends, and what it then allows. */

const origin = 'https://app.example.com';

let service: TestApp;
let client: Client;
beforeAll(async () => {
  service = await startTestApp({ yaml: `version: 1\nserver: { cors_origins: ["${origin}"] }\n` });
  client = await service.client();
});
afterAll(() => service.stop());

/** Headers that a page may always send. */
const safe = new Set(['accept', 'accept-language', 'content-language']);

/** Asks as a browser does (fetch.spec.whatwg.org, 4.8): throws where it would keep the answer from the page. */
async function fetchAsPage(url: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const request = new Request(url, init);
  const names = [...request.headers.keys()].filter((name) => !safe.has(name));
  const preflight = await fetch(request.url, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': request.method,
      'access-control-request-headers': names.join(','),
    },
  });
  const allowed = (preflight.headers.get('access-control-allow-headers') ?? '').split(/, ?/);
  const methods = (preflight.headers.get('access-control-allow-methods') ?? '').split(/, ?/);
  expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, origin]);
  expect(allowed).toEqual(expect.arrayContaining(names));
  expect(methods).toContain(request.method);
  const answer = await fetch(url, { ...init, headers: { ...Object.fromEntries(request.headers), origin } });
  expect(answer.headers.get('access-control-allow-origin')).toBe(origin);
  return answer;
}

test.each(['/v1', ''])('the openai SDK works in a page, with the base path %j', async (path) => {
  const openai = new OpenAI7({
    baseURL: `${service.url}${path}`,
    apiKey: client.key,
    dangerouslyAllowBrowser: true,
    fetch: fetchAsPage,
  });
  const messages = [{ role: 'user' as const, content: 'Hello' }];
  const answer = await openai.chat.completions.create({ model: 'sandbox/chat', messages });
  expect(answer.choices[0]?.message.content).toBeTruthy();
  const stream = await openai.chat.completions.create({ model: 'chat', messages, stream: true });
  let chunks = 0;
  for await (const _ of stream) chunks++;
  expect(chunks).toBeGreaterThan(1);
  expect((await openai.models.list()).data.length).toBeGreaterThan(0);
  const refused = openai.chat.completions.create({ model: 'none', messages });
  await expect(refused).rejects.toMatchObject({ status: 404, code: 'model_not_found' });
});

test('the anthropic SDK works in a page', async () => {
  const anthropic = new Anthropic1({
    baseURL: service.url,
    apiKey: client.key,
    authToken: null,
    dangerouslyAllowBrowser: true,
    fetch: fetchAsPage,
  });
  const messages = [{ role: 'user' as const, content: 'Hello' }];
  const answer = await anthropic.messages.create({ model: 'sandbox/chat', max_tokens: 50, messages });
  expect(answer.content[0]?.type).toBe('text');
  const counted = await anthropic.messages.countTokens({ model: 'sandbox/chat', messages });
  expect(counted.input_tokens).toBeGreaterThan(0);
});

test('betas that stand in several headers and in lists are read as one list', async () => {
  const headers = new Headers({ authorization: `Bearer ${client.key}`, 'content-type': 'application/json' });
  headers.append('anthropic-beta', 'effort-2025-11-24,unheard-of-2030-01-01');
  headers.append('anthropic-beta', 'files-api-2025-04-14');
  const body = JSON.stringify({ model: 'chat', max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] });
  const answer = await fetch(`${service.url}/v1/messages`, { method: 'POST', headers, body });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('x-ignored-fields')).toBe('unheard-of-2030-01-01, files-api-2025-04-14');
});
