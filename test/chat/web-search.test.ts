import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import { startSearchApi, type SearchServer } from '../helpers/search-api.ts';
import { calls, says, upstream_models, type UpstreamStyle } from './search-streams.ts';
import { setStage, yamlOf, type Stage } from './setup.ts';

/** Searches of the web that the service runs itself, for callers and upstreams of each style. */

let stage: Stage;
let search: SearchServer;

beforeAll(async () => {
  search = await startSearchApi();
  process.env['TEST_SEARCH_KEY'] = 'search-secret-0123456789';
  stage = await setStage({ more: `${more}${toolsOf(search.url)}` });
});
beforeEach(() => search.play(() => ({ results: pages })));
afterEach(() => expectExactBooks(stage.test.app));
afterAll(async () => {
  await stage.stop();
  await search.stop();
});

const more = `
  - id: acme/native
    kind: chat
    max_output_tokens: 1000
    price:
      - { unit: input_token, per: 1000000, amount: "2.00" }
      - { unit: output_token, per: 1000000, amount: "10.00" }
    routes: [{ provider: oai, upstream_model: native-x, options: { responses: always } }]
  - id: acme/plain
    kind: chat
    max_output_tokens: 1000
    price:
      - { unit: input_token, per: 1000000, amount: "2.00" }
      - { unit: output_token, per: 1000000, amount: "10.00" }
    routes:
      - provider: oai
        upstream_model: gpt-x
        cost:
          - { unit: input_token, per: 1000000, amount: "1.00" }
          - { unit: output_token, per: 1000000, amount: "5.00" }
  - id: acme/slow
    kind: chat
    max_output_tokens: 1000
    price: []
    routes: [{ provider: oai, upstream_model: slow-x, timeout: { first_byte: 2s, idle: 2s, total: 3s } }]
  - id: acme/pair
    kind: chat
    max_output_tokens: 1000
    price:
      - { unit: input_token, per: 1000000, amount: "2.00" }
      - { unit: output_token, per: 1000000, amount: "10.00" }
    routes: [{ provider: oai, upstream_model: gpt-x }, { provider: ant, upstream_model: claude-x }]
`;
/** A search that is never answered is given up after `timeout`; all others have time on a busy machine. */
const toolsOf = (url: string, fields = '', timeout = '60s') => `
tools:
  web_search:
    api: tavily
    base_url: "${url}"
    api_key: env:TEST_SEARCH_KEY
    price: "5.00"
    per: 1000
    cost: "4.00"
    searches_max: 3
    timeout: ${timeout}
    allow_private: true
    ${fields}
`;
const models: { readonly [style in UpstreamStyle]: string } = {
  completions: 'acme/oai',
  messages: 'acme/ant',
  gemini: 'acme/gem',
  responses: 'acme/native',
};
const pages = [
  { url: 'https://a.example/one', title: 'One', content: 'The <b>first</b> page.' },
  { url: 'https://b.example/two', title: 'Two', content: 'The second page.' },
];
const text = 'As [One](https://a.example/one) says.';

type CallerStyle = 'completions' | 'messages' | 'gemini' | 'responses';
const callers: CallerStyle[] = ['completions', 'messages', 'gemini', 'responses'];
const upstreams: UpstreamStyle[] = ['completions', 'messages', 'gemini', 'responses'];

type Asking = { stream?: boolean; more?: object; client?: Client; tool?: object };

