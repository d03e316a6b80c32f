import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import { rereadRoutes } from '../helpers/routes.ts';
import { completion, hello, message, setStage, yamlOf, type Stage, withUpstreamIds } from './setup.ts';

let stage: Stage;

beforeAll(async () => {
  stage = await setStage();
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

/** Every route is tried again, at once. */
async function closeCircuits(): Promise<void> {
  await stage.test.app.db.query('delete from route_health');
  await rereadRoutes(stage.test.app);
}

const completions = (model: string, more: object = {}) =>
  stage.client.call('POST', '/v1/chat/completions', { model, messages: hello, ...more });
const messages = (model: string, more: object = {}) =>
  stage.client.call('POST', '/v1/messages', { model, max_tokens: 100, messages: hello, ...more });

test('a completions response of the same style is relayed with only the model renamed, with the cost in its headers', async () => {
  stage.upstream.script('gpt-x', { json: completion('Grüße 😀') });
  const answer = await completions('acme/oai', { temperature: 0.5, unknown_field: { a: 1 } });
  expect(answer.status).toBe(200);
  expect(withUpstreamIds(answer.text)).toBe(JSON.stringify({ ...completion('Grüße 😀'), model: 'acme/oai' }));
  expect(answer.headers.get('x-cost-amount')).toBe('0.000070'); // 10 × 2 + 5 × 10 millionths
  expect(answer.headers.get('x-cost-currency')).toBe('USD');
  const request = stage.upstream.requests.at(-1);
  expect(request?.path).toBe('/v1/chat/completions');
  expect(request?.headers.authorization).toBe('Bearer sk-upstream-secret-0123456789');
  expect(request?.body).toMatchObject({ model: 'gpt-x', temperature: 0.5, messages: hello });
  expect(request?.body).not.toHaveProperty('unknown_field');
});

test("a messages call to an upstream of the same style carries the caller's version and betas", async () => {
  stage.upstream.script('claude-x', { json: message('Hi') });
  const headers = { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'claude-code-20250219,effort-2025-11-24' };
  const body = { model: 'acme/ant', max_tokens: 5_000, messages: hello };
  const answer = await stage.client.call('POST', '/v1/messages?beta=true', body, headers);
  expect(answer.status).toBe(200);
  expect(withUpstreamIds(answer.text)).toBe(JSON.stringify({ ...message('Hi'), model: 'acme/ant' }));
  const request = stage.upstream.requests.at(-1);
  expect(request?.path).toBe('/v1/messages');
  expect(request?.headers).toMatchObject({ ...headers, 'x-api-key': 'sk-upstream-secret-0123456789' });
  expect(request?.body).toMatchObject({ model: 'claude-x', max_tokens: 1_000 }); // the model's maximum
});

test('each style reaches an upstream of the other style', async () => {
  stage.upstream.script('claude-x', { json: message('Hi there') });
  const first = JSON.parse((await completions('acme/ant')).text);
  expect(first.choices).toMatchObject([{ message: { role: 'assistant', content: 'Hi there' }, finish_reason: 'stop' }]);
  expect(first).toMatchObject({ model: 'acme/ant', usage: { prompt_tokens: 10, completion_tokens: 5 } });
  stage.upstream.script('gpt-x', { json: completion('Hi there') });
  const second = JSON.parse((await messages('acme/oai')).text);
  expect(second).toMatchObject({
    model: 'acme/oai',
    content: [{ type: 'text', text: 'Hi there' }],
    stop_reason: 'end_turn',
  });
  expect(second.usage).toMatchObject({ input_tokens: 10, output_tokens: 5 });
});

test('cached tokens are charged once in every style', async () => {
  const details = {
    prompt_tokens: 1_000,
    completion_tokens: 10,
    total_tokens: 1_010,
    prompt_tokens_details: { cached_tokens: 900 },
  };
  stage.upstream.script('gpt-x', { json: completion('x', details) });
  expect((await completions('acme/oai')).headers.get('x-cost-amount')).toBe('0.000480'); // 100×2 + 900×0.2 + 10×10
  const usage = {
    input_tokens: 3,
    cache_creation_input_tokens: 12_304,
    cache_read_input_tokens: 0,
    output_tokens: 550,
  };
  stage.upstream.script('claude-x', { json: message('x', usage) });
  expect((await messages('acme/ant')).headers.get('x-cost-amount')).toBe('0.036266'); // 6 + 30,760 + 5,500 millionths
});

test('a response without usage is charged for its text, and delivered output is never free', async () => {
  const { usage: _, ...without } = completion('Four words are here');
  stage.upstream.script('gpt-x', { json: without });
  const answer = await completions('acme/oai');
  expect(Number(answer.headers.get('x-cost-amount'))).toBeGreaterThan(0.00005);
});

test('a call goes to the next route when one fails before its response, and the caller sees nothing of it', async () => {
  stage.upstream.script('second', { json: message('from the second') });
  const refusals = [
    { status: 401, json: { error: { message: 'bad key' } } },
    { status: 402, json: {} },
    { status: 403, json: {} },
    { status: 404, json: { error: { message: 'model not found' } } },
    { status: 429, headers: { 'retry-after': '1' }, json: { error: { message: 'slow down' } } },
    { status: 500, json: 'oops' },
    { status: 529, json: {} },
    { status: 200, json: 'no JSON' },
    { status: 400, json: { error: { message: 'You exceeded your current quota', code: 'insufficient_quota' } } },
    'cut' as const,
    'hang' as const,
  ];
  for (const refusal of refusals) {
    await closeCircuits();
    stage.upstream.script('first', refusal);
    const answer = await completions('acme/two');
    expect(answer.status, JSON.stringify(refusal)).toBe(200);
    expect(JSON.parse(answer.text).choices[0].message.content).toBe('from the second');
  }
});

test('a call whose routes all fail gets 502, or 504 when the last timed out, costs nothing and reveals nothing about our account', async () => {
  await closeCircuits();
  const before = (await stage.client.call('GET', '/v1/balance')).json;
  stage.upstream.script('first', { status: 500, json: { error: { message: 'db-internal-7 exploded' } } });
  stage.upstream.script('second', {
    status: 401,
    json: { error: { message: 'invalid key sk-upstream-secret-0123456789' } },
  });
  const answer = await completions('acme/two');
  expect(answer.status).toBe(502);
  expect(answer.json.error.type).toBe('upstream_error');
  expect(answer.text).not.toMatch(/db-internal|sk-/);
  await closeCircuits();
  const second = '{ provider: ant, upstream_model: second }';
  const impatient = second.replace(' }', ', timeout: { first_byte: 2s, idle: 2s, total: 3s } }');
  await stage.test.configure(yamlOf(stage.upstream).replace(second, impatient));
  stage.upstream.script('second', 'hang');
  const late = await messages('acme/two');
  await stage.test.configure(yamlOf(stage.upstream));
  expect([late.status, late.json.type, late.json.error.type]).toEqual([504, 'error', 'timeout']);
  const after = (await stage.client.call('GET', '/v1/balance')).json;
  expect([after.balance, after.held]).toEqual([before.balance, before.held]);
});

test("a mistake of the caller is reported in the upstream's words, goes to no other route and opens no circuit", async () => {
  await closeCircuits();
  const asked_before = stage.upstream.requests.length;
  for (let i = 0; i < 8; i++) {
    stage.upstream.script('first', {
      status: 400,
      json: { error: { message: 'messages.3: image too large, see https://x.y/z key sk-upstream-secret-0123456789' } },
    });
    const answer = await completions('acme/two');
    expect(answer.status).toBe(400);
    expect(answer.json.error).toMatchObject({
      type: 'invalid_request',
      message: 'messages.3: image too large, see [link] key [key]',
    });
  }
  expect(stage.upstream.requests.length - asked_before).toBe(8);
  stage.upstream.script('first', { json: completion('fine') });
  expect((await completions('acme/two')).status).toBe(200);
});

test("a call without money for 256 tokens gets 402, one at its key's limit gets 403, and one with less than the whole hold gets a smaller hold", async () => {
  stage.upstream.script('gpt-x', { json: completion('x') });
  const poor = await stage.test.client({ credit: '0.001' });
  const call = (client: typeof poor, more: object = {}) =>
    client.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages: hello, ...more });
  const refused = await call(poor);
  expect([refused.status, refused.json.error.type]).toEqual([402, 'insufficient_balance']);
  expect(refused.headers.get('x-should-retry')).toBe('false');
  expect((await call(poor, { max_tokens: 50 })).status).toBe(200); // needs no more than that
  const enough = await stage.test.client({ credit: '0.003' }); // for 300 tokens of 1,000
  expect((await call(enough)).status).toBe(200);
  const body = stage.upstream.requests.at(-1)?.body; // and no longer an answer than that buys
  expect(body?.['max_tokens']).toBeGreaterThanOrEqual(256);
  expect(body?.['max_tokens']).toBeLessThan(300);
  const limited = await stage.test.client({ limit: '0.001' });
  const stopped = await call(limited);
  expect([stopped.status, stopped.json.error.type]).toEqual([403, 'permission_error']);
});

