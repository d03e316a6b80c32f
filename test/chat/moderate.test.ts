import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import { sampleImage } from '../storage/samples.ts';
import { setStage, yamlOf, yesterday, type Stage } from './setup.ts';

const models = `
  - id: acme/moderation
    kind: moderation
    aliases: [omni-moderation-latest]
    price: [{ unit: request, amount: "0" }]
    routes: [{ provider: far, upstream_model: omni }]
  - id: acme/near
    kind: moderation
    price: [{ unit: request, amount: "0" }]
    routes: [{ provider: oai, upstream_model: omni }]
  - id: acme/linkless
    kind: moderation
    price: [{ unit: request, amount: "0" }]
    routes: [{ provider: linkless, upstream_model: omni }]
  - id: acme/paid
    kind: moderation
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }]
    routes: [{ provider: oai, upstream_model: paid }]
  - id: acme/moderation-two
    kind: moderation
    price: [{ unit: request, amount: "0.001" }]
    routes:
      - { provider: oai, upstream_model: mod-first, timeout: { total: 3s } }
      - { provider: ant, upstream_model: mod-none }
      - { provider: oai, upstream_model: mod-second, id: last }
`;

const providers = `
  linkless: { adapter: openai, base_url: "URL/v1", api_key: env:TEST_UPSTREAM_KEY, allow_private: true, links: refuse }
`;

const png = await sampleImage('png', 8, 8);

let stage: Stage;
let images: Server;