/** Asks with a search among the tools, in the words of the style. */
function ask(style: CallerStyle, model: string, { stream = false, more: fields = {}, client, tool = {} }: Asking = {}) {
  const call = (path: string, body: object): Promise<Answered> => (client ?? stage.client).call('POST', path, body);
  const messages = [{ role: 'user', content: 'Hello' }];
  switch (style) {
    case 'completions':
      return call('/v1/chat/completions', { model, stream, messages, web_search_options: tool, ...fields });
    case 'messages': {
      const tools = [{ type: 'web_search_20250305', name: 'web_search', ...tool }];
      return call('/v1/messages', { model, stream, max_tokens: 500, messages, tools, ...fields });
    }
    case 'responses': {
      const tools = [{ type: 'web_search', ...tool }];
      return call('/v1/responses', { model, stream, input: 'Hello', tools, ...fields });
    }
    case 'gemini': {
      const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
      const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];
      return call(`/v1beta/models/${model}:${method}`, { contents, tools: [{ googleSearch: tool }], ...fields });
    }
  }
}

function script(style: UpstreamStyle, stream: boolean, queries: string[][], answer_text = text): void {
  const rounds = queries.map((all) =>
    calls(
      style,
      stream,
      all.map((query) => ({ input: { query } })),
    ),
  );
  stage.upstream.script(upstream_models[style], ...rounds, says(style, stream, answer_text));
}

type Recorded = {
  tools?: { calls?: object; left_out?: string[] };
  cost: { exact: string };
  usage: object;
  status: number;
};

async function recordOf(answer: Answered, client: Client = stage.client): Promise<Recorded> {
  const path = `/v1/chat/${answer.headers.get('x-request-id')}`;
  await expect.poll(async () => (await client.call('GET', path)).status).toBe(200);
  return JSON.parse((await client.call('GET', path)).text) as Recorded;
}

const bodyOf = (answer: Answered) => JSON.parse(answer.text) as Record<string, unknown>;
const lastBody = () => JSON.stringify(stage.upstream.requests.at(-1)?.body);

const annotation = { start_index: 3, end_index: 31, url: pages[0]?.url, title: 'One' };
const shown: { readonly [style in CallerStyle]: object } = {
  completions: {
    choices: [
      {
        message: { content: text, annotations: [{ type: 'url_citation', url_citation: annotation }] },
        finish_reason: 'stop',
      },
    ],
  },
  messages: {
    content: [
      { type: 'server_tool_use', name: 'web_search', input: { query: 'q' } },
      {
        type: 'web_search_tool_result',
        content: [
          { type: 'web_search_result', url: pages[0]?.url, title: 'One' },
          { type: 'web_search_result', url: pages[1]?.url, title: 'Two' },
        ],
      },
      { type: 'text', text, citations: [{ type: 'web_search_result_location', url: pages[0]?.url, title: 'One' }] },
    ],
    stop_reason: 'end_turn',
    usage: { server_tool_use: { web_search_requests: 1 } },
  },
  responses: {
    status: 'completed',
    output: [
      { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'q' } },
      { type: 'message', content: [{ text, annotations: [{ type: 'url_citation', ...annotation }] }] },
    ],
  },
  gemini: {
    candidates: [
      {
        content: { parts: [{ text }] },
        finishReason: 'STOP',
        groundingMetadata: {
          webSearchQueries: ['q'],
          groundingChunks: [{ web: { uri: pages[0]?.url, title: 'One' } }, { web: { uri: pages[1]?.url } }],
          groundingSupports: [
            {
              segment: { startIndex: 3, endIndex: 31, text: '[One](https://a.example/one)' },
              groundingChunkIndices: [0],
            },
          ],
        },
      },
    ],
  },
};

