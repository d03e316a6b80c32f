import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import { begun, response, messageItem } from './responses-streams.ts';
import { completion, generated, hello, message, setStage, type Stage } from './setup.ts';
import { event, messageStart } from './streams.ts';

/** Tools that an upstream runs and bills: what they cost is held for, counted by the upstream's answer, and charged. */

let stage: Stage;
const tokens = `
      - { unit: input_token, per: 1000000, amount: "2.00" }
      - { unit: output_token, per: 1000000, amount: "10.00" }`;
const searches = `
      - { unit: web_search, per: 1000, amount: "10.00" }`;
const more = `
  - id: acme/seek
    kind: chat
    max_output_tokens: 1000
    price: ${tokens}${searches}
    routes:
      - provider: ant
        upstream_model: seek-x
        options: { hosted_tools: [web_search] }
        cost:
          - { unit: input_token, per: 1000000, amount: "1.00" }
          - { unit: output_token, per: 1000000, amount: "5.00" }
          - { unit: web_search, per: 1000, amount: "8.00" }
  - id: acme/unpriced
    kind: chat
    max_output_tokens: 1000
    price: ${tokens}
    routes: [{ provider: ant, upstream_model: seek-x, options: { hosted_tools: [web_search] } }]
  - id: acme/without
    kind: chat
    max_output_tokens: 1000
    price: ${tokens}${searches}
    routes: [{ provider: ant, upstream_model: seek-x }]
  - id: acme/native
    kind: chat
    max_output_tokens: 1000
    price: ${tokens}${searches}
      - { unit: code_interpreter, amount: "0.03" }
    routes:
      - provider: oai
        upstream_model: native-x
        options: { responses: true, hosted_tools: [web_search, code_interpreter] }
  - id: acme/sonar
    kind: chat
    max_output_tokens: 1000
    price: ${tokens}${searches}
    routes:
      - provider: oai
        upstream_model: perplexity/sonar
        options: { responses: always, structured_output: prompt, hosted_tools: [web_search] }
`;

