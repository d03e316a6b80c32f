import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { startChatUpstream, type ChatUpstream } from '../helpers/chat-upstream.ts';
import { event } from './streams.ts';

/** Of no form by which a key could be known. */
const key = 'house secret 7';

let upstream: ChatUpstream;
let service: TestApp;
let client: Client;

beforeAll(async () => {
  process.env['TEST_HOUSE_KEY'] = key;
  upstream = await startChatUpstream();
  const yaml = `
version: 1
providers:
  oai: { adapter: openai, base_url: "${upstream.url}/v1", api_key: env:TEST_HOUSE_KEY, allow_private: true }
  ant: { adapter: anthropic, base_url: "${upstream.url}", api_key: env:TEST_HOUSE_KEY, allow_private: true }
models:
  - id: acme/oai
    kind: chat
    price: &price [{ unit: output_token, per: 1000000, amount: "1.00" }]
    routes: [{ provider: oai, upstream_model: gpt-x }]
  - id: acme/ant
    kind: chat
    price: *price
    routes: [{ provider: ant, upstream_model: claude-x }]
`;
  service = await startTestApp({ yaml });
  client = await service.client();
});
afterAll(async () => {
  await service.stop();
  await upstream.stop();
});

const refusal = { type: 'invalid_request_error', message: `key "${key}" may not use "foo"` };

test.each([
  ['a refusal', 'acme/oai', false, { status: 400, json: { error: refusal } }],
  ['a stream of completions', 'acme/oai', true, { stream: [`data: ${JSON.stringify({ error: refusal })}\n\n`] }],
  ['a stream of messages', 'acme/ant', true, { stream: [event({ type: 'error', error: refusal })] }],
])("%s never reveals the provider's key", async (_, model, stream, script) => {
  for (const name of ['gpt-x', 'claude-x']) upstream.script(name, script);
  const body = { model, stream, messages: [{ role: 'user', content: 'Hello' }] };
  const answer = await client.call('POST', '/v1/chat/completions', body);
  expect(answer.status).toBe(400);
  expect(JSON.parse(answer.text).error.message).toContain('key "[key]" may not use "foo"');
});