describe('a search for a caller', () => {
  const pairs = callers.flatMap((caller) => upstreams.map((upstream) => [caller, upstream] as const));

  test.each(pairs)(
    'of %s style by an upstream of %s style is shown in the answer, and charged',
    async (caller, upstream) => {
      script(upstream, false, [['q']]);
      const before = search.requests.length;
      const answer = await ask(caller, models[upstream]);
      expect([answer.status, answer.headers.get('x-tools-left-out')]).toEqual([200, null]);
      expect(bodyOf(answer)).toMatchObject(shown[caller]);
      expect(search.requests.slice(before)).toMatchObject([
        { path: '/search', headers: { authorization: 'Bearer search-secret-0123456789' } },
      ]);
      expect(lastBody()).toContain('The first page.');
      expect(answer.headers.get('x-cost-amount')).toBe('0.005140'); // two rounds of 70 millionths and a search
      expect(await recordOf(answer)).toMatchObject({
        tools: { calls: { web_search: 1 } },
        cost: { exact: '0.005140' },
      });
    },
  );

  const events: { readonly [style in CallerStyle]: RegExp[] } = {
    completions: [
      /"content":"As /,
      /"delta":\{"annotations":\[\{"type":"url_citation"/,
      /"finish_reason":"stop"/,
      /\[DONE\]/,
    ],
    messages: [
      /"type":"server_tool_use"/,
      /"partial_json":"\{\\"query\\":\\"q\\"\}"/,
      /"type":"web_search_tool_result"/,
      /"text_delta"/,
      /"citations_delta"/,
      /"stop_reason":"end_turn"/,
      /"web_search_requests":1/,
      /message_stop/,
    ],
    responses: [
      /event: response.web_search_call.in_progress/,
      /event: response.web_search_call.searching/,
      /event: response.web_search_call.completed/,
      /response.output_text.delta/,
      /response.output_text.annotation.added/,
      /event: response.completed/,
    ],
    gemini: [/"text":"As /, /"groundingMetadata":\{"webSearchQueries":\["q"\]/],
  };

  test.each(pairs)('of %s style by an upstream of %s style is streamed', async (caller, upstream) => {
    script(upstream, true, [['q']]);
    const answer = await ask(caller, models[upstream], { stream: true });
    expect(answer.status).toBe(200);
    let from = 0;
    for (const sign of events[caller]) {
      const at = answer.text.slice(from).search(sign);
      expect([sign, at]).not.toEqual([sign, -1]);
      from += at;
    }
    expect(answer.text).not.toContain('call_0');
    expect(await recordOf(answer)).toMatchObject({ tools: { calls: { web_search: 1 } }, cost: { exact: '0.005140' } });
  });

  test('may follow another, and several are asked at once', async () => {
    script('messages', false, [['a'], ['b', 'c']]);
    const answer = await ask('responses', 'acme/ant');
    const queries = search.requests.slice(-3).map(({ body }) => (JSON.parse(body) as { query: string }).query);
    expect(queries.toSorted()).toEqual(['a', 'b', 'c']);
    expect(bodyOf(answer)).toMatchObject({
      output: [{ action: { query: 'a' } }, { action: { query: 'b' } }, { action: { query: 'c' } }, { type: 'message' }],
    });
    expect(answer.headers.get('x-cost-amount')).toBe('0.015210');
    const ids = lastBody()?.match(/"tool_use_id":"[^"]+"/g) ?? [];
    expect(new Set(ids).size).toBe(3);
  });

  test.each([
    ['messages', { max_uses: 1 }, 1],
    ['messages', { max_uses: 9 }, 3],
    ['completions', {}, 3],
  ] as const)('of %s style with %j is made %i times at most', async (caller, tool, most) => {
    const before = search.requests.length;
    stage.upstream.script('gpt-x', calls('completions', false, [{ input: { query: 'more' } }]));
    const answer = await ask(caller, 'acme/oai', { tool });
    expect(answer.status).toBe(200);
    expect(search.requests.length - before).toBe(most);
    expect(stage.upstream.requests.at(-1)?.body).toMatchObject({ tool_choice: 'none' });
    expect(await recordOf(answer)).toMatchObject({ tools: { calls: { web_search: most } } });
  });

  test('that a model calls for without end is refused a few times, and then left out', async () => {
    const before = search.requests.length;
    script('messages', false, [Array.from({ length: 60 }, (_, index) => `q${index}`)]);
    const answer = await ask('messages', 'acme/ant');
    expect([answer.status, search.requests.length - before]).toEqual([200, 3]);
    const { content } = bodyOf(answer) as { content: { type: string }[] };
    expect(content.filter(({ type }) => type === 'server_tool_use')).toHaveLength(7);
    expect(lastBody()?.match(/"type":"tool_use"/g)).toHaveLength(7);
    expect(lastBody()?.match(/"type":"tool_result"/g)).toHaveLength(7);
  });

  test('is limited to the domains that the caller names', async () => {
    script('completions', false, [['q']]);
    const answer = await ask('messages', 'acme/oai', { tool: { allowed_domains: ['b.example'] } });
    expect(search.requests.at(-1)?.body).toContain('"include_domains":["b.example"]');
    expect(answer.text).toContain('https://b.example/two');
    expect(bodyOf(answer)['content']).toMatchObject([{}, { content: [{ url: 'https://b.example/two' }] }, {}]);
  });

  test('stands beside functions of the caller’s, whose calls end the answer', async () => {
    const mixed = [{ input: { query: 'q' } }, { name: 'look', input: { at: 1 } }];
    const parameters = { type: 'object', properties: { at: { type: 'integer' } } };
    const tools = [{ type: 'web_search' }, { type: 'function', name: 'look', parameters }];
    for (const stream of [false, true]) {
      stage.upstream.script('claude-x', calls('messages', stream, mixed, 'Wait.'));
      const answer = await ask('responses', 'acme/ant', { stream, more: { tools } });
      expect(answer.text).toMatch(/"type":"web_search_call"/);
      expect(answer.text).toMatch(/"type":"function_call".*"name":"look"/);
      expect(answer.text).not.toMatch(/"name":"web_search"/);
    }
  });

  test('is forced once where the caller’s choice forces it', async () => {
    script('messages', false, [['q']]);
    const tool_choice = { type: 'tool', name: 'web_search' };
    expect((await ask('messages', 'acme/ant', { more: { tool_choice } })).status).toBe(200);
    const [first, second] = stage.upstream.requests.slice(-2).map(({ body }) => body['tool_choice']);
    expect([first, second]).toEqual([tool_choice, { type: 'auto' }]);
    script('completions', false, [['q']]);
    const choice = { type: 'web_search' };
    expect((await ask('responses', 'acme/oai', { more: { tool_choice: choice } })).status).toBe(200);
    expect(stage.upstream.requests.at(-2)?.body['tool_choice']).toMatchObject({ function: { name: 'web_search' } });
  });

  test('is a text for the model in the next turn, also where its upstream has the style of the caller', async () => {
    script('messages', false, [['q']]);
    const first = bodyOf(await ask('messages', 'acme/ant'));
    const messages = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: first['content'] },
      { role: 'user', content: 'And now?' },
    ];
    for (const [model, upstream] of [
      ['acme/ant', 'messages'],
      ['acme/oai', 'completions'],
    ] as const) {
      stage.upstream.script(upstream_models[upstream], says(upstream, false, 'Fine.'));
      const body = { model, max_tokens: 100, messages };
      expect((await stage.client.call('POST', '/v1/messages', body)).status).toBe(200);
      expect(lastBody()).toContain('The first page.');
      expect(lastBody()).not.toMatch(/server_tool_use|encrypted|srvtoolu/);
    }
  });

  test('of responses is stored, and continued by its id', async () => {
    script('completions', false, [['q']]);
    const { id } = bodyOf(await ask('responses', 'acme/oai'));
    stage.upstream.script('claude-x', says('messages', false, 'Fine.'));
    const body = { model: 'acme/ant', input: 'And now?', previous_response_id: id };
    expect((await stage.client.call('POST', '/v1/responses', body)).status).toBe(200);
    expect(lastBody()).toContain('web search call');
  });
});

describe('a search that fails', () => {
  const hostile: [what: string, play: Parameters<SearchServer['play']>[0]][] = [
    ['is refused', (_, response) => void response.writeHead(403).end('no')],
    ['is over the limit', (_, response) => void response.writeHead(429).end('{}')],
    ['is no JSON', (_, response) => void response.writeHead(200).end('<html>')],
    ['is JSON of another kind', () => ({ results: 'many' })],
    ['is deep', (_, response) => void response.writeHead(200).end('['.repeat(100_000))],
    [
      'redirects elsewhere',
      (_, response) => void response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
    ],
    ['never answers', () => undefined],
    [
      'is cut off',
      (_, response) =>
        void response.writeHead(200, { 'content-length': '100' }).write('{"re', () => response.destroy()),
    ],
    [
      'is megabytes',
      (_, response) => void response.writeHead(200).end(`{"results":[${'{"url":1},'.repeat(400_000)}{}]}`),
    ],
  ];

  beforeAll(async () => {
    await stage.test.configure(yamlOf(stage.upstream, `${more}${toolsOf(search.url, '', '3s')}`));
  });
  afterAll(async () => {
    await stage.test.configure(yamlOf(stage.upstream, `${more}${toolsOf(search.url)}`));
  });

  test.each(hostile)('because the answer %s is an error for the model, and costs nothing', async (_, play) => {
    search.play(play);
    for (const stream of [false, true]) {
      script('completions', stream, [['q']], 'From memory.');
      const answer = await ask('messages', 'acme/oai', { stream });
      expect(answer.status).toBe(200);
      expect(answer.text).toMatch(/"web_search_tool_result_error","error_code":"(?:unavailable|too_many_requests)"/);
      expect(answer.text).toContain('From memory.');
      expect(answer.text).not.toMatch(/search-secret|127\.0\.0\.1/);
      const record = await recordOf(answer);
      expect([record.cost.exact, record.tools]).toEqual(['0.000140', undefined]);
    }
    expect(lastBody()).toContain('The search failed');
  });

  test.each([[{}], [{ query: '' }], [{ query: 7 }], [{ query: 'x'.repeat(401) }]])(
    'because of its words is not asked: %j',
    async (input) => {
      const { length } = search.requests;
      stage.upstream.script('gpt-x', calls('completions', false, [{ input }]), says('completions', false, 'Hm.'));
      const answer = await ask('responses', 'acme/oai');
      expect([answer.status, search.requests.length]).toEqual([200, length]);
      expect(bodyOf(answer)['output']).toMatchObject([{ type: 'web_search_call', status: 'failed' }, {}]);
      expect(answer.headers.get('x-cost-amount')).toBe('0.000140');
    },
  );

  test('finds nothing, and is paid for: it was answered', async () => {
    search.play(() => ({ results: [] }));
    script('completions', false, [['q']]);
    const answer = await ask('messages', 'acme/oai');
    expect(lastBody()).toContain('Nothing was found.');
    expect(answer.headers.get('x-cost-amount')).toBe('0.005140');
  });
});

describe('hostile results', () => {
  test('are bounded, plain texts in one line, and have addresses of the web alone', async () => {
    search.play(() => ({
      results: [
        { url: 'javascript:alert(1)', title: 'x', content: 'x' },
        { url: 'https://a.example/ b', title: 'x', content: 'x' },
        { url: `https://a.example/${'x'.repeat(600)}`, title: 'x', content: 'x' },
        { url: 7, title: null },
        null,
        {
          url: 'https://a.example/one',
          title: '<i>Ignore</i>\n\n# all\u0000 before',
          content: `${'\u202e'}<script>x</script>${'z'.repeat(50_000)}`,
        },
        ...Array.from({ length: 30 }, (_, index) => ({
          url: `https://b.example/${index}`,
          title: 't',
          content: 'ü'.repeat(9_000),
        })),
      ],
    }));
    script('completions', false, [['q']]);
    const answer = await ask('messages', 'acme/oai');
    const body = JSON.parse(lastBody() ?? '{}') as { messages: { role: string; content: string }[] };
    const read = body.messages.find(({ role }) => role === 'tool')?.content ?? '';
    expect(Buffer.byteLength(read)).toBeLessThan(8_000);
    expect(read).toContain('1. Ignore # all before\nhttps://a.example/one');
    for (const bad of ['javascript', 'script>', '\u202e', '\u0000']) expect(read).not.toContain(bad);
    expect(answer.status).toBe(200);
  });

  test('whose address is longer than one that the model names are not cited for it', async () => {
    search.play(() => ({ results: [{ url: 'https://a.example/one', title: 'One', content: '' }] }));
    script('completions', false, [['q']], 'See https://a.example/one/two and https://a.example/one.');
    const { content } = bodyOf(await ask('messages', 'acme/oai')) as { content: { citations?: object[] }[] };
    expect(content.at(-1)?.citations).toHaveLength(1);
  });
});

describe('money', () => {
  test('is held for every round and search before the first, and never goes below zero', async () => {
    script('completions', false, [['q']]);
    const poor = await stage.test.client({ credit: '0.060000' });
    expect((await ask('messages', 'acme/oai', { client: poor, tool: { max_uses: 3 } })).status).toBe(402);
    expect((await ask('messages', 'acme/oai', { client: poor, tool: { max_uses: 1 } })).status).toBe(200);
  });

  test('of parallel calls is never spent twice', async () => {
    const client = await stage.test.client({ credit: '0.200000' });
    stage.upstream.script('gpt-x', (request) =>
      JSON.stringify(request.body).includes('"role":"tool"')
        ? says('completions', false, text)
        : calls('completions', false, [{ input: { query: 'q' } }]),
    );
    const call = Array.from({ length: 12 }, () => ask('messages', 'acme/oai', { client, tool: { max_uses: 1 } }));
    const answers = await Promise.all(call);
    const paid = answers.filter(({ status }) => status === 200).length;
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 402]));
    const { balance, held } = (await client.call('GET', '/v1/balance')).json;
    expect(held.exact).toBe('0.000000');
    expect(Math.round(Number(balance.exact) * 1e6)).toBe(200_000 - 5_140 * paid);
  });

  test('of a key never passes its limit', async () => {
    const client = await stage.test.client({ credit: '10.00', limit: '0.030000' });
    script('completions', false, [['q']]);
    expect((await ask('messages', 'acme/oai', { client, tool: { max_uses: 3 } })).status).toBe(403);
  });

  test('for the operator’s margin counts the search among the costs', async () => {
    script('completions', false, [['q']]);
    const answer = await ask('messages', 'acme/plain');
    const [row] = await stage.test.app.db.query<{ units: object; upstream_cost: string }>(
      'select units, upstream_cost::text from ledger_entries where ref = $1 and units is not null',
      [answer.headers.get('x-request-id')],
    );
    expect(row).toMatchObject({ units: { web_search: '1' }, upstream_cost: '4070' });
  });

  test('covers what all rounds write: the last gets what is left', async () => {
    script('completions', false, [['q']]);
    await ask('messages', 'acme/oai');
    const sent = stage.upstream.requests.slice(-2).map(({ body }) => body['max_tokens']);
    expect(sent).toEqual([500, 495]);
  });

  test('is counted here where the upstream counts nothing', async () => {
    const { json } = calls('completions', false, [{ input: { query: 'q' } }]) as { json: object };
    stage.upstream.script('gpt-x', { json: { ...json, usage: null } }, says('completions', false, text));
    const answer = await ask('messages', 'acme/oai');
    const path = `/v1/chat/${answer.headers.get('x-request-id')}`;
    await recordOf(answer);
    expect((await stage.client.call('GET', path)).text).toContain('"counted_here":true');
  });
});