beforeAll(async () => {
  stage = await setStage({ more });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const web = { type: 'web_search_20250305', name: 'web_search' };
const messages = (body: object, client = stage.client): Promise<Answered> =>
  client.call('POST', '/v1/messages', { model: 'acme/seek', max_tokens: 100, messages: hello, ...body });
const responses = (body: object, client = stage.client): Promise<Answered> =>
  client.call('POST', '/v1/responses', { model: 'acme/native', input: 'Hello', ...body });
const lastBody = () => stage.upstream.requests.at(-1)?.body;

/** An answer of messages style after so many searches. */
const searched = (web_search_requests: number) => ({
  ...message('Found.', { input_tokens: 100, output_tokens: 20, server_tool_use: { web_search_requests } }),
  content: [
    { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } },
    { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
    { type: 'text', text: 'Found.' },
  ],
});

type Recorded = { tools?: object; cost: { exact: string } };

async function recordOf(answer: Answered, client: Client = stage.client): Promise<Recorded> {
  const path = `/v1/chat/${answer.headers.get('x-request-id')}`;
  await expect.poll(async () => (await client.call('GET', path)).status).toBe(200);
  return JSON.parse((await client.call('GET', path)).text) as Recorded;
}

async function chargeOf(answer: Answered): Promise<{ units: object; upstream_cost: string | null }> {
  const [row] = await stage.test.app.db.query<{ units: object; upstream_cost: string | null }>(
    'select units, upstream_cost::text from ledger_entries where ref = $1 and units is not null',
    [answer.headers.get('x-request-id')],
  );
  if (!row) throw new Error('the call was not settled');
  return row;
}

describe('a search of the messages style', () => {
  test.each([
    [{}, 5],
    [{ max_uses: 3 }, 3],
    [{ max_uses: 50 }, 20],
  ])('is sent with a greatest number of uses: %j', async (bound, sent) => {
    stage.upstream.script('seek-x', { json: searched(2) });
    const answer = await messages({ tools: [{ ...web, ...bound }] });
    expect([answer.status, answer.headers.get('x-tools-left-out')]).toEqual([200, null]);
    expect(lastBody()?.['tools']).toEqual([{ ...web, max_uses: sent }]);
    expect(answer.headers.get('x-cost-amount')).toBe('0.020400'); // 100 × 2 + 20 × 10 millionths and two searches
    expect(await recordOf(answer)).toMatchObject({ tools: { calls: { web_search: 2 } }, cost: { exact: '0.020400' } });
    expect(await chargeOf(answer)).toMatchObject({ units: { web_search: '2' }, upstream_cost: '16200' });
  });

  test('that was not used costs nothing and is in no record', async () => {
    stage.upstream.script('seek-x', { json: message('Hi', { input_tokens: 100, output_tokens: 20 }) });
    const answer = await messages({ tools: [web] });
    expect(answer.headers.get('x-cost-amount')).toBe('0.000400');
    expect(await recordOf(answer)).not.toHaveProperty('tools');
    expect(await chargeOf(answer)).toMatchObject({ upstream_cost: '200' });
  });

  test('costs no more than its bound, whatever the upstream reports', async () => {
    stage.upstream.script('seek-x', { json: searched(9) });
    const answer = await messages({ tools: [{ ...web, max_uses: 3 }] });
    expect(answer.headers.get('x-cost-amount')).toBe('0.030400');
    expect(await chargeOf(answer)).toMatchObject({ units: { web_search: '3' }, upstream_cost: '72200' });
  });

  test('that the caller did not ask for is the operator’s', async () => {
    stage.upstream.script('seek-x', { json: searched(1) });
    expect((await messages({})).headers.get('x-cost-amount')).toBe('0.000400');
  });

  test.each(['acme/unpriced', 'acme/without'])('is left out by %s', async (model) => {
    stage.upstream.script('seek-x', { json: message('Hi') });
    const answer = await messages({ model, tools: [web, { name: 'f', input_schema: { type: 'object' } }] });
    expect([answer.status, answer.headers.get('x-tools-left-out')]).toEqual([200, web.type]);
    expect(lastBody()?.['tools']).toEqual([{ name: 'f', input_schema: { type: 'object' } }]);
    expect(await recordOf(answer)).toMatchObject({ tools: { left_out: [web.type] } });
  });

  test('is charged in a stream, by the upstream’s count at its end', async () => {
    const search = { type: 'server_tool_use', id: 's', name: 'web_search', input: {} };
    const result = { type: 'web_search_tool_result', tool_use_id: 's', content: [] };
    const begin = [
      messageStart({ input_tokens: 100, output_tokens: 1 }),
      event({ type: 'content_block_start', index: 0, content_block: search }),
      event({ type: 'content_block_stop', index: 0 }),
      event({ type: 'content_block_start', index: 1, content_block: result }),
      event({ type: 'content_block_stop', index: 1 }),
    ];
    const end = (web_search_requests: number) => [
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 20, server_tool_use: { web_search_requests } },
      }),
      event({ type: 'message_stop' }),
    ];
    for (const [count, cost] of [
      [1, '0.010400'],
      [0, '0.000400'], // it failed, and is not billed
    ] as const) {
      stage.upstream.script('seek-x', { stream: [...begin, ...end(count)] });
      const answer = await messages({ tools: [web], stream: true });
      expect(await recordOf(answer)).toMatchObject({ cost: { exact: cost } });
    }
    stage.upstream.script('seek-x', { stream: begin, then: 'cut' });
    const cut = await messages({ tools: [web], stream: true });
    expect(await recordOf(cut)).toMatchObject({ tools: { calls: { web_search: 1 } } });
    expect(await chargeOf(cut)).toMatchObject({ units: { web_search: '1' } });
  });
});

