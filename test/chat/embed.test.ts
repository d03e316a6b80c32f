import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import { hello, setStage, yamlOf, yesterday, type Stage } from './setup.ts';

const models = `
  - id: acme/vectors
    kind: embedding
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }]
    routes: [{ provider: oai, upstream_model: embed-x }]
  - id: acme/vectors-two
    kind: embedding
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }, { unit: request, amount: "0.01" }]
    routes:
      - { provider: oai, upstream_model: embed-first, timeout: { total: 3s } }
      - { provider: ant, upstream_model: embed-none }
      - { provider: oai, upstream_model: embed-second, id: last }
`;

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ more: models });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

type Vectors = {
  object: string;
  model: string;
  data: { object: string; index: number; embedding: number[] | string }[];
  usage?: { prompt_tokens: number; total_tokens: number };
};

function vectors(embeddings: (number[] | string)[], usage: object | null = { prompt_tokens: 10, total_tokens: 10 }) {
  const data = embeddings.map((embedding, index) => ({ object: 'embedding', index, embedding }));
  return { object: 'list', data, model: 'embed-x', ...(usage && { usage }) };
}

const ask = (body: object, client: Client = stage.client) => client.call('POST', '/v1/embeddings', body);
const bodyOf = (answer: Answered) => JSON.parse(answer.text) as Vectors;

test("an upstream's bytes are relayed with only the model renamed, and its token count is charged", async () => {
  stage.upstream.script('embed-x', { json: vectors([[0.25, -0.5]]) });
  const answer = await ask({ model: 'acme/vectors', input: 'Größe', dimensions: 2, user: 'me', unknown_field: 1 });
  expect(answer.text).toBe(JSON.stringify({ ...vectors([[0.25, -0.5]]), model: 'acme/vectors' }));
  expect(answer.headers.get('x-cost-amount')).toBe('0.000020');
  expect(answer.headers.get('x-cost-currency')).toBe('USD');
  expect(answer.headers.get('x-ratelimit-limit-requests')).toBe('1000000'); // the window of the chat paths
  const request = stage.upstream.requests.at(-1);
  expect(request?.path).toBe('/v1/embeddings');
  expect(request?.headers.authorization).toBe('Bearer sk-upstream-secret-0123456789');
  expect(request?.body).toEqual({
    model: 'embed-x',
    input: 'Größe',
    dimensions: 2,
    user: expect.stringMatching(/^[\w-]{43}$/),
  });
});

test('an embeddings call leaves a record and counts in the usage', async () => {
  stage.upstream.script('embed-x', { json: vectors([[1]]) });
  const client = await stage.test.client();
  const answer = await ask({ model: 'acme/vectors', input: ['a'] }, client);
  await expect
    .poll(async () => (await client.call('GET', `/v1/chat/${answer.headers.get('x-request-id')}`)).text)
    .toContain('"style":"embeddings"');
  const { text } = await client.call('GET', `/v1/chat/${answer.headers.get('x-request-id')}`);
  expect(JSON.parse(text)).toMatchObject({
    model: 'acme/vectors',
    status: 200,
    stream: false,
    counted_here: false,
    usage: { input_tokens: 10, output_tokens: 0 },
    cost: { exact: '0.000020' },
    attempts: [{ route: 'acme/vectors#oai', outcome: 'answered' }],
  });
  const usage = (await client.call('GET', `/v1/usage?group_by=modality&from=${yesterday}`)).json.data;
  expect(usage).toMatchObject([{ modality: 'embedding', count: 1, units: { input_token: '10', request: '1' } }]);
});

test.each([
  ['no usage', null, 'x'.repeat(40)],
  ['a usage that cannot be', { prompt_tokens: -3, total_tokens: 'many' }, 'x'.repeat(40)],
])('a response with %s is charged by the tokens of its input', async (_, usage, input) => {
  stage.upstream.script('embed-x', { json: vectors([[1]], usage) });
  const answer = await ask({ model: 'acme/vectors', input });
  expect(answer.headers.get('x-cost-amount')).toBe('0.000020'); // 4 bytes to a token
});

test('a token count in the request is charged as it is, and a total alone counts as input', async () => {
  stage.upstream.script('embed-x', { json: vectors([[1]], null) }, { json: vectors([[1]], { total_tokens: 7 }) });
  const first = await ask({ model: 'acme/vectors', input: [1, 2, 3] });
  expect(first.headers.get('x-cost-amount')).toBe('0.000006');
  const second = await ask({ model: 'acme/vectors', input: [[1, 2, 3]] });
  expect(second.headers.get('x-cost-amount')).toBe('0.000014');
});

