import Anthropic1 from 'anthropic-1';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';

/** SDKs and tools of the chat styles add parameters of their own to their paths; the service's own paths know theirs. */

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await startTestApp({ worker: false });
  client = await app.client();
});
afterAll(() => app.stop());

const hello = [{ role: 'user', content: 'Hello' }];
const model = 'sandbox/chat';

describe.each(['beta=true', 'client_version=0.99.0', 'api-version=1&api-version=2'])('the query ?%s', (query) => {
  test.each<[method: 'GET' | 'POST' | 'DELETE', path: string, status: number, body?: object]>([
    ['GET', '/v1/models', 200],
    ['GET', `/v1/models/${model}`, 200],
    ['GET', '/v1/models/none', 404],
    ['GET', '/v1/files', 200],
    ['GET', '/v1/files/file_none', 404],
    ['GET', '/v1/files/file_none/content', 404],
    ['DELETE', '/v1/files/file_none', 404],
    ['POST', '/v1/chat/completions', 200, { model, messages: hello }],
    ['POST', '/v1/messages', 200, { model, max_tokens: 9, messages: hello }],
    ['POST', '/v1/messages/count_tokens', 200, { model, messages: hello }],
    ['POST', '/v1/responses', 200, { model, input: 'Hello' }],
    ['POST', '/v1/responses/input_tokens', 200, { model, input: 'Hello' }],
    ['POST', '/v1/embeddings', 404, { model: 'none', input: 'Hello' }],
    ['POST', '/v1/rerank', 404, { model: 'none', query: 'Hello', documents: ['Hello'] }],
    ['POST', '/v1/moderations', 404, { model: 'none', input: 'Hello' }],
    ['POST', '/v1/images/generations', 404, { model: 'none', prompt: 'A dot' }],
    ['POST', '/v1/audio/speech', 404, { model: 'none', input: 'Hello', voice: 'alloy' }],
    ['GET', '/v1/videos', 200],
    ['GET', '/v1/videos/video_none', 404],
  ])('is ignored on %s %s', async (method, path, status, body) => {
    expect((await client.call(method, `${path}?${query}`, body)).status).toBe(status);
  });

  test('is refused on /v1/tasks, where a misspelt filter would list other tasks', async () => {
    expect((await client.call('GET', `/v1/tasks?${query}`)).status).toBe(400);
  });
});

test('query parameters that exist still count beside ignored ones', async () => {
  const { json } = await client.call('GET', '/v1/models?client_version=1&limit=1');
  expect(json.data).toHaveLength(1);
  expect((await client.call('GET', '/v1/models?limit=0&beta=true')).status).toBe(400);
});

test('the messages SDK lists all of its files with ?beta=true', async () => {
  const sdk = new Anthropic1({ baseURL: app.url, apiKey: client.key, authToken: null });
  expect((await sdk.beta.files.list()).data).toEqual([]);
});