beforeAll(async () => {
  stage = await setStage({ more: models, providers });
  images = createServer((_, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(png));
  await new Promise<void>((resolve) => images.listen(0, '127.0.0.1', resolve));
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(async () => {
  await new Promise((resolve) => images.close(resolve));
  await stage.stop();
});

const judged = (flagged: boolean) => ({
  flagged,
  categories: { violence: flagged },
  category_scores: { violence: flagged ? 0.9 : 1e-5 },
  category_applied_input_types: { violence: ['text'] },
});
const answerOf = (...flags: boolean[]) => ({ id: 'modr-1', model: 'omni-2024-09-26', results: flags.map(judged) });

const ask = (body: object, client: Client = stage.client) => client.call('POST', '/v1/moderations', body);
const bodyOf = (answer: Answered): unknown => JSON.parse(answer.text);

test("an upstream's bytes are relayed with only the model renamed, and a free model costs 0", async () => {
  const json = `{ "id":"modr-1", "model":"omni-2024-09-26","results":[${JSON.stringify(judged(true))}]}`;
  stage.upstream.script('omni', { json });
  const answer = await ask({ model: 'acme/moderation', input: 'a fight', unknown_field: 1 });
  expect(answer.text).toBe(json.replace('omni-2024-09-26', 'acme/moderation'));
  expect(answer.headers.get('x-cost-amount')).toBe('0.000000');
  expect(answer.headers.get('x-ratelimit-limit-requests')).toBe('1000000');
  const request = stage.upstream.requests.at(-1);
  expect(request?.path).toBe('/v1/moderations');
  expect(request?.body).toEqual({ model: 'omni', input: 'a fight' });
});

test('a request without a model gets the one that has the name of the usual one', async () => {
  stage.upstream.script('omni', { json: answerOf(false, true) });
  const answer = await ask({ input: ['a', 'b'] });
  expect(bodyOf(answer)).toMatchObject({ model: 'acme/moderation', results: [{ flagged: false }, { flagged: true }] });
});

test('an account without money may call a free model, and none that costs something', async () => {
  const client = await stage.test.client({ credit: '0' });
  stage.upstream.script('omni', { json: answerOf(false) });
  expect((await ask({ input: 'a' }, client)).status).toBe(200);
  const paid = await ask({ model: 'acme/paid', input: 'a' }, client);
  expect([paid.status, paid.json.error.type]).toEqual([402, 'insufficient_balance']);
});

test('a moderation call leaves a record and counts in the usage', async () => {
  stage.upstream.script('paid', { json: { ...answerOf(false), usage: { prompt_tokens: 10, total_tokens: 10 } } });
  const client = await stage.test.client();
  const answer = await ask({ model: 'acme/paid', input: 'a' }, client);
  expect(answer.headers.get('x-cost-amount')).toBe('0.000020');
  const record = () => client.call('GET', `/v1/chat/${answer.headers.get('x-request-id')}`);
  await expect.poll(async () => (await record()).text).toContain('"style":"moderations"');
  expect((await record()).json).toMatchObject({
    model: 'acme/paid',
    status: 200,
    counted_here: false,
    usage: { input_tokens: 10, output_tokens: 0 },
    cost: { exact: '0.000020' },
  });
  const usage = (await client.call('GET', `/v1/usage?group_by=modality&from=${yesterday}`)).json.data;
  expect(usage).toMatchObject([{ modality: 'moderation', count: 1, units: { input_token: '10' } }]);
});

test('tokens that an upstream does not report are counted here', async () => {
  stage.upstream.script('paid', { json: answerOf(false) });
  const answer = await ask({ model: 'acme/paid', input: 'x'.repeat(40) });
  expect(answer.headers.get('x-cost-amount')).toBe('0.000020'); // 4 bytes to a token
});

test('a server that does not say what is flagged is read by its categories, and its own cost is in no answer', async () => {
  const [first, second] = [judged(true), judged(false)].map((result) => {
    const { flagged: _, ...rest } = result;
    return rest;
  });
  stage.upstream.script('omni', {
    json: { model: 'm', results: [first, second], usage: { prompt_tokens: 3, cost: 0.5 } },
  });
  const answer = await ask({ model: 'acme/moderation', input: ['a', 'b'] });
  expect(bodyOf(answer)).toEqual({
    id: answer.headers.get('x-request-id'),
    model: 'acme/moderation',
    results: [judged(true), judged(false)],
    usage: { prompt_tokens: 3 },
  });
});

describe('images', () => {
  const parts = (url: string) => [
    { type: 'text', text: 'look', unknown: 1 },
    { type: 'image_url', image_url: { url, detail: 'low' }, file_id: 'file-1' },
  ];
  const data_url = `data:image/png;base64,${png.toString('base64')}`;

  test('go on with the members that the style has alone', async () => {
    stage.upstream.script('omni', { json: answerOf(false) });
    expect((await ask({ input: parts('https://example.com/a.png') })).status).toBe(200);
    expect(stage.upstream.requests.at(-1)?.body['input']).toEqual([
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
    ]);
  });

  test.each(['http://127.0.0.1/a.png', 'http://169.254.169.254/latest', 'file:///etc/passwd', 'https://a@b.example/x'])(
    'are not behind %s',
    async (url) => {
      const before = stage.upstream.requests.length;
      const answer = await ask({ input: parts(url) });
      expect(answer.json.error).toMatchObject({ param: 'input[1].image_url.url', code: 'link_not_allowed' });
      expect(answer.status).toBe(400);
      expect(stage.upstream.requests).toHaveLength(before);
    },
  );

  test('are fetched here for an upstream in a private network, which is given no address', async () => {
    await stage.test.configure(`net: { allow: ["127.0.0.1/32"] }\n${yamlOf(stage.upstream, models, providers)}`);
    stage.upstream.script('omni', { json: answerOf(false) });
    const url = `http://127.0.0.1:${(images.address() as AddressInfo).port}/a.png`;
    expect((await ask({ model: 'acme/near', input: parts(url) })).status).toBe(200);
    expect(stage.upstream.requests.at(-1)?.body['input']).toMatchObject([{}, { image_url: { url: data_url } }]);
    await stage.test.configure(yamlOf(stage.upstream, models, providers));
  });

  test('are refused as links where the provider takes none, and taken as data', async () => {
    stage.upstream.script('omni', { json: answerOf(false) });
    const refused = await ask({ model: 'acme/linkless', input: parts('https://example.com/a.png') });
    expect([refused.status, refused.json.error.code]).toEqual([400, 'link_not_allowed']);
    expect((await ask({ model: 'acme/linkless', input: parts(data_url) })).status).toBe(200);
  });
});

test('a call goes to the next route when one fails before its response or returns an invalid one', async () => {
  stage.upstream.script('mod-second', { json: answerOf(false, false) });
  const refusals = [
    { status: 401, json: {} },
    { status: 429, json: {} },
    { status: 500, json: 'oops' },
    { status: 200, json: 'no JSON' },
    { status: 200, json: answerOf(false) }, // two were asked for
    { status: 200, json: { results: [{}, {}] } },
    'cut' as const,
    'hang' as const,
  ];
  for (const refusal of refusals) {
    await stage.test.app.db.query('delete from route_health');
    stage.upstream.script('mod-first', refusal);
    const answer = await ask({ model: 'acme/moderation-two', input: ['a', 'b'] });
    expect(answer.status, JSON.stringify(refusal)).toBe(200);
    expect(answer.headers.get('x-cost-amount')).toBe('0.001000');
  }
  await stage.test.app.db.query('delete from route_health');
});

test('a call whose routes all fail gets 502 and costs nothing', async () => {
  const client = await stage.test.client();
  stage.upstream.script('paid', { status: 503, json: { error: { message: 'Bearer sk-secret' } } });
  const answer = await ask({ model: 'acme/paid', input: 'a' }, client);
  expect(answer.status).toBe(502);
  expect(answer.text).not.toContain('secret');
  expect((await client.call('GET', '/v1/balance')).json).toMatchObject({
    balance: { exact: '100.000000' },
    held: { exact: '0.000000' },
  });
  await stage.test.app.db.query('delete from route_health');
});

test('a key at its monthly limit gets 403', async () => {
  const client = await stage.test.client({ limit: '0.000010' });
  const answer = await ask({ model: 'acme/paid', input: 'x'.repeat(50) }, client);
  expect([answer.status, answer.json.error.type]).toEqual([403, 'permission_error']);
});

describe('a moderation call is refused before anything is held', () => {
  test.each([
    ['no input', {}, 'input'],
    ['an empty model', { model: '', input: 'a' }, 'model'],
    ['an object', { input: { text: 'a' } }, 'input'],
    ['an empty list', { input: [] }, 'input'],
    ['a number among texts', { input: ['a', 1] }, 'input[1]'],
    ['a text among parts', { input: [{ type: 'text', text: 'a' }, 'b'] }, 'input[1]'],
    ['a part without a type', { input: [{ text: 'a' }] }, 'input[0].type'],
    ['a part of another type', { input: [{ type: 'audio' }] }, 'input[0].type'],
    ['a part without its text', { input: [{ type: 'text' }] }, 'input[0].text'],
    ['an image without a place', { input: [{ type: 'image_url', image_url: {} }] }, 'input[0].image_url.url'],
    ['too many texts', { input: Array.from({ length: 2_049 }, () => 'a') }, 'input'],
  ])('with %s', async (_, body, param) => {
    const before = stage.upstream.requests.length;
    const answer = await ask({ model: 'acme/moderation', ...body });
    expect(answer.status).toBe(400);
    expect(answer.json.error).toMatchObject({ type: 'invalid_request', param });
    expect(stage.upstream.requests).toHaveLength(before);
  });

  test('with a model of another kind, by a 404 that names the right path, as a moderation model is on other paths', async () => {
    const other = await ask({ model: 'acme/oai', input: 'a' });
    expect([other.status, other.json.error.message]).toEqual([404, expect.stringContaining('/v1/chat/completions')]);
    const wrong = await stage.client.call('POST', '/v1/embeddings', { model: 'acme/paid', input: 'a' });
    expect([wrong.status, wrong.json.error.message]).toEqual([
      404,
      '"acme/paid" is a moderation model: use POST /v1/moderations.',
    ]);
  });
});

test('a caller who disconnects pays what its upstream bills', async () => {
  const client = await stage.test.client();
  const whole = { ...answerOf(false), usage: { prompt_tokens: 10 } };
  stage.upstream.script('paid', { stream: [90, JSON.stringify(whole)] });
  const before = stage.upstream.requests.length;
  const leave = new AbortController();
  const left = fetch(`${stage.test.url}/v1/moderations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'acme/paid', input: 'a' }),
    signal: leave.signal,
  }).catch((error: unknown) => error);
  await expect.poll(() => stage.upstream.requests.length).toBe(before + 1);
  leave.abort();
  await left;
  await expect.poll(async () => (await client.call('GET', '/v1/balance')).json.held.exact).toBe('0.000000');
  expect((await client.call('GET', '/v1/balance')).json.balance.exact).toBe('99.999980');
});

describe('the model sandbox/moderation', () => {
  const moderate = async (input: unknown) => {
    const answer = await ask({ model: 'sandbox/moderation', input });
    expect(answer.status, answer.text).toBe(200);
    return (bodyOf(answer) as { results: Record<string, unknown>[] }).results;
  };

  test('flags what a directive says, and nothing else', async () => {
    const answer = await moderate([
      'a cat',
      'a cat [[flag]]',
      'a [[flag HATE]] [[flag self-harm/intent]]',
      '[[flag x]]',
    ]);
    expect(answer.map(({ flagged }) => flagged)).toEqual([false, true, true, false]);
    expect(answer[2]).toMatchObject({
      categories: { hate: true, 'self-harm/intent': true, violence: false },
      category_scores: { hate: 0.99, violence: 0.001 },
      category_applied_input_types: { hate: ['text'] },
    });
    expect(Object.keys(answer[0]?.['categories'] ?? {})).toHaveLength(13);
  });

  test('takes the parts of a message as one', async () => {
    const url = `data:image/png;base64,${png.toString('base64')}`;
    const parts = [
      { type: 'text', text: '[[flag sexual]]' },
      { type: 'image_url', image_url: { url } },
    ];
    const answer = await moderate(parts);
    expect(answer).toMatchObject([
      { flagged: true, category_applied_input_types: { sexual: ['text', 'image'], hate: ['text'] } },
    ]);
  });

  test.each([
    ['[[error 429]]', 502],
    ['[[fail before start]]', 502],
    ['[[moderate]]', 400],
  ])('answers %s with its error', async (directive, status) => {
    expect((await ask({ model: 'sandbox/moderation', input: `a ${directive}` })).status).toBe(status);
  });

  test('is listed as a moderation model that is free', async () => {
    const list = await stage.client.call('GET', '/v1/models?modality=moderation');
    const model = list.json.data.find(({ id }) => id === 'sandbox/moderation');
    expect(model?.pricing).toEqual([{ unit: 'request', amount: '0', per: 1, currency: 'USD' }]);
  });
});