test('vectors have the requested form when the upstream returns the other one', async () => {
  const floats = [0.5, -1.25, 3.4028234663852886e38, 1.401298464324817e-45];
  const bytes = Buffer.from(new Float32Array(floats).buffer); // this machine is little-endian, as all we run on
  stage.upstream.script('embed-x', { json: vectors([floats]) }, { json: vectors([bytes.toString('base64')]) });
  const encoded = bodyOf(await ask({ model: 'acme/vectors', input: 'x', encoding_format: 'base64' }));
  expect(encoded.data).toEqual([{ object: 'embedding', index: 0, embedding: bytes.toString('base64') }]);
  const plain = bodyOf(await ask({ model: 'acme/vectors', input: 'x', encoding_format: 'float' }));
  expect(plain.data).toEqual([{ object: 'embedding', index: 0, embedding: floats }]);
  expect(plain).toMatchObject({ model: 'acme/vectors', usage: { prompt_tokens: 10 } });
});

test('hundreds of vectors that the caller gets as numbers come as base64 from the upstream', async () => {
  const half = Buffer.from(new Float32Array([0.5]).buffer).toString('base64');
  stage.upstream.script('embed-x', { json: vectors(Array.from({ length: 257 }, () => half)) });
  const answer = bodyOf(await ask({ model: 'acme/vectors', input: Array.from({ length: 257 }, () => 'a') }));
  expect(stage.upstream.requests.at(-1)?.body).toMatchObject({ encoding_format: 'base64' });
  expect(answer.data.map(({ embedding }) => embedding)).toEqual(Array.from({ length: 257 }, () => [0.5]));
});

test('fields that would select another model or price are refused by name', async () => {
  const answer = await ask({ model: 'acme/vectors', input: 'a', models: ['other'] });
  expect([answer.status, answer.json.error.param]).toEqual([400, 'models']);
});

test('a call goes to the next route when one fails before its response or returns an invalid one', async () => {
  stage.upstream.script('embed-second', { json: vectors([[1], [2]]) });
  const refusals = [
    { status: 401, json: {} },
    { status: 429, json: {} },
    { status: 500, json: 'oops' },
    { status: 200, json: 'no JSON' },
    { status: 200, json: vectors([[1]]) }, // two were asked for
    { status: 200, json: { ...vectors([[1], [2]]), data: [{}, {}] } },
    'cut' as const,
    'hang' as const,
  ];
  for (const refusal of refusals) {
    await stage.test.app.db.query('delete from route_health');
    stage.upstream.script('embed-first', refusal);
    const answer = await ask({ model: 'acme/vectors-two', input: ['a', 'b'] });
    expect(answer.status, JSON.stringify(refusal)).toBe(200);
    expect(answer.headers.get('x-cost-amount')).toBe('0.010020');
  }
  await stage.test.app.db.query('delete from route_health');
});

test('a call whose routes all fail gets 502 in the completions style and costs nothing', async () => {
  const client = await stage.test.client();
  stage.upstream.script('embed-x', { status: 503, json: { error: { message: 'Bearer sk-secret' } } });
  const answer = await ask({ model: 'acme/vectors', input: 'a' }, client);
  expect(answer.status).toBe(502);
  expect(answer.json.error).toMatchObject({ type: 'upstream_error', param: null, code: null });
  expect(answer.text).not.toContain('secret');
  expect((await client.call('GET', '/v1/balance')).json).toMatchObject({ held: { exact: '0.000000' } });
  await stage.test.app.db.query('delete from route_health');
});

test("a mistake of the caller is reported in the upstream's words", async () => {
  const error = { message: "This model's maximum context length is 8192 tokens.", type: 'invalid_request_error' };
  stage.upstream.script('embed-x', { status: 400, json: { error } });
  const answer = await ask({ model: 'acme/vectors', input: 'a' });
  expect([answer.status, answer.json.error.code]).toEqual([400, 'context_length_exceeded']);
  expect(answer.json.error.message).toContain(error.message);
});

