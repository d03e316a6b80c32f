import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import { hello, setStage, yamlOf, yesterday, type Stage } from './setup.ts';

const models = `
  - id: acme/tokens
    kind: rerank
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }]
    routes: [{ provider: oai, upstream_model: rank-x }]
  - id: acme/searches
    kind: rerank
    price: [{ unit: search_unit, per: 1000, amount: "2.00" }]
    routes: [{ provider: coh, upstream_model: rank-c, cost: [{ unit: search_unit, per: 1000, amount: "1.00" }] }]
  - id: acme/voyage
    kind: rerank
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }]
    routes: [{ provider: voy, upstream_model: rank-v }]
  - id: acme/jina
    kind: rerank
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }]
    routes: [{ provider: jin, upstream_model: rank-j }]
  - id: acme/tei
    kind: rerank
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }]
    routes: [{ provider: oai, upstream_model: undefined, options: { format: tei } }]
  - id: acme/rank-two
    kind: rerank
    price: [{ unit: search_unit, per: 1000, amount: "2.00" }]
    routes:
      - { provider: coh, upstream_model: rank-first, timeout: { total: 3s } }
      - { provider: ant, upstream_model: rank-none }
      - { provider: coh, upstream_model: rank-second, id: last }
`;

const providers = `
  coh: { adapter: cohere, base_url: "URL", api_key: env:TEST_UPSTREAM_KEY, allow_private: true }
  voy: { adapter: voyage, base_url: "URL/v1", api_key: env:TEST_UPSTREAM_KEY, allow_private: true }
  jin: { adapter: jina, base_url: "URL/v1", api_key: env:TEST_UPSTREAM_KEY, allow_private: true }
`;

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ more: models, providers });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const documents = ['one', 'two', { text: 'three', page: 3 }];
const results = [
  { index: 2, relevance_score: 0.9 },
  { index: 0, relevance_score: 0.5 },
  { index: 1, relevance_score: 0.1 },
];
const searched = (search_units: number) => ({ id: 'up-1', results, meta: { billed_units: { search_units } } });

const ask = (body: object, client: Client = stage.client, path = '/v1/rerank') =>
  client.call('POST', path, { query: 'a question', documents, ...body });
const bodyOf = (answer: Answered): unknown => JSON.parse(answer.text);
const lastRequest = () => stage.upstream.requests.at(-1);

test('Cohere gets its own words, and its search units are charged', async () => {
  stage.upstream.script('rank-c', { json: searched(3) });
  const body = {
    model: 'acme/searches',
    top_n: 3,
    max_tokens_per_doc: 200_000,
    truncation: true,
    unknown: 1,
    priority: 5,
  };
  const long = ['x'.repeat(200_000), 'y', 'z'];
  const answer = await ask({ ...body, documents: long });
  expect(bodyOf(answer)).toEqual({
    object: 'list',
    id: 'up-1',
    model: 'acme/searches',
    results,
    meta: { api_version: { version: '2' }, billed_units: { search_units: 3 } },
  });
  expect(answer.headers.get('x-cost-amount')).toBe('0.006000');
  expect(answer.headers.get('x-ratelimit-limit-requests')).toBe('1000000'); // the window of the chat paths
  expect(lastRequest()).toMatchObject({
    path: '/v2/rerank',
    headers: { authorization: 'Bearer sk-upstream-secret-0123456789' },
    body: { model: 'rank-c', query: 'a question', documents: long, top_n: 3, max_tokens_per_doc: 200_000 },
  });
  expect(Object.keys(lastRequest()?.body ?? {})).toHaveLength(5);
});

test('the SDK of Cohere may use its own path', async () => {
  stage.upstream.script('rank-c', { json: searched(1) });
  const answer = await ask({ model: 'acme/searches', top_n: 1 }, stage.client, '/v2/rerank');
  expect(bodyOf(answer)).toMatchObject({ results: [results[0]], meta: { billed_units: { search_units: 1 } } });
  const wrong = await ask({ model: 'acme/searches', documents: [] }, stage.client, '/v2/rerank');
  expect([wrong.status, wrong.json.error.param]).toEqual([400, 'documents']);
});