describe('the search of Claude Code, a call of its own with the tool alone', () => {
  const body = {
    stream: true,
    system: [{ type: 'text', text: 'You are an assistant for performing a web search tool use' }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Perform a web search for the query: q' }] }],
    tools: [{ ...web, max_uses: 8 }],
  };
  const results = [{ type: 'web_search_result', url: 'https://a.example', title: 'A', encrypted_content: 'x' }];
  const stream = [
    messageStart({ input_tokens: 100, output_tokens: 1 }),
    event({
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
    }),
    event({ type: 'content_block_stop', index: 0 }),
    event({
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'web_search_tool_result', tool_use_id: 's', content: results },
    }),
    event({ type: 'content_block_stop', index: 1 }),
    event({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 20, server_tool_use: { web_search_requests: 1 } },
    }),
    event({ type: 'message_stop' }),
  ];

  test('is passed on where it is sold, with its results as they came', async () => {
    stage.upstream.script('seek-x', { stream });
    const answer = await messages(body);
    expect(lastBody()).toMatchObject({ tools: [{ ...web, max_uses: 8 }] });
    expect(answer.text).toContain(JSON.stringify(results));
    expect(await recordOf(answer)).toMatchObject({ cost: { exact: '0.010400' } });
  });

  test.each(['acme/oai', 'acme/gem', 'acme/without'])(
    'is answered by %s without a search, unless it must search',
    async (model) => {
      stage.upstream.script('gpt-x', { json: completion('From memory.') });
      stage.upstream.script('gemini-x', { json: generated([{ text: 'From memory.' }]) });
      stage.upstream.script('seek-x', { json: message('From memory.') });
      const answer = await messages({ ...body, model, stream: false });
      expect([answer.status, answer.headers.get('x-tools-left-out')]).toEqual([200, web.type]);
      expect(lastBody()).not.toHaveProperty('tools');
      const forced = await messages({ ...body, model, tool_choice: { type: 'tool', name: 'web_search' } });
      expect([forced.status, forced.json.error.message]).toMatchObject([
        400,
        expect.stringMatching(/^tools\[0\]\.type "web_search_20250305" is run by a provider/),
      ]);
    },
  );
});

describe('hosted tools of the responses style', () => {
  const search = (type: string) => ({ type: 'web_search_call', id: 'ws', status: 'completed', action: { type } });
  const code = (container_id: string) => ({ type: 'code_interpreter_call', id: 'ci', container_id, code: '1' });
  const tools = [{ type: 'web_search' }, { type: 'code_interpreter', container: { type: 'auto' } }];
  const output = [search('search'), search('open_page'), search('search'), code('a'), code('a'), messageItem('Found.')];

  test.each([
    [{}, 5],
    [{ max_tool_calls: 3 }, 3],
    [{ max_tool_calls: 99 }, 20],
  ])('are sent with a greatest number of calls: %j', async (bound, sent) => {
    stage.upstream.script('native-x', { json: response(output) });
    const answer = await responses({ tools, ...bound });
    expect(lastBody()).toMatchObject({ tools, max_tool_calls: sent });
    expect(answer.headers.get('x-cost-amount')).toBe('0.050070'); // 10 × 2 + 5 × 10 millionths, two searches, one container
    expect(await chargeOf(answer)).toMatchObject({ units: { web_search: '2', code_interpreter: '1' } });
    expect(await recordOf(answer)).toMatchObject({ tools: { calls: { web_search: 2, code_interpreter: 1 } } });
  });

  test('are charged in a stream, also in one that breaks off', async () => {
    const items = output.map((item, output_index) =>
      event({ type: 'response.output_item.done', sequence_number: 5, output_index, item }),
    );
    const ended = event({ type: 'response.completed', sequence_number: 9, response: response(output) });
    stage.upstream.script('native-x', { stream: [...begun(), ...items, ended] });
    const whole = await responses({ tools, stream: true });
    expect(await recordOf(whole)).toMatchObject({ cost: { exact: '0.050070' } });
    stage.upstream.script('native-x', { stream: [...begun(), ...items.slice(0, 3)], then: 'cut' });
    const cut = await responses({ tools, stream: true });
    expect(await recordOf(cut)).toMatchObject({ tools: { calls: { web_search: 2 } } });
  });

  test.each([
    { type: 'code_interpreter', container: 'cntr_of_another' },
    { type: 'code_interpreter', container: { type: 'auto', file_ids: ['file_of_another'] } },
    { type: 'file_search', vector_store_ids: ['vs_of_another'] },
  ])('that would read what lies in the account are left out: %j', async (tool) => {
    stage.upstream.script('native-x', { json: response([messageItem('x')]) });
    const answer = await responses({ tools: [tool] });
    expect([answer.status, answer.headers.get('x-tools-left-out')]).toEqual([200, tool.type]);
  });
});