test('the record of a call has routes, tokens, times and cost, and nothing of its content', async () => {
  stage.upstream.script('gpt-x', { json: completion('a secret word') });
  const answer = await completions('acme/oai');
  const id = answer.headers.get('x-request-id') ?? '';
  await expect.poll(async () => (await stage.client.call('GET', `/v1/chat/${id}`)).status).toBe(200);
  const record = await stage.client.call('GET', `/v1/chat/${id}`);
  expect(record.json).toMatchObject({
    object: 'chat.call',
    request_id: id,
    model: 'acme/oai',
    style: 'completions',
    stream: false,
    status: 200,
    finish: 'stop',
    usage: { input_tokens: 10, output_tokens: 5 },
    cost: { amount: '0.01', exact: '0.000070' },
    attempts: [{ route: 'acme/oai#oai', outcome: 'answered' }],
  });
  expect(record.text).not.toContain('secret word');
  const other = await stage.test.client();
  expect((await other.call('GET', `/v1/chat/${id}`)).status).toBe(404);
});

test('count_tokens asks an upstream that counts, else estimates, and costs nothing', async () => {
  stage.upstream.script('claude-x', { json: { input_tokens: 42 } });
  const counted = await stage.client.call('POST', '/v1/messages/count_tokens', { model: 'acme/ant', messages: hello });
  expect(JSON.parse(counted.text)).toEqual({ input_tokens: 42 });
  expect(stage.upstream.requests.at(-1)?.path).toBe('/v1/messages/count_tokens');
  const own = await stage.client.call('POST', '/v1/messages/count_tokens', { model: 'acme/oai', messages: hello });
  expect(JSON.parse(own.text).input_tokens).toBeGreaterThan(0);
});

