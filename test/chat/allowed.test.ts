import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectExactBooks, type Answered } from '../helpers/app.ts';
import { completion, hello, message, setStage, type Stage } from './setup.ts';

/** Fields that cost the operator extra, or belong to another customer, reach no upstream unless its route says so. */

let stage: Stage;
const more = `
  - id: acme/open
    kind: chat
    price: *price
    routes: [{ provider: oai, upstream_model: gpt-x, options: { pass: [service_tier, file_id, store], refuse: [logprobs] } }]
  - id: acme/more
    kind: chat
    price:
      - { unit: input_token, per: 1000000, amount: "2.00" }
      - { unit: input_token, per: 1000000, amount: "4.00", above_input_tokens: 200000 }
      - { unit: output_token, per: 1000000, amount: "10.00" }
    routes: [{ provider: ant, upstream_model: claude-x, options: { pass_fields: [chat_template], pass_betas: [unheard-of] } }]
  - id: acme/either
    kind: chat
    price: *price
    routes:
      - { id: plain, provider: oai, upstream_model: plain }
      - { id: quick, provider: oai, upstream_model: quick, options: { pass: [service_tier] } }
`;

beforeAll(async () => {
  stage = await setStage({ more });
});
beforeEach(() => {
  for (const model of ['gpt-x', 'plain', 'quick']) stage.upstream.script(model, { json: completion('Hi') });
  stage.upstream.script('claude-x', { json: message('Hi') });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const completionStream = [
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}\n\n',
  'data: [DONE]\n\n',
];

const completions = (model: string, more_fields: object): Promise<Answered> =>
  stage.client.call('POST', '/v1/chat/completions', { model, messages: hello, ...more_fields });
const messages = (model: string, more_fields: object): Promise<Answered> =>
  stage.client.call('POST', '/v1/messages', { model, max_tokens: 100, messages: hello, ...more_fields });

test.each([
  ['service_tier', completions, 'acme/oai', { service_tier: 'priority' }],
  ['web_search_options', completions, 'acme/oai', { web_search_options: {} }],
  ['preset', completions, 'acme/oai', { preset: 'dear' }],
  ['modalities', completions, 'acme/oai', { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }],
  [
    'messages[0].content[0].file.file_id',
    completions,
    'acme/oai',
    { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-of-another' } }] }] },
  ],
  ['speed', messages, 'acme/ant', { speed: 'fast' }],
  ['container', messages, 'acme/ant', { container: 'container_of_another' }],
  [
    'tools[0].type',
    messages,
    'acme/ant',
    {
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      tool_choice: { type: 'tool', name: 'web_search' },
    },
  ],
])('a request with %s is refused, reaches no upstream and costs nothing', async (param, ask, model, fields) => {
  const asked_before = stage.upstream.requests.length;
  const before = (await stage.client.call('GET', '/v1/balance')).json;
  for (const stream of [false, true]) {
    const { status, json } = await ask(model, { ...fields, stream });
    expect([status, json.error]).toMatchObject([400, { type: 'invalid_request', code: 'unsupported_field', param }]);
  }
  expect(stage.upstream.requests.length).toBe(asked_before);
  const after = (await stage.client.call('GET', '/v1/balance')).json;
  expect([after.balance, after.held]).toEqual([before.balance, before.held]);
  expect(await stage.test.app.db.query('select from route_health')).toHaveLength(0);
});

test('a route that permits a field passes it on, and fields beyond its rules are refused', async () => {
  const content = [{ type: 'file', file: { file_id: 'file-1' } }];
  const fields = { service_tier: 'priority', store: true, metadata: { a: 'b' }, messages: [{ role: 'user', content }] };
  expect((await completions('acme/open', fields)).status).toBe(200);
  expect(stage.upstream.requests.at(-1)?.body).toMatchObject(fields);
  expect(await completions('acme/open', { logprobs: true })).toMatchObject({
    status: 400,
    json: { error: { param: 'logprobs' } },
  });
});

test('fields and betas that no SDK defines or that cost extra are not passed on, and the caller is informed', async () => {
  const unknown = {
    api_base: 'http://169.254.169.254/',
    mock_response: 'x',
    chat_template: 'x',
    priority: 1,
    user: null,
  };
  for (const stream of [false, true]) {
    stage.upstream.script('gpt-x', stream ? { stream: completionStream } : { json: completion('Hi') });
    const answer = await completions('acme/oai', { ...unknown, top_k: 3, stream });
    expect([answer.status, answer.headers.get('x-ignored-fields')]).toEqual([
      200,
      'api_base, mock_response, chat_template, priority',
    ]);
    const { body } = stage.upstream.requests.at(-1) ?? {};
    for (const field of ['api_base', 'mock_response', 'chat_template', 'priority'])
      expect(body).not.toHaveProperty(field);
    expect(body).toMatchObject({ top_k: 3 });
  }
  const betas = { 'anthropic-beta': 'context-1m-2025-08-07,interleaved-thinking-2025-05-14,fast-mode-2026-02-01' };
  const body = { model: 'acme/ant', max_tokens: 100, messages: hello, api_key: 'sk-of-another' };
  const answer = await stage.client.call('POST', '/v1/messages', body, betas);
  expect(answer.headers.get('x-ignored-fields')).toBe('api_key, context-1m-2025-08-07, fast-mode-2026-02-01');
  expect(stage.upstream.requests.at(-1)?.headers['anthropic-beta']).toBe('interleaved-thinking-2025-05-14');
  expect(stage.upstream.requests.at(-1)?.body).not.toHaveProperty('api_key');
});

test('a route can name more fields and betas to pass on', async () => {
  const betas = { 'anthropic-beta': 'context-1m-2025-08-07,unheard-of' };
  const body = { model: 'acme/more', max_tokens: 100, messages: hello, chat_template: 'x' };
  const answer = await stage.client.call('POST', '/v1/messages', body, betas);
  expect(answer.headers.get('x-ignored-fields')).toBeNull();
  expect(stage.upstream.requests.at(-1)?.headers['anthropic-beta']).toBe('context-1m-2025-08-07,unheard-of');
  expect(stage.upstream.requests.at(-1)?.body).toMatchObject({ chat_template: 'x' });
});

test('a request goes to the route that permits its fields', async () => {
  expect((await completions('acme/either', { service_tier: 'priority' })).status).toBe(200);
  expect(stage.upstream.requests.at(-1)?.body).toMatchObject({ model: 'quick', service_tier: 'priority' });
  expect((await completions('acme/either', { service_tier: 'flex' })).status).toBe(200);
  expect(stage.upstream.requests.at(-1)?.body).toMatchObject({ model: 'plain', service_tier: 'flex' });
});

test('nothing is stored upstream, and nothing is cached upstream for longer than is paid', async () => {
  await completions('acme/oai', { store: true, metadata: { a: 'b' } });
  expect(stage.upstream.requests.at(-1)?.body).not.toHaveProperty('store');
  expect(stage.upstream.requests.at(-1)?.body).not.toHaveProperty('metadata');
  const system = (ttl: object) => [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ...ttl } }];
  await messages('acme/ant', { system: system({ ttl: '1h' }) });
  expect(stage.upstream.requests.at(-1)?.body['system']).toEqual(system({}));
});

test("a request that refers to files of the upstream's account is not counted there", async () => {
  const content = [{ type: 'document', source: { type: 'file', file_id: 'file_of_another' } }];
  const asked_before = stage.upstream.requests.length;
  const body = { model: 'acme/ant', messages: [{ role: 'user', content }] };
  const counted = await stage.client.call('POST', '/v1/messages/count_tokens', body);
  expect([counted.status, counted.text]).toEqual([200, expect.stringContaining('input_tokens')]);
  expect(stage.upstream.requests.length).toBe(asked_before);
});