test.each([
  ['Voyage', 'acme/voyage', 'rank-v', { data: results, usage: { total_tokens: 26 } }, { top_k: 2 }],
  ['Jina', 'acme/jina', 'rank-j', { results, usage: { total_tokens: 26 } }, { top_n: 2, return_documents: false }],
  [
    'any other server',
    'acme/tokens',
    'rank-x',
    { results, usage: { prompt_tokens: 26, total_tokens: 26 } },
    { top_n: 2 },
  ],
])('%s gets its own words, and its tokens are charged', async (_, model, upstream_model, json, top) => {
  stage.upstream.script(upstream_model, { json });
  const answer = await ask({ model, top_k: 2, return_documents: true });
  expect(bodyOf(answer)).toEqual({
    object: 'list',
    id: answer.headers.get('x-request-id'),
    model,
    results: [
      { ...results[0], document: documents[2] },
      { ...results[1], document: { text: 'one' } },
    ],
    usage: { prompt_tokens: 26, total_tokens: 26 },
    meta: { api_version: { version: '2' }, billed_units: { input_tokens: 26 } },
  });
  expect(answer.headers.get('x-cost-amount')).toBe('0.000052');
  expect(lastRequest()?.path).toBe('/v1/rerank');
  expect(lastRequest()?.body).toEqual({
    model: upstream_model,
    query: 'a question',
    documents: ['one', 'two', 'three'],
    ...top,
  });
});

test('text-embeddings-inference gets its own words, and its tokens are counted here', async () => {
  stage.upstream.script('undefined', {
    json: results.map(({ index, relevance_score }) => ({ index, score: relevance_score })),
  });
  const answer = await ask({ model: 'acme/tei' });
  expect(lastRequest()).toMatchObject({
    path: '/v1/rerank',
    body: { query: 'a question', texts: ['one', 'two', 'three'], truncate: true },
  });
  expect(bodyOf(answer)).toMatchObject({ results, usage: { total_tokens: 11 } }); // 41 bytes, 4 to a token
  expect(answer.headers.get('x-cost-amount')).toBe('0.000022');
});

test('a rerank call leaves a record with its search units and counts in the usage', async () => {
  stage.upstream.script('rank-c', { json: searched(1) });
  const client = await stage.test.client();
  const answer = await ask({ model: 'acme/searches' }, client);
  const record = () => client.call('GET', `/v1/chat/${answer.headers.get('x-request-id')}`);
  await expect.poll(async () => (await record()).text).toContain('"style":"rerank"');
  expect((await record()).json).toMatchObject({
    model: 'acme/searches',
    status: 200,
    stream: false,
    counted_here: false,
    usage: { input_tokens: 0, output_tokens: 0, search_units: 1 },
    cost: { exact: '0.002000' },
    attempts: [{ route: 'acme/searches#coh', outcome: 'answered' }],
  });
  expect((await record()).json).not.toHaveProperty('tools');
  const usage = (await client.call('GET', `/v1/usage?group_by=modality&from=${yesterday}`)).json.data;
  expect(usage).toMatchObject([{ modality: 'rerank', count: 1, units: { search_unit: '1', request: '1' } }]);
  const sum = 'select upstream_cost::text as cost from ledger_entries where ref = $1 and upstream_cost > 0';
  const rows = await stage.test.app.db.query<{ cost: string }>(sum, [answer.headers.get('x-request-id')]);
  expect(rows.map(({ cost }) => Number(cost))).toEqual([1_000]);
});

test.each([
  ['no search units', {}, '0.002000'],
  ['search units that cannot be', { meta: { billed_units: { search_units: -2 } } }, '0.002000'],
  ['more search units than the request can have', { meta: { billed_units: { search_units: 900 } } }, '0.002000'],
])('an answer with %s is charged by what the request has', async (_, more, cost) => {
  stage.upstream.script('rank-c', { json: { results, ...more } });
  const answer = await ask({ model: 'acme/searches' });
  expect(answer.headers.get('x-cost-amount')).toBe(cost);
  expect(bodyOf(answer)).toMatchObject({ meta: { billed_units: { search_units: 1 } } });
});

test('a call goes to the next route when one fails before its response or returns an invalid one', async () => {
  stage.upstream.script('rank-second', { json: searched(1) });
  const refusals = [
    { status: 401, json: { message: 'invalid api token' } },
    { status: 429, json: {} },
    { status: 500, json: 'oops' },
    { status: 200, json: 'no JSON' },
    { status: 200, json: { results: results.slice(1) } },
    { status: 200, json: { results: [...results.slice(1), { index: 7, relevance_score: 1 }] } },
    'cut' as const,
    'hang' as const,
  ];
  for (const refusal of refusals) {
    await stage.test.app.db.query('delete from route_health');
    stage.upstream.script('rank-first', refusal);
    const answer = await ask({ model: 'acme/rank-two' });
    expect(answer.status, JSON.stringify(refusal)).toBe(200);
    expect(answer.headers.get('x-cost-amount')).toBe('0.002000');
  }
  await stage.test.app.db.query('delete from route_health');
});