describe('an upstream that fails behind a search', () => {
  test('breaks a stream off with an error: what was done is charged', async () => {
    stage.upstream.script('claude-x', calls('messages', true, [{ input: { query: 'q' } }]), { status: 500, json: {} });
    const answer = await ask('messages', 'acme/ant', { stream: true });
    expect(answer.text).toMatch(/web_search_tool_result/);
    expect(answer.text).toMatch(/event: error/);
    expect(answer.text).not.toContain('message_stop');
    expect(await recordOf(answer)).toMatchObject({ cost: { exact: '0.005070' }, status: 502 });
  });

  test('costs nothing where the caller has seen nothing, and another route answers a whole call anew', async () => {
    stage.upstream.script('gpt-x', calls('completions', false, [{ input: { query: 'q' } }]), { status: 500, json: {} });
    script('messages', false, [['q']]);
    const answer = await ask('completions', 'acme/pair');
    expect(bodyOf(answer)).toMatchObject(shown.completions);
    expect(answer.headers.get('x-cost-amount')).toBe('0.005140');
    stage.upstream.script('gpt-x', calls('completions', false, [{ input: { query: 'q' } }]), { status: 500, json: {} });
    const failed = await ask('completions', 'acme/oai');
    expect(failed.status).toBe(502);
    expect(await recordOf(failed)).toMatchObject({ cost: { exact: '0.000000' } });
  });

  test('and is cut in the middle of a text is charged for what came', async () => {
    const whole = says('completions', true, text);
    const stream = typeof whole === 'object' && 'stream' in whole ? whole.stream.slice(0, 1) : [];
    const cut = { stream, then: 'cut' as const };
    stage.upstream.script('gpt-x', calls('completions', true, [{ input: { query: 'q' } }]), cut);
    const answer = await ask('completions', 'acme/oai', { stream: true });
    expect(answer.text).toContain('"error"');
    expect(Number((await recordOf(answer)).cost.exact)).toBeGreaterThan(0.00507);
  });

  test('takes no longer than its route may', async () => {
    stage.upstream.script('slow-x', calls('completions', false, [{ input: { query: 'q' } }]), 'hang');
    const answer = await ask('completions', 'acme/slow');
    expect(answer.status).toBe(504);
    await expect.poll(() => stage.upstream.open()).toBe(0); // it would hang for ever
  });
});

