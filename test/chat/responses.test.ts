import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import { begun, delta, response, responsesStream, messageItem, usage } from './responses-streams.ts';
import { completion, message, setStage, type Stage, withUpstreamIds } from './setup.ts';
import { completionsStream, event, messagesStream } from './streams.ts';

const models = `
  - id: acme/native
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: native-x, options: { responses: true } }]
  - id: acme/native-two
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes:
      - provider: oai
        upstream_model: native-first
        options: { responses: true }
        timeout: { first_byte: 3s, idle: 3s, total: 9s }
      - { provider: ant, upstream_model: second }
`;

const for_tools = `
  - id: acme/tools
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: tools-x, options: { responses: tools } }]
`;

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ more: models + for_tools });
});
beforeEach(() => stage.test.app.db.query('delete from route_health'));
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const ask = (body: object, client: Client = stage.client) =>
  client.call('POST', '/v1/responses', { input: 'Hello', store: false, ...body });

const lastRequest = () => stage.upstream.requests.at(-1);

type Recorded = {
  status: number;
  style: string;
  finish: string | null;
  error_type: string | null;
  cost: { exact: string };
  usage: Record<string, number>;
  counted_here: boolean;
};

async function recordOf(answer: { headers: Headers }, client: Client = stage.client): Promise<Recorded> {
  const path = `/v1/chat/${answer.headers.get('x-request-id')}`;
  await expect.poll(async () => (await client.call('GET', path)).status).toBe(200);
  return JSON.parse((await client.call('GET', path)).text) as Recorded;
}

describe('an upstream of the responses style', () => {
  test('has its response relayed with only the model renamed, and charged by its usage', async () => {
    stage.upstream.script('native-x', { json: response([messageItem('Grüße 😀')]) });
    const answer = await ask({ model: 'acme/native', max_output_tokens: 5_000, unknown_field: [1], user: null });
    expect(answer.status).toBe(200);
    expect(withUpstreamIds(answer.text)).toBe(
      JSON.stringify(response([messageItem('Grüße 😀')], { model: 'acme/native' })),
    );
    expect(answer.headers.get('x-cost-amount')).toBe('0.000070'); // 10 × 2 + 5 × 10 millionths
    expect(lastRequest()?.path).toBe('/v1/responses');
    expect(lastRequest()?.body).toEqual({
      model: 'native-x',
      input: 'Hello',
      user: null,
      store: false,
      max_output_tokens: 1_000, // the model's maximum
    });
    expect(await recordOf(answer)).toMatchObject({ style: 'responses', finish: 'completed', counted_here: false });
  });

  test('stores nothing itself, whatever the caller requests, and returns its reasoning with the response', async () => {
    stage.upstream.script('native-x', { json: response([messageItem('x')]) });
    const reasoning = [
      { type: 'reasoning', id: 'rs_1', summary: [] },
      { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'gAAAA' },
      { type: 'reasoning', id: 'rs_3', summary: [], encrypted_content: 'signature:of another model' },
      { type: 'item_reference', id: 'rs_4' },
    ];
    const input = [{ role: 'user', content: 'a' }, ...reasoning, { role: 'user', content: 'b' }];
    await ask({ model: 'acme/native', store: true, reasoning: { effort: 'low' }, input });
    expect(lastRequest()?.body).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] });
    expect(lastRequest()?.body['input']).toEqual([input[0], reasoning[1], input.at(-1)]);
  });

  test('has its cached tokens charged once and its reasoning tokens charged as output', async () => {
    const details = {
      input_tokens: 1_000,
      input_tokens_details: { cached_tokens: 900 },
      output_tokens: 10,
      output_tokens_details: { reasoning_tokens: 8 },
    };
    stage.upstream.script('native-x', { json: response([messageItem('x')], { usage: details }) });
    const answer = await ask({ model: 'acme/native' });
    expect(answer.headers.get('x-cost-amount')).toBe('0.000480'); // 100 × 2 + 900 × 0.2 + 10 × 10
    expect((await recordOf(answer)).usage).toMatchObject({ cached_input_tokens: 900, reasoning_tokens: 8 });
  });

  test('has its text counted when it reports no usage', async () => {
    stage.upstream.script('native-x', { json: response([messageItem('x'.repeat(40))], { usage: null }) });
    const answer = await ask({ model: 'acme/native', input: 'y'.repeat(24) });
    expect(answer.headers.get('x-cost-amount')).toBe('0.000112'); // (24 / 4) × 2 + (40 / 4) × 10
  });

  test('has its named events relayed with only the model renamed, and charged by the usage of the last one', async () => {
    stage.upstream.script('native-x', { stream: responsesStream(['Grü', 'ße 😀']) });
    const answer = await ask({ model: 'acme/native', stream: true });
    expect(withUpstreamIds(answer.text)).toBe(
      responsesStream(['Grü', 'ße 😀'], {}).join('').replaceAll('gpt-x', 'acme/native'),
    );
    expect(await recordOf(answer)).toMatchObject({
      status: 200,
      style: 'responses',
      finish: 'completed',
      cost: { exact: '0.000070' },
    });
  });

  test('may end a stream by its own limit like any other end', async () => {
    const more = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
    stage.upstream.script('native-x', { stream: responsesStream(['a'], more) });
    const answer = await ask({ model: 'acme/native', stream: true });
    expect(answer.text).toContain('event: response.incomplete');
    expect(await recordOf(answer)).toMatchObject({
      status: 200,
      finish: 'max_output_tokens',
      cost: { exact: '0.000070' },
    });
  });
});