test('a call whose routes all fail gets 502 and costs nothing, and its circuit opens', async () => {
  const client = await stage.test.client();
  stage.upstream.script('rank-x', { status: 503, json: { detail: 'Bearer sk-secret' } });
  for (let tries = 0; tries < 5; tries++) {
    const answer = await ask({ model: 'acme/tokens' }, client);
    expect(answer.status).toBe(502);
    expect(answer.json.error).toMatchObject({ type: 'upstream_error', param: null, code: null });
    expect(answer.text).not.toContain('secret');
  }
  expect((await client.call('GET', '/v1/balance')).json).toMatchObject({
    balance: { exact: '100.000000' },
    held: { exact: '0.000000' },
  });
  await expect
    .poll(() => stage.test.app.db.query('select route, cause from route_health'))
    .toContainEqual({ route: 'acme/tokens#oai', cause: 'upstream_error' });
  await stage.test.app.db.query('delete from route_health');
});

test("a mistake of the caller is reported in the upstream's words", async () => {
  stage.upstream.script('rank-c', {
    status: 400,
    json: { message: 'invalid request: max_tokens_per_doc is too large' },
  });
  const answer = await ask({ model: 'acme/searches', max_tokens_per_doc: 1_000_000 });
  expect([answer.status, answer.json.error.message]).toEqual([400, 'invalid request: max_tokens_per_doc is too large']);
});

describe('a rerank call is refused before anything is held', () => {
  const model = 'acme/searches';
  test.each([
    ['no model', { query: 'a', documents }, 'model'],
    ['no query', { model, query: undefined }, 'query'],
    ['an empty query', { model, query: '' }, 'query'],
    ['no documents', { model, documents: undefined }, 'documents'],
    ['a text in place of documents', { model, documents: 'one' }, 'documents'],
    ['an empty list', { model, documents: [] }, 'documents'],
    ['a number among documents', { model, documents: ['a', 1] }, 'documents[1]'],
    ['an object without a text', { model, documents: [{ image: 'https://example.com/a.png' }] }, 'documents[0].text'],
    ['too many documents', { model, documents: Array.from({ length: 10_001 }, () => 'a') }, 'documents'],
    ['no results', { model, top_n: 0 }, 'top_n'],
    ['half a result', { model, top_k: 1.5 }, 'top_k'],
    ['two numbers of results', { model, top_n: 1, top_k: 2 }, 'top_k'],
    ['a length of documents that is none', { model, max_tokens_per_doc: 0 }, 'max_tokens_per_doc'],
    ['other fields to rank by', { model, rank_fields: ['title', 'text'] }, 'rank_fields'],
    ['a word in place of true', { model, return_documents: 'yes' }, 'return_documents'],
    ['fields that choose another model', { model, fallbacks: ['other'] }, 'fallbacks'],
  ])('with %s', async (_, body, param) => {
    const before = stage.upstream.requests.length;
    const answer = await stage.client.call('POST', '/v1/rerank', { query: 'a', documents, ...body });
    expect(answer.status).toBe(400);
    expect(answer.json.error).toMatchObject({ type: 'invalid_request', param });
    expect(stage.upstream.requests).toHaveLength(before);
  });

  test('with a model of another kind, by a 404 that names the right path, as a rerank model is on other paths', async () => {
    const messageOf = async (path: string, body: object) => {
      const answer = await stage.client.call('POST', path, body);
      expect(answer.status).toBe(404);
      return answer.json.error.message;
    };
    const chat = await messageOf('/v1/rerank', { model: 'acme/oai', query: 'a', documents });
    expect(chat).toContain('/v1/chat/completions');
    const bodies = {
      '/v1/chat/completions': { messages: hello },
      '/v1/messages': { messages: hello, max_tokens: 10 },
      '/v1/embeddings': { input: 'a' },
      '/v1/moderations': { input: 'a' },
      '/v1/generate': { input: {} },
      '/v1/estimate': { input: {} },
    };
    for (const [path, body] of Object.entries(bodies)) {
      expect(await messageOf(path, { model, ...body }), path).toBe(
        `"${model}" is a rerank model: use POST /v1/rerank.`,
      );
    }
  });
});