describe('a search is not the service’s own', () => {
  const without = async (model: string, fields: object = {}) => {
    const { length } = search.requests;
    stage.upstream.script('gpt-x', says('completions', false, 'Hi'));
    const answer = await ask('messages', model, { more: fields });
    return [answer.status, answer.headers.get('x-tools-left-out'), search.requests.length - length];
  };

  test.each([
    ['no search is configured', ''],
    ['it is for other models', toolsOf('http://127.0.0.1:9', 'models: [acme/ant]')],
    ['its key is not set', toolsOf('http://127.0.0.1:9').replace('TEST_SEARCH_KEY', 'TEST_SEARCH_UNSET')],
  ])('where %s: it is left out as before', async (_, tools) => {
    await stage.test.configure(yamlOf(stage.upstream, `${more}${tools}`));
    try {
      expect(await without('acme/oai')).toEqual([200, 'web_search_20250305', 0]);
    } finally {
      await stage.test.configure(yamlOf(stage.upstream, `${more}${toolsOf(search.url)}`));
    }
  });

  test('where its address is private, unless that is allowed', async () => {
    const tools = toolsOf(search.url).replace('allow_private: true', 'allow_private: false');
    await stage.test.configure(yamlOf(stage.upstream, `${more}${tools}`));
    try {
      const { length } = search.requests;
      script('completions', false, [['q']], 'From memory.');
      const answer = await ask('messages', 'acme/oai');
      expect([answer.status, search.requests.length]).toEqual([200, length]);
      expect(answer.text).toContain('"error_code":"unavailable"');
    } finally {
      await stage.test.configure(yamlOf(stage.upstream, `${more}${toolsOf(search.url)}`));
    }
  });
});