describe('an embeddings call is refused before anything is held', () => {
  const many = Array.from({ length: 2_049 }, () => 'a');
  test.each([
    ['no model', { input: 'a' }, 'model'],
    ['no input', { model: 'acme/vectors' }, 'input'],
    ['an empty text', { model: 'acme/vectors', input: '' }, 'input'],
    ['no texts', { model: 'acme/vectors', input: [] }, 'input'],
    ['an object', { model: 'acme/vectors', input: { text: 'a' } }, 'input'],
    ['an empty text among others', { model: 'acme/vectors', input: ['a', ''] }, 'input[1]'],
    ['a token among texts', { model: 'acme/vectors', input: ['a', 1] }, 'input[1]'],
    ['a text among tokens', { model: 'acme/vectors', input: [1, 'a'] }, 'input[1]'],
    ['a token below 0', { model: 'acme/vectors', input: [1, -1] }, 'input[1]'],
    ['half a token', { model: 'acme/vectors', input: [[1], [1.5]] }, 'input[1][0]'],
    ['no tokens', { model: 'acme/vectors', input: [[1], []] }, 'input[1]'],
    ['a text among lists of tokens', { model: 'acme/vectors', input: [[1], 'a'] }, 'input[1]'],
    ['too many', { model: 'acme/vectors', input: many }, 'input'],
    ['a form that is none', { model: 'acme/vectors', input: 'a', encoding_format: 'int8' }, 'encoding_format'],
    ['no dimensions', { model: 'acme/vectors', input: 'a', dimensions: 0 }, 'dimensions'],
    ['half a dimension', { model: 'acme/vectors', input: 'a', dimensions: 1.5 }, 'dimensions'],
  ])('with %s', async (_, body, param) => {
    const before = stage.upstream.requests.length;
    const answer = await ask(body);
    expect(answer.status).toBe(400);
    expect(answer.json.error).toMatchObject({ type: 'invalid_request', param });
    expect(stage.upstream.requests).toHaveLength(before);
  });

  test('with a model of another kind, by a 404 that names the right path, as an embedding model is on other paths', async () => {
    const messageOf = async (path: string, body: object) => {
      const answer = await stage.client.call('POST', path, body);
      expect(answer.status).toBe(404);
      return answer.json.error.message;
    };
    const chat = await messageOf('/v1/embeddings', { model: 'acme/oai', input: 'a' });
    expect(chat).toContain('/v1/chat/completions');
    expect(await messageOf('/v1/embeddings', { model: 'sandbox/image', input: 'a' })).toContain('/v1/generate');
    expect(await messageOf('/v1/embeddings', { model: 'nobody/none', input: 'a' })).toContain('GET /v1/models');
    const bodies = {
      '/v1/chat/completions': { messages: hello },
      '/v1/messages': { messages: hello, max_tokens: 10 },
      '/v1/generate': { input: {} },
    };
    for (const [path, body] of Object.entries(bodies)) {
      expect(await messageOf(path, { model: 'acme/vectors', ...body }), path).toBe(
        '"acme/vectors" is an embedding model: use POST /v1/embeddings.',
      );
    }
  });
});

test('parallel calls never spend more than the balance, and the rest of each hold is released', async () => {
  const client = await stage.test.client({ credit: '0.000400' });
  stage.upstream.script('embed-x', { json: vectors([[1]]) });
  const text = 'x'.repeat(50); // 50 tokens are held, with so little: 100 millionths, of which 20 are charged
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => ask({ model: 'acme/vectors', input: text }, client)),
  );
  const statuses = answers.map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200, 402]));
  const paid = statuses.filter((status) => status === 200).length;
  const { balance, held } = (await client.call('GET', '/v1/balance')).json;
  expect(held.exact).toBe('0.000000');
  expect(Math.round(Number(balance.exact) * 1e6)).toBe(400 - 20 * paid);
  for (let left = paid; left < 16; left++)
    expect((await ask({ model: 'acme/vectors', input: text }, client)).status).toBe(200);
  expect((await ask({ model: 'acme/vectors', input: text }, client)).status).toBe(402);
});

test('a key at its monthly limit gets 403', async () => {
  const client = await stage.test.client({ limit: '0.000010' });
  const answer = await ask({ model: 'acme/vectors', input: 'x'.repeat(50) }, client);
  expect([answer.status, answer.json.error.type]).toEqual([403, 'permission_error']);
});