describe('a failing upstream of the responses style', () => {
  const failed = (error: object) =>
    event({ type: 'response.failed', response: response([], { status: 'failed', error, usage: null }) });

  test.each([
    ['refuses', { status: 500, json: {} }],
    ['answers that it failed', { json: response([], { status: 'failed', error: { code: 'server_error' } }) }],
    ['answers something else', { json: { object: 'list' } }],
    ['cuts the connection', 'cut' as const],
    ['says nothing', 'hang' as const],
  ])('that %s is followed by the next route in another style', async (_, script) => {
    stage.upstream.script('native-first', script);
    stage.upstream.script('second', { json: message('from the second') });
    const answer = await ask({ model: 'acme/native-two' });
    expect(answer.status, answer.text).toBe(200);
    expect(JSON.parse(answer.text).output[0].content[0].text).toBe('from the second');
    expect(answer.headers.get('x-cost-amount')).toBe('0.000070');
  });

  test.each([
    ['fails before content', [...begun(), failed({ code: 'server_error', message: 'no' })]],
    ['sends an error before content', [...begun(), event({ type: 'error', code: 'server_error', message: 'no' })]],
    ['ends before content', begun()],
  ])('that sends a stream that %s is followed by the next route', async (_, stream) => {
    stage.upstream.script('native-first', { stream });
    stage.upstream.script('second', { stream: messagesStream(['from', ' the second']) });
    const answer = await ask({ model: 'acme/native-two', stream: true });
    expect(answer.text).toContain('"delta":" the second"');
    expect(answer.text).not.toContain('resp_1');
    expect(await recordOf(answer)).toMatchObject({ status: 200, cost: { exact: '0.000070' } });
  });

  test.each([
    ['is cut', { stream: [...begun(), delta('x'.repeat(40))], then: 'cut' as const }],
    ['fails', { stream: [...begun(), delta('x'.repeat(40)), failed({ code: 'server_error', message: 'sk-secret' })] }],
    ['sends an error', { stream: [...begun(), delta('x'.repeat(40)), event({ type: 'error', message: 'sk-secret' })] }],
  ])(
    'that sends a stream that %s after content ends it with an error event, and the relayed text is charged',
    async (_, script) => {
      stage.upstream.script('native-x', script);
      const answer = await ask({ model: 'acme/native', stream: true, input: 'y'.repeat(24) });
      const [last, end] = answer.text.trimEnd().split('\n\n').slice(-2);
      expect(last).toMatch(/^event: error\ndata: /);
      expect(JSON.parse(last?.slice(last.indexOf('{')) ?? '')).toMatchObject({ type: 'error', code: 'upstream_error' });
      expect(end).toMatch(/^event: response\.failed\ndata: /);
      expect(answer.text).not.toContain('secret');
      expect(await recordOf(answer)).toMatchObject({
        status: 502,
        error_type: 'upstream_error',
        counted_here: true,
        cost: { exact: '0.000112' },
      });
    },
  );

  test("that reports the caller's mistake in the stream gives 400, and no other route is tried", async () => {
    const error = { code: 'invalid_prompt', message: 'Your prompt is not valid.' };
    stage.upstream.script('native-first', { stream: [...begun(), failed(error)] });
    const answer = await ask({ model: 'acme/native-two', stream: true });
    expect([answer.status, answer.json.error.message]).toEqual([400, error.message]);
  });

  test('is released when the caller disconnects, who pays for what was produced', async () => {
    const client = await stage.test.client();
    stage.upstream.script('native-x', { stream: [...begun(), delta('x'.repeat(40))], then: 'hang' });
    const leave = new AbortController();
    const answer = await fetch(`${stage.test.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'acme/native', input: 'y'.repeat(24), stream: true }),
      signal: leave.signal,
    });
    await answer.body?.getReader().read();
    leave.abort();
    await expect.poll(() => stage.upstream.open()).toBe(0);
    expect(await recordOf(answer, client)).toMatchObject({ status: 499, cost: { exact: '0.000112' } });
  });
});

describe('the responses style', () => {
  const tool = { type: 'function', name: 'look', parameters: { type: 'object' }, description: 'Looks.' };
  const conversation = [
    { role: 'developer', content: 'Be short.' },
    { role: 'user', content: [{ type: 'input_text', text: 'Look.' }] },
    {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'Hm.' }],
      encrypted_content: 'signature:c2ln',
    },
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"at":1}' },
    { type: 'function_call_output', call_id: 'call_1', output: 'a cat' },
  ];

  test('is translated to completions and back in a whole response', async () => {
    stage.upstream.script('gpt-x', { json: completion('A cat.') });
    const schema = { type: 'object', properties: {}, required: [], additionalProperties: false };
    const text = { format: { type: 'json_schema', name: 'answer', schema, strict: true } };
    const answer = await ask({
      model: 'acme/oai',
      instructions: 'Be kind.',
      input: conversation,
      tools: [tool],
      tool_choice: 'required',
      text,
      max_output_tokens: 50,
    });
    expect(lastRequest()?.body).toMatchObject({
      model: 'gpt-x',
      max_tokens: 50,
      tool_choice: 'required',
      messages: [
        { role: 'system', content: 'Be kind.\n\nBe short.' },
        { role: 'user', content: 'Look.' },
        { role: 'assistant', tool_calls: [{ id: 'call_1', function: { name: 'look', arguments: '{"at":1}' } }] },
        { role: 'tool', tool_call_id: 'call_1', content: 'a cat' },
      ],
      tools: [{ type: 'function', function: { name: 'look', description: 'Looks.' } }],
      response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true } },
    });
    const body = JSON.parse(answer.text);
    expect(body).toMatchObject({
      object: 'response',
      status: 'completed',
      model: 'acme/oai',
      instructions: 'Be kind.',
      store: false,
      tools: [tool],
      output: [
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'A cat.', annotations: [] }] },
      ],
      usage,
    });
    expect(answer.headers.get('x-cost-amount')).toBe('0.000070');
  });

  test('is translated to messages with signed thinking that returns to its upstream', async () => {
    stage.upstream.script('claude-x', { json: message('A cat.') });
    const answer = await ask({ model: 'acme/ant', input: conversation, tools: [tool] });
    expect(lastRequest()?.body['messages']).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: 'Look.' }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
          { type: 'tool_use', id: 'call_1', name: 'look', input: { at: 1 } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1' }] },
    ]);
    expect(JSON.parse(answer.text)).toMatchObject({ status: 'completed', output: [{ type: 'message' }] });
  });

  test('is translated from a messages stream to named and numbered events', async () => {
    stage.upstream.script('claude-x', { stream: messagesStream(['Hi', ' there']) });
    const answer = await ask({ model: 'acme/ant', stream: true, instructions: 'Be kind.', temperature: 0.5 });
    const events = answer.text
      .split('\n\n')
      .filter((frame) => frame.startsWith('event:'))
      .map((frame) => ({ name: /^event: (.*)$/m.exec(frame)?.[1], data: JSON.parse(frame.slice(frame.indexOf('{'))) }));
    expect(events.map(({ name }) => name)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(events.map(({ data }) => data.sequence_number)).toEqual(events.map((_, index) => index));
    expect(events.every(({ name, data }) => name === data.type)).toBe(true);
    const request = { model: 'acme/ant', instructions: 'Be kind.', temperature: 0.5, store: false };
    expect(events[0]?.data.response).toMatchObject({ ...request, status: 'in_progress' });
    expect(events.at(-1)?.data.response).toMatchObject({ ...request, status: 'completed', usage });
    expect(await recordOf(answer)).toMatchObject({ finish: 'completed', cost: { exact: '0.000070' } });
  });

  test('ends a stream that breaks off after content with an error event and charges the relayed text', async () => {
    stage.upstream.script('gpt-x', { stream: completionsStream(['x'.repeat(40)]).slice(0, 2), then: 'cut' });
    const answer = await ask({ model: 'acme/oai', stream: true, input: 'y'.repeat(24) });
    expect(answer.text).toContain('event: error');
    expect(answer.text).not.toContain('response.completed');
    expect(await recordOf(answer)).toMatchObject({ status: 502, cost: { exact: '0.000112' } });
  });

  test('refuses by name what no other style can express', async () => {
    const item = await ask({ model: 'acme/ant', input: [{ type: 'local_shell_call_output', id: 'x', output: '' }] });
    expect([item.status, item.json.error.param]).toEqual([400, 'input[0].type']);
  });
});

describe('a model that takes tools in the responses style only', () => {
  const sealed = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAA' };
  const called = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{"at":1}' };
  const schema = { type: 'object', properties: { at: { type: 'integer' } } };
  const messages: object[] = [{ role: 'user', content: 'Look.' }];
  const tools = [{ type: 'function', function: { name: 'look', parameters: schema } }];
  const complete = (body: object) =>
    stage.client.call('POST', '/v1/chat/completions', { model: 'acme/tools', messages, ...body });

  test('serves a tool loop of completions, and its reasoning returns signed', async () => {
    stage.upstream.script('tools-x', { json: response([sealed, called]) }, { json: response([messageItem('A cat.')]) });
    const first = await complete({ tools });
    expect(lastRequest()?.path).toBe('/v1/responses');
    expect(lastRequest()?.body).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] });
    expect(first.headers.get('x-cost-amount')).toBe('0.000070');
    const { message: answer } = JSON.parse(first.text).choices[0];
    expect(answer.tool_calls).toMatchObject([{ id: 'call_1', function: { name: 'look', arguments: '{"at":1}' } }]);
    const results = [{ role: 'tool', tool_call_id: 'call_1', content: 'a cat' }];
    const second = await complete({ tools, messages: [...messages, answer, ...results] });
    expect(JSON.parse(second.text).choices[0].message.content).toBe('A cat.');
    expect(lastRequest()?.body['input']).toMatchObject([
      { type: 'message', role: 'user' },
      { type: 'reasoning', encrypted_content: 'gAAA' },
      { type: 'function_call', call_id: 'call_1', arguments: '{"at":1}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'a cat' },
    ]);
  });

  test('serves a tool loop of streamed messages with the thought signature', async () => {
    const stream = [
      event({ type: 'response.created', response: response([], { status: 'in_progress' }) }),
      event({ type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning', summary: [] } }),
      event({ type: 'response.output_item.done', output_index: 0, item: sealed }),
      event({ type: 'response.output_item.added', output_index: 1, item: { ...called, arguments: '' } }),
      event({ type: 'response.function_call_arguments.delta', output_index: 1, delta: '{"at":1}' }),
      event({ type: 'response.output_item.done', output_index: 1, item: called }),
      event({ type: 'response.completed', response: response([sealed, called]) }),
    ];
    stage.upstream.script('tools-x', { stream });
    const body = { model: 'acme/tools', max_tokens: 100, stream: true, messages };
    const answer = await stage.client.call('POST', '/v1/messages', {
      ...body,
      tools: [{ name: 'look', input_schema: schema }],
    });
    expect(answer.text).toContain('"signature":"responses:gAAA"');
    expect(answer.text).toContain('"name":"look"');
    expect(answer.text).toContain('"stop_reason":"tool_use"');
    expect(await recordOf(answer)).toMatchObject({
      style: 'messages',
      finish: 'tool_use',
      cost: { exact: '0.000070' },
    });
  });

  test('serves completions without tools unchanged', async () => {
    stage.upstream.script('tools-x', { json: completion('Hi') });
    expect(withUpstreamIds((await complete({ tools: [] })).text)).toBe(
      JSON.stringify({ ...completion('Hi'), model: 'acme/tools' }),
    );
    expect(lastRequest()?.path).toBe('/v1/chat/completions');
  });

  test('relays callers of the responses style', async () => {
    stage.upstream.script('tools-x', { json: response([messageItem('x')]) });
    const answer = await ask({ model: 'acme/tools' });
    expect(withUpstreamIds(answer.text)).toBe(JSON.stringify(response([messageItem('x')], { model: 'acme/tools' })));
  });

  test("ends a stream that fails after content with the error of the caller's style", async () => {
    stage.upstream.script('tools-x', { stream: [...begun(), delta('x'.repeat(40))], then: 'cut' });
    const answer = await complete({ tools, stream: true });
    expect(answer.text).toContain('"type":"upstream_error"');
    expect(answer.text).not.toContain('[DONE]');
    expect(await recordOf(answer)).toMatchObject({ status: 502, counted_here: true });
  });
});

describe('the responses endpoint', () => {
  test.each([
    [{ conversation: 5 }, 'conversation'],
    [{ conversation: {} }, 'conversation.id'],
    [{ prompt: { id: 'pmpt_1' } }, 'prompt'],
    [{ background: 'yes' }, 'background'],
    [{ background: true, store: false }, 'store'],
    [{ service_tier: 'priority' }, 'service_tier'],
    [{ prompt_cache_options: { comparison_response_id: 'resp_1' } }, 'prompt_cache_options.comparison_response_id'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }] },
      'input[0].content[0].file_id',
    ],
    [{ input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] }, 'input[0].content[0].file_id'],
    [
      {
        input: [{ type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', file_id: 'f' } }],
      },
      'input[0].output.file_id',
    ],
    [
      { input: [{ type: 'code_interpreter_call', id: 'c', container_id: 'cntr_1', code: '' }] },
      'input[0].container_id',
    ],
    [{ tools: [{ type: 'web_search' }], tool_choice: 'required' }, 'tools[0].type'],
    [{ tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search' } }, 'tools[0].type'],
    [{ tools: 'all' }, 'tools'],
    [{ input: undefined }, 'input'],
    [{ input: [] }, 'input'],
    [{ input: 5 }, 'input'],
    [{ input: ['a'] }, 'input[0]'],
    [{ model: undefined }, 'model'],
    [{ stream: 'yes' }, 'stream'],
    [{ stream_options: {} }, 'stream_options'],
    [{ max_output_tokens: 0 }, 'max_output_tokens'],
  ])('refuses %j at no cost', async (body, param) => {
    const before = stage.upstream.requests.length;
    const answer = await ask({ model: 'acme/native', ...body });
    expect(answer.status, answer.text).toBe(400);
    expect(answer.json.error).toMatchObject({ type: 'invalid_request', param });
    expect(answer.json.error.message.startsWith(param)).toBe(true);
    expect(stage.upstream.requests).toHaveLength(before);
  });

  test("passes on the caller's own tools", async () => {
    stage.upstream.script('native-x', { json: response([messageItem('x')]) });
    const tools = [
      { type: 'function', name: 'a', parameters: { properties: { file_id: { type: 'string' } } } },
      { type: 'custom', name: 'b' },
      { type: 'local_shell' },
      { type: 'shell' },
      { type: 'shell', environment: { type: 'local' } },
      { type: 'apply_patch' },
      { type: 'namespace', name: 'n', description: 'N', tools: [{ type: 'function', name: 'c' }] },
    ];
    expect((await ask({ model: 'acme/native', tools })).status).toBe(200);
    expect(lastRequest()?.body['tools']).toEqual(tools);
  });

  test.each([
    { type: 'web_search' },
    { type: 'web_search_preview_2025_03_11' },
    { type: 'file_search', vector_store_ids: ['vs_1'] },
    { type: 'code_interpreter', container: { type: 'auto' } },
    { type: 'image_generation' },
    { type: 'shell', environment: { type: 'container_auto' } },
    { type: 'shell', environment: [{ type: 'container_auto' }] },
    { type: 'of_the_future' },
  ])('leaves out a tool that the provider would run: %j', async (tool) => {
    stage.upstream.script('native-x', { json: response([messageItem('x')]) });
    const own = { type: 'function', name: 'f' };
    const namespace = { type: 'namespace', name: 'n', description: 'N' };
    const nested = { ...namespace, tools: [tool, own] };
    const added = { type: 'additional_tools', role: 'developer', tools: [tool] };
    const input = [added, { role: 'user', content: 'Hi' }];
    const answer = await ask({ model: 'acme/native', input, tools: [nested, { ...namespace, tools: [tool] }, tool] });
    expect([answer.status, answer.headers.get('x-tools-left-out')]).toEqual([200, tool.type]);
    const { body } = lastRequest() ?? {};
    expect(body?.['tools']).toEqual([{ ...namespace, tools: [own] }]);
    expect(body?.['input']).toMatchObject([{ type: 'additional_tools', tools: [] }, { role: 'user' }]);
    expect(await recordOf(answer)).toMatchObject({ tools: { left_out: [tool.type] } });
    const alone = await ask({ model: 'acme/native', tools: [tool], tool_choice: 'auto', parallel_tool_calls: true });
    expect([alone.status, alone.headers.get('x-tools-left-out')]).toEqual([200, tool.type]);
    for (const field of ['tools', 'tool_choice', 'parallel_tool_calls'])
      expect(lastRequest()?.body).not.toHaveProperty(field);
  });

  test('leaves out the tools of an MCP server, also where nobody follows links', async () => {
    stage.upstream.script('native-x', { json: response([messageItem('x')]) });
    const mcp = { type: 'mcp', server_label: 'x', server_url: 'https://x.example' };
    const answer = await ask({ model: 'acme/native', tools: [mcp] });
    expect([answer.status, answer.headers.get('x-tools-left-out')]).toEqual([200, 'mcp']);
    const inside = await ask({ model: 'acme/native', tools: [{ ...mcp, server_url: 'http://169.254.169.254/' }] });
    expect([inside.status, inside.json.error.param]).toEqual([400, 'tools[0].server_url']);
  });

  test.each([
    ['GET', '/v1/responses/resp_1'],
    ['DELETE', '/v1/responses/resp_1'],
    ['POST', '/v1/responses/resp_1/cancel'],
    ['GET', '/v1/responses/resp_1/input_items?limit=5'],
  ])('knows no response of this id, so that %s %s gets 404', async (method, path) => {
    const answer = await stage.client.call(method, path);
    expect(answer.status).toBe(404);
    expect(answer.json.error).toMatchObject({ type: 'not_found', code: null, param: 'id' });
    expect(answer.json.error.message).toBe('Response with id "resp_1" not found.');
  });

  test('refuses models of other kinds', async () => {
    const answer = await ask({ model: 'sandbox/embedding' });
    expect([answer.status, answer.json.error.message]).toEqual([
      404,
      '"sandbox/embedding" is an embedding model: use POST /v1/embeddings.',
    ]);
  });
});

test('parallel calls never spend more than the balance', async () => {
  const client = await stage.test.client({ credit: '0.026000' }); // a hold: 2 × 2 + 1,000 × 10 millionths at most
  const refused = Promise.withResolvers<void>(); // the answers come behind a refusal: calls one by one would all be paid
  stage.upstream.script('native-x', { json: response([messageItem('x')]), after: refused.promise });
  const call = async () => {
    const answer = await ask({ model: 'acme/native' }, client);
    if (answer.status === 402) refused.resolve();
    return answer;
  };
  const answers = await Promise.all(Array.from({ length: 30 }, call));
  const statuses = answers.map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200, 402]));
  const paid = statuses.filter((status) => status === 200).length;
  const { balance, held } = (await client.call('GET', '/v1/balance')).json;
  expect(held.exact).toBe('0.000000');
  expect(Math.round(Number(balance.exact) * 1e6)).toBe(26_000 - 70 * paid);
});
