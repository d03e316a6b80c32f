import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { expectExactBooks, startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';

let service: TestApp;
let client: Client;

beforeAll(async () => {
  service = await startTestApp({});
  client = await service.client();
});
afterEach(() => expectExactBooks(service.app));
afterAll(() => service.stop());

const completions = (text: string, more: object = {}): Promise<Answered> =>
  client.call('POST', '/v1/chat/completions', {
    model: 'sandbox/chat',
    messages: [{ role: 'user', content: text }],
    ...more,
  });
const messages = (text: string, more: object = {}): Promise<Answered> =>
  client.call('POST', '/v1/messages', {
    model: 'sandbox/chat',
    max_tokens: 1_000,
    messages: [{ role: 'user', content: text }],
    ...more,
  });

test('both styles reach the sandbox and pay 1.00 per million input tokens and 4.00 per million output tokens', async () => {
  const first = JSON.parse((await completions('Hello')).text);
  expect(first).toMatchObject({ model: 'sandbox/chat', choices: [{ finish_reason: 'stop' }] });
  const answer = await messages('[[tokens 500]]');
  const { usage } = JSON.parse(answer.text);
  expect(usage.output_tokens).toBe(500);
  expect(answer.headers.get('x-cost-amount')).toBe(((usage.input_tokens + 2_000) / 1e6).toFixed(6));
});

test.each<[string, string, object, string | null]>([
  [
    'servers of tools, a shell and a search of the messages style',
    '/v1/messages',
    {
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hi' }],
      mcp_servers: [{ type: 'url', url: 'https://mcp.example', name: 's' }],
      tools: [
        { type: 'mcp_toolset', mcp_server_name: 's' },
        { type: 'bash_20250124', name: 'bash' },
        { type: 'web_search_20250305', name: 'web_search' },
        { name: 'look', input_schema: { type: 'object' } },
      ],
    },
    'mcp_toolset, bash_20250124, web_search_20250305, mcp_servers',
  ],
  [
    'a search for tools, a server and a computer of the responses style',
    '/v1/responses',
    {
      input: 'Hi',
      tools: [
        { type: 'tool_search' },
        { type: 'mcp', server_label: 's', server_url: 'https://mcp.example' },
        { type: 'computer' },
        { type: 'custom', name: 'patch' },
        { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f', parameters: {} }] },
      ],
    },
    'tool_search, mcp, computer',
  ],
])('tools that nobody runs here are left out, as a header says: %s', async (_, path, body, left_out) => {
  const answer = await client.call('POST', path, { model: 'sandbox/chat', ...body });
  expect([answer.status, answer.headers.get('x-tools-left-out')]).toEqual([200, left_out]);
  const record = await client.call('GET', `/v1/chat/${answer.headers.get('x-request-id')}`);
  expect(record.json).toMatchObject({ tools: { left_out: left_out?.split(', ') } });
});

test('another method on a path gets 405 with each allowed method once', async () => {
  const { status, headers } = await client.call('PUT', '/v1/chat/completions', {});
  expect([status, headers.get('allow')]).toEqual([405, 'POST, GET, HEAD']);
});

test('streams end as their style defines and have the same text as whole responses', async () => {
  const plain = JSON.parse((await completions('Two red bicycles')).text).choices[0].message.content;
  const stream = await completions('Two red bicycles', { stream: true, stream_options: { include_usage: true } });
  const chunks = [...stream.text.matchAll(/^data: (\{.*\})$/gm)].map(([, json = '']) => JSON.parse(json));
  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(plain);
  expect(chunks.at(-1).usage.completion_tokens).toBeGreaterThan(10);
  expect(stream.text).toMatch(/data: \[DONE\]\n\n$/);
  expect((await messages('x', { stream: true })).text).toMatch(/event: message_stop\ndata: .*\n\n$/);
});

test.each([
  ['[[fail]]', 502, 'upstream_error'],
  ['[[fail before start]]', 502, 'upstream_error'],
  ['[[cut]]', 502, 'upstream_error'],
  ['[[error 500]]', 502, 'upstream_error'],
  ['[[error 429]]', 502, 'upstream_error'],
  ['[[error 504]]', 504, 'timeout'],
  ['[[moderate]]', 400, 'invalid_request'],
  ['[[error 400]]', 400, 'invalid_request'],
])('the directive %s gets %i %s and costs nothing', async (text, status, type) => {
  const before = (await client.call('GET', '/v1/balance')).json.balance.exact;
  const answer = await completions(text);
  expect([answer.status, answer.json.error.type]).toEqual([status, type]);
  expect((await client.call('GET', '/v1/balance')).json.balance.exact).toBe(before);
});

test.each(['[[cut]]', '[[fail]]'])(
  'the directive %s breaks a stream with an error after content, and that content is charged',
  async (text) => {
    const before = Number((await client.call('GET', '/v1/balance')).json.balance.exact);
    const stream = await messages(`Hello ${text}`, { stream: true });
    expect(stream.status).toBe(200);
    expect(stream.text).toMatch(/text_delta[^]*event: error\ndata: .*"upstream_error"/);
    expect(stream.text).not.toContain('message_stop');
    await expect
      .poll(async () => Number((await client.call('GET', '/v1/balance')).json.balance.exact))
      .toBeLessThan(before);
  },
);

test('a sandbox call without usage is estimated and charged', async () => {
  const answer = await completions('[[no usage]] Hello');
  expect(Number(answer.headers.get('x-cost-amount'))).toBeGreaterThan(0.00001);
});

test('no sandbox directive opens a circuit: the model answers at once after many failures of each kind', async () => {
  const failures = ['[[fail]]', '[[cut]]', '[[error 401]]', '[[error 503]]', '[[error 429]]', '[[fail before start]]'];
  for (let round = 0; round < 6; round++) {
    await Promise.all(failures.flatMap((text) => [completions(text), completions(text, { stream: true })]));
  }
  expect((await completions('Hello')).status).toBe(200);
  expect((await client.call('GET', '/v1/models/sandbox/chat')).json.status).toBe('available');
});