describe('searches of Perplexity', () => {
  const tools = [{ type: 'web_search' }];
  const results = { type: 'search_results', queries: ['a', 'b'], results: [{ id: 1, url: 'https://example.com/a' }] };
  const usage = {
    input_tokens: 30,
    input_tokens_details: { cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
    output_tokens: 5,
    total_tokens: 35,
    tool_calls_details: { search_web: { invocation: 3, cost_usd: 0.0075 } },
    cost: { currency: 'USD', input_cost: 0.1, output_cost: 0.1, tool_calls_cost: 0.0075, total_cost: 0.2075 },
  };
  const done = { ...response([results, messageItem('Found.')]), usage };
  const ask = (body: object) => responses({ model: 'acme/sonar', tools, ...body });

  test('are charged as its usage counts them, and its costs stay here', async () => {
    stage.upstream.script('perplexity/sonar', { json: done });
    const answer = await ask({});
    expect(lastBody()).toMatchObject({ model: 'perplexity/sonar', tools, max_tool_calls: 5 });
    expect(answer.headers.get('x-cost-amount')).toBe('0.030110'); // 30 × 2 + 5 × 10 millionths and three searches
    expect(answer.text).not.toContain('cost');
    expect(answer.json).toMatchObject({ output: [results, {}], usage: { total_tokens: 35 } });
    expect(await chargeOf(answer)).toMatchObject({ units: { web_search: '3' } });
  });

  test('are charged in a stream, and by their items in one that breaks off', async () => {
    const done_event = event({ type: 'response.output_item.done', sequence_number: 2, output_index: 0, item: results });
    const partial = { total_tokens: 3, cost: { total_cost: 0.1 } };
    const half = event({ type: 'response.reasoning.search_results', sequence_number: 1, results: [], usage: partial });
    const ended = event({ type: 'response.completed', sequence_number: 9, response: done });
    stage.upstream.script('perplexity/sonar', { stream: [...begun(), half, done_event, ended] });
    const whole = await ask({ stream: true });
    expect(whole.text).not.toContain('cost');
    expect(await recordOf(whole)).toMatchObject({ tools: { calls: { web_search: 3 } }, cost: { exact: '0.030110' } });
    stage.upstream.script('perplexity/sonar', { stream: [...begun(), half, done_event], then: 'cut' });
    expect(await recordOf(await ask({ stream: true }))).toMatchObject({ tools: { calls: { web_search: 1 } } });
  });

  test('are not offered to callers of another style, whose calls reach it all the same', async () => {
    stage.upstream.script('perplexity/sonar', { json: response([messageItem('Hi')]) });
    const body = { model: 'acme/sonar', messages: hello, response_format: { type: 'json_object' } };
    const answer = await stage.client.call('POST', '/v1/chat/completions', body);
    expect(answer.status).toBe(200);
    expect(stage.upstream.requests.at(-1)?.path).toBe('/v1/responses');
    expect(lastBody()).not.toHaveProperty('text');
    expect(lastBody()).toMatchObject({ instructions: expect.stringContaining('JSON object only'), store: false });
  });
});

describe('the hold of a call with hosted tools', () => {
  test('has room for every search and for what the model reads of it', async () => {
    stage.upstream.script('seek-x', { json: searched(1) });
    const poor = await stage.test.client({ credit: '0.050000' });
    expect((await messages({ tools: [{ ...web, max_uses: 5 }] }, poor)).status).toBe(402);
    expect((await messages({ tools: [{ ...web, max_uses: 1 }] }, poor)).status).toBe(200);
    expect((await messages({}, poor)).status).toBe(200);
  });

  test('never lets parallel calls spend more than the balance', async () => {
    stage.upstream.script('seek-x', { json: searched(2) });
    const client = await stage.test.client({ credit: '0.300000' });
    const calls = Array.from({ length: 20 }, () => messages({ tools: [{ ...web, max_uses: 2 }] }, client));
    const answers = await Promise.all(calls);
    const paid = answers.filter(({ status }) => status === 200).length;
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 402]));
    const { balance, held } = (await client.call('GET', '/v1/balance')).json;
    expect(held.exact).toBe('0.000000');
    expect(Math.round(Number(balance.exact) * 1e6)).toBe(300_000 - 20_400 * paid);
  });
});