test('parallel calls never spend more than the balance, and the rest of each hold is released', async () => {
  const client = await stage.test.client({ credit: '0.020000' });
  stage.upstream.script('rank-c', { json: searched(1) });
  const some = Array.from({ length: 30 }, () => 'x'.repeat(1_200)); // five chunks each: two units are held, with so little
  stage.upstream.script('rank-c', () => ({
    json: {
      results: some.map((_, index) => ({ index, relevance_score: 0 })),
      meta: { billed_units: { search_units: 1 } },
    },
  }));
  const call = () => ask({ model: 'acme/searches', documents: some }, client);
  const answers = await Promise.all(Array.from({ length: 30 }, call));
  const statuses = answers.map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200, 402]));
  const paid = statuses.filter((status) => status === 200).length;
  const { balance, held } = (await client.call('GET', '/v1/balance')).json;
  expect(held.exact).toBe('0.000000');
  expect(Math.round(Number(balance.exact) * 1e3)).toBe(20 - 2 * paid);
  for (let left = paid; left < 9; left++) expect((await call()).status).toBe(200);
  expect((await call()).status).toBe(402); // 0.002 are left, and 0.004 have to be held
});

test('a key at its monthly limit gets 403', async () => {
  const client = await stage.test.client({ limit: '0.001000' });
  const answer = await ask({ model: 'acme/searches' }, client);
  expect([answer.status, answer.json.error.type]).toEqual([403, 'permission_error']);
});

test('a caller who disconnects pays what its upstream bills', async () => {
  const client = await stage.test.client();
  stage.upstream.script('rank-c', { stream: [90, JSON.stringify(searched(1))] });
  const before = stage.upstream.requests.length;
  const leave = new AbortController();
  const left = fetch(`${stage.test.url}/v1/rerank`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'acme/searches', query: 'a', documents }),
    signal: leave.signal,
  }).catch((error: unknown) => error);
  await expect.poll(() => stage.upstream.requests.length).toBe(before + 1);
  leave.abort();
  await left;
  await expect.poll(async () => (await client.call('GET', '/v1/balance')).json.held.exact).toBe('0.000000');
  expect((await client.call('GET', '/v1/balance')).json.balance.exact).toBe('99.998000');
});

test('rankings share the rate limit of chat', async () => {
  await stage.test.configure(yamlOf(stage.upstream, models, providers, { chat_per_minute: 2 }));
  stage.upstream.script('rank-c', { json: searched(1) });
  const client = await stage.test.client();
  expect((await ask({ model: 'acme/searches' }, client)).status).toBe(200);
  await client.call('POST', '/v1/chat/completions', {});
  const answer = await ask({ model: 'acme/searches' }, client);
  expect([answer.status, answer.json.error.type]).toEqual([429, 'rate_limit']);
  await stage.test.configure(yamlOf(stage.upstream, models, providers));
});

describe('the model sandbox/rerank', () => {
  const rank = async (query: string, texts: string[], more: object = {}) => {
    const answer = await ask({ model: 'sandbox/rerank', query, documents: texts, ...more });
    expect(answer.status, answer.text).toBe(200);
    return bodyOf(answer) as { results: { index: number; relevance_score: number }[]; usage: object; meta: object };
  };

  test('scores documents by the words of the query, the same ones always alike', async () => {
    const texts = ['Interest rates rose', 'The cat sleeps on the sofa', 'A sleeping cat', ''];
    const { results: ranked, usage, meta } = await rank('a sleeping cat', texts);
    expect(ranked.map(({ index }) => index)).toEqual([2, 1, 0, 3]);
    expect(ranked[0]?.relevance_score).toBe(1);
    expect(ranked[3]?.relevance_score).toBe(0);
    expect(await rank('a sleeping cat', texts)).toMatchObject({ results: ranked });
    expect(usage).toEqual({ prompt_tokens: 24, total_tokens: 24 });
    expect(meta).toMatchObject({ billed_units: { search_units: 1 } });
  });

  test.each([
    ['[[error 429]]', 502],
    ['[[fail before start]]', 502],
    ['[[fail]]', 502],
    ['[[moderate]]', 400],
  ])('answers %s with its error', async (directive, status) => {
    expect((await ask({ model: 'sandbox/rerank', query: `a ${directive}` })).status).toBe(status);
  });

  test('refuses more than 1,000 documents', async () => {
    const many = Array.from({ length: 1_001 }, () => 'a');
    expect((await ask({ model: 'sandbox/rerank', documents: many })).status).toBe(400);
  });

  test('is listed as a rerank model', async () => {
    const list = await stage.client.call('GET', '/v1/models?modality=rerank');
    const model = list.json.data.find(({ id }) => id === 'sandbox/rerank');
    expect(model).toMatchObject({ modality: 'rerank', output_types: ['rerank'] });
    expect(model?.pricing).toEqual([{ unit: 'search_unit', amount: '1.00', per: 1_000, currency: 'USD' }]);
  });
});