test('parallel calls against a balance for a few of them never overdraw it', async () => {
  stage.upstream.script('gpt-x', {
    json: completion('x', { prompt_tokens: 10, completion_tokens: 100, total_tokens: 110 }),
  });
  const client = await stage.test.client({ credit: '0.0105' }); // ten calls of 0.001048
  const call = () =>
    client.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages: hello, max_tokens: 100 });
  const answers = await Promise.all(Array.from({ length: 64 }, call));
  const statuses = answers.map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200, 402]));
  const { balance, held } = (await client.call('GET', '/v1/balance')).json;
  expect(held.exact).toBe('0.000000');
  expect(Number(balance.exact)).toBeGreaterThanOrEqual(0);
  expect(statuses.filter((status) => status === 200)).toHaveLength(10);
});

test("a request that one upstream's style cannot express goes to a route that can, and gets a 400 that names the field when none can", async () => {
  await closeCircuits();
  stage.upstream.script('first', { json: completion('two of them') });
  const refused = await completions('acme/ant', { n: 2 });
  expect(refused.status).toBe(400);
  expect(refused.json.error).toMatchObject({ type: 'invalid_request', param: 'n' });
  const yaml = yamlOf(stage.upstream).replace(
    '- { provider: oai, upstream_model: first,',
    '- { provider: ant, upstream_model: second }\n      - { provider: oai, upstream_model: first,',
  );
  await stage.test.configure(yaml);
  const carried = await completions('acme/two', { n: 2 });
  expect(carried.status).toBe(200);
  expect(JSON.parse(carried.text).choices[0].message.content).toBe('two of them');
  expect(await stage.test.app.db.query('select from route_health')).toHaveLength(0);
});