test('a caller who disconnects pays what its upstream bills', async () => {
  const client = await stage.test.client();
  stage.upstream.script('embed-x', { stream: [90, JSON.stringify(vectors([[1]]))] });
  const before = stage.upstream.requests.length;
  const leave = new AbortController();
  const left = fetch(`${stage.test.url}/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'acme/vectors', input: 'a' }),
    signal: leave.signal,
  }).catch((error: unknown) => error);
  await expect.poll(() => stage.upstream.requests.length).toBe(before + 1);
  leave.abort();
  await left;
  await expect.poll(() => stage.upstream.open()).toBe(0);
  await expect.poll(async () => (await client.call('GET', '/v1/balance')).json.held.exact).toBe('0.000000');
  expect(Number((await client.call('GET', '/v1/balance')).json.balance.exact)).toBeLessThan(100);
});

test('both chat paths and embeddings share one rate limit', async () => {
  await stage.test.configure(yamlOf(stage.upstream, models, '', { chat_per_minute: 2 }));
  stage.upstream.script('embed-x', { json: vectors([[1]]) });
  const client = await stage.test.client();
  expect((await ask({ model: 'acme/vectors', input: 'a' }, client)).status).toBe(200);
  await client.call('POST', '/v1/chat/completions', {});
  const answer = await ask({ model: 'acme/vectors', input: 'a' }, client);
  expect([answer.status, answer.json.error.type]).toEqual([429, 'rate_limit']);
  await stage.test.configure(yamlOf(stage.upstream, models));
});

describe('the model sandbox/embedding', () => {
  const embed = async (input: unknown, more: object = {}) => {
    const answer = await ask({ model: 'sandbox/embedding', input, ...more });
    expect(answer.status, answer.text).toBe(200);
    return bodyOf(answer);
  };
  const dot = (a: number[], b: number[]) => a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);

  test('returns vectors of length 1 that are equal for equal texts and near for related ones', async () => {
    const { data, usage } = await embed([
      'The cat sleeps on the warm sofa',
      'A sleeping cat lies on a sofa',
      'Interest rates rose again in the third quarter',
      '!!!',
    ]);
    const [cat = [], sofa = [], rates = [], signs = []] = data.map(({ embedding }) => embedding as number[]);
    expect(cat).toHaveLength(256);
    for (const vector of [cat, sofa, rates, signs]) expect(dot(vector, vector)).toBeCloseTo(1, 5);
    expect(dot(cat, sofa)).toBeGreaterThan(dot(cat, rates) + 0.2);
    const again = await embed('The cat sleeps on the warm sofa');
    expect(again.data[0]?.embedding).toEqual(cat);
    expect(usage?.prompt_tokens).toBe(7 + 7 + 8 + 1);
  });

  test('accepts dimensions, base64 and tokens in place of text', async () => {
    const plain = await embed('hello world', { dimensions: 32 });
    const [vector = []] = plain.data.map(({ embedding }) => embedding as number[]);
    expect(vector).toHaveLength(32);
    const encoded = await embed([24_912, 2_375], { dimensions: 32, encoding_format: 'base64' }); // the same in o200k_base
    const bytes = Buffer.from(String(encoded.data[0]?.embedding), 'base64');
    expect(Array.from({ length: 32 }, (_, at) => bytes.readFloatLE(at * 4))).toEqual(vector);
    expect(encoded.usage).toEqual({ prompt_tokens: 2, total_tokens: 2 });
  });

  test.each([
    ['[[error 429]]', 502],
    ['[[fail before start]]', 502],
    ['[[fail]]', 502],
    ['[[moderate]]', 400],
  ])('answers %s with its error', async (directive, status) => {
    expect((await ask({ model: 'sandbox/embedding', input: `a ${directive}` })).status).toBe(status);
  });

  test.each([
    ['vectors that long', { input: 'a', dimensions: 5_000 }],
    ['tokens of another vocabulary', { input: [999_999] }],
    ['texts of more than 8,192 tokens', { input: 'word '.repeat(9_000) }],
  ])('refuses %s', async (_, body) => {
    expect((await ask({ model: 'sandbox/embedding', ...body })).status).toBe(400);
  });

  test('is listed as an embedding model', async () => {
    const list = await stage.client.call('GET', '/v1/models?modality=embedding');
    const model = list.json.data.find(({ id }) => id === 'sandbox/embedding');
    expect(model).toMatchObject({ modality: 'embedding', output_types: ['embedding'] });
    expect(model?.pricing).toEqual([{ unit: 'input_token', amount: '0.10', per: 1_000_000, currency: 'USD' }]);
  });
});
