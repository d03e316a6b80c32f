import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import type { Script } from '../helpers/chat-upstream.ts';
import { completion, hello, message, setStage, type Stage } from './setup.ts';
import { chunk, completionsStream, event, messageStart } from './streams.ts';

/** Models that a call names in case its own fails (`models`, `fallbacks`). */

let stage: Stage;
let client: Client;

const model = (id: string, provider: string, price: string, more = '') => `
  - id: acme/${id}
    kind: chat
    max_output_tokens: 1000
    price: ${price}
    routes: [{ provider: ${provider}, upstream_model: ${id}${more} }]`;
const dear =
  '[{ unit: input_token, per: 1000000, amount: "20.00" }, { unit: output_token, per: 1000000, amount: "100.00" }]';
const more = [
  model('first', 'oai', dear, ', timeout: { first_byte: 3s, idle: 3s, total: 9s }'),
  model('second', 'ant', '*price'),
  model('third', 'oai', '*price'),
  model('passes', 'oai', '*price', ', options: { pass: [models] }'),
].join('');
const routes = ['first#oai', 'second#ant', 'third#oai', 'passes#oai'].map((name) => `acme/${name}`);

beforeAll(async () => {
  stage = await setStage({ more });
});
beforeEach(async () => {
  for (const route of routes) await stage.test.app.health.closeCircuits(route);
  client = await stage.test.client();
  stage.upstream.script('first', { json: completion('from first') });
  stage.upstream.script('second', { json: message('from second') });
  stage.upstream.script('third', { json: completion('from third') });
  stage.upstream.script('passes', { json: completion('from passes') });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const failing: Script = { status: 500, json: { error: { message: 'no' } } };
const refusing = (error: object, status = 400): Script => ({ status, json: { error } });
const both = { model: 'acme/first', models: ['acme/second'] };

const ask = (fields: object, by = client): Promise<Answered> =>
  by.call('POST', '/v1/chat/completions', { messages: hello, ...fields });
const modelOf = ({ status, json }: Answered) => [status, json['model']];
const routeOf = ({ headers }: Answered) => [headers.get('x-route'), headers.get('x-route-reason')];
const recordOf = async ({ headers }: Answered, by = client) =>
  JSON.parse((await by.call('GET', `/v1/chat/${headers.get('x-request-id')}`)).text);

describe('a model that does not answer has fallbacks', () => {
  test.each<[what: string, script: Script]>([
    ['fails', failing],
    ['is limited', refusing({ message: 'slow down' }, 429)],
    ['refuses our key', refusing({ message: 'bad key' }, 401)],
    ['is gone', 'cut'],
    ['says nothing in time', 'hang'],
    ['answers with no JSON', { json: '<html>' }],
    ['finds the input too long', refusing({ code: 'context_length_exceeded', message: 'maximum context length' })],
    ['finds the input unfit', refusing({ code: 'content_policy_violation', message: 'flagged' })],
    ['does not know a field', refusing({ type: 'invalid_request_error', message: 'unknown field' })],
  ])('where it %s', async (_, script) => {
    stage.upstream.script('first', script);
    const answer = await ask(both);
    expect(modelOf(answer)).toEqual([200, 'acme/second']);
    expect(answer.text).toContain('"content":"from second"');
    expect(routeOf(answer)).toEqual(['acme/second#ant', 'models[0], fallback']);
    expect(answer.headers.get('x-cost-amount')).toBe('0.000070');
    const record = await recordOf(answer);
    expect(record).toMatchObject({ model: 'acme/second', status: 200, cost: { exact: '0.000070' } });
    expect(record.attempts).toMatchObject([
      { route: 'acme/first#oai', outcome: 'failed', why: 'default' },
      { route: 'acme/second#ant', outcome: 'answered', why: 'models[0], fallback' },
    ]);
  });

  test('which are not asked where it answers', async () => {
    const { length } = stage.upstream.requests;
    const answer = await ask(both);
    expect(modelOf(answer)).toEqual([200, 'acme/first']);
    expect(routeOf(answer)).toEqual(['acme/first#oai', 'default']);
    expect(stage.upstream.requests).toHaveLength(length + 1);
    expect(stage.upstream.requests.at(-1)?.body).not.toHaveProperty('models');
    expect(answer.headers.get('x-ignored-fields')).toBeNull();
  });

  test('in every style of callers, in both forms', async () => {
    stage.upstream.script('first', failing);
    const fallbacks = [{ model: 'acme/second' }];
    const answers = [
      await client.call('POST', '/v1/messages', { ...both, max_tokens: 9, messages: hello }),
      await client.call('POST', '/v1/messages', { model: 'acme/first', fallbacks, max_tokens: 9, messages: hello }),
      await client.call('POST', '/v1/responses', { ...both, input: 'Hello' }),
      await client.call('POST', '/v1/responses', { models: ['acme/first', 'acme/second'], input: 'Hello' }),
      await client.call('POST', '/v1/messages', {
        models: ['acme/first', 'acme/second'],
        max_tokens: 9,
        messages: hello,
      }),
    ];
    for (const answer of answers) expect(modelOf(answer)).toEqual([200, 'acme/second']);
    const gemini = await client.call('POST', '/v1beta/models/acme/first:generateContent', {
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      models: ['acme/second'],
    });
    expect([gemini.status, JSON.parse(gemini.text)]).toMatchObject([200, { modelVersion: 'acme/second' }]);
  });

  test('in their order, without one that is named twice', async () => {
    stage.upstream.script('first', failing);
    stage.upstream.script('third', refusing({ message: 'too long', code: 'context_length_exceeded' }));
    const answer = await ask({ model: 'acme/first', models: ['acme/first', 'acme/third', 'second'] });
    expect(routeOf(answer)).toEqual(['acme/second#ant', 'models[2], fallback']);
    expect((await recordOf(answer)).attempts.map(({ route }: { route: string }) => route)).toEqual([
      'acme/first#oai',
      'acme/third#oai',
      'acme/second#ant',
    ]);
  });

  test('in a stream, as long as nothing of it has begun', async () => {
    stage.upstream.script('first', failing);
    const text = [
      messageStart(),
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } }),
      event({ type: 'content_block_stop', index: 0 }),
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } }),
      event({ type: 'message_stop' }),
    ];
    stage.upstream.script('second', { stream: text });
    const answer = await ask({ ...both, stream: true });
    expect(answer.text).toContain('"content":"Hi"');
    expect(answer.text).toContain('"model":"acme/second"');
    expect(answer.text).not.toContain('acme/first');
    expect(routeOf(answer)).toEqual(['acme/second#ant', 'models[0], fallback']);
    stage.upstream.script('first', { stream: [chunk({ role: 'assistant', content: 'Be' })], then: 'cut' });
    const broken = await ask({ ...both, stream: true });
    expect(broken.text).toMatch(/"content":"Be"[\s\S]*cut its answer off/);
    expect(broken.text).not.toContain('acme/second');
    expect(await recordOf(broken)).toMatchObject({ model: 'acme/first', status: 502 });
  });

  test('until the last has failed, whose error is the answer', async () => {
    stage.upstream.script('first', refusing({ code: 'context_length_exceeded', message: 'maximum context length' }));
    stage.upstream.script('second', failing);
    const failed = await ask(both);
    expect([failed.status, failed.json.error.message]).toEqual([502, expect.stringContaining('acme/second')]);
    const refused = await ask({ model: 'acme/third', models: ['acme/first'] });
    expect(modelOf(refused)).toEqual([200, 'acme/third']);
    stage.upstream.script('third', failing);
    const last = await ask({ model: 'acme/third', models: ['acme/first'] });
    expect([last.status, last.json.error.code]).toEqual([400, 'context_length_exceeded']);
    expect(await recordOf(last)).toMatchObject({ model: 'acme/first', status: 400, cost: { exact: '0.000000' } });
  });

  test('that are asked first while its circuit is open', async () => {
    stage.upstream.script('first', refusing({ message: 'bad key' }, 401));
    await ask({ model: 'acme/first' });
    const { length } = stage.upstream.requests;
    expect(routeOf(await ask(both))).toEqual(['acme/second#ant', 'models[0]']);
    expect(stage.upstream.requests).toHaveLength(length + 1);
    stage.upstream.script('second', failing);
    expect((await ask(both)).status).toBe(502);
    expect(stage.upstream.requests).toHaveLength(length + 3);
  });

  test('that take its place where preferences leave it no route', async () => {
    const answer = await ask({ ...both, provider: { only: ['ant'] } });
    expect(routeOf(answer)).toEqual(['acme/second#ant', 'models[0]']);
    const cheaper = await ask({ ...both, provider: { max_price: { completion: 50 } } });
    expect(modelOf(cheaper)).toEqual([200, 'acme/second']);
    const nobody = await ask({ ...both, provider: { only: ['gem'] } });
    expect([nobody.status, nobody.json.error.param, nobody.json.error.message]).toEqual([
      400,
      'provider.only',
      expect.stringContaining('acme/first has oai'),
    ]);
  });

  test('which stay in the body for an upstream that is to have them', async () => {
    const answer = await ask({ model: 'acme/passes', models: ['their/model'] });
    expect(modelOf(answer)).toEqual([200, 'acme/passes']);
    expect(stage.upstream.requests.at(-1)?.body['models']).toEqual(['their/model']);
  });

  test('which are none for the count of tokens', async () => {
    const count = { max_tokens: 9, messages: hello };
    const path = '/v1/messages/count_tokens';
    const { json } = await client.call('POST', path, { ...count, model: 'acme/second' });
    const counted = await client.call('POST', path, { ...count, model: 'acme/second', models: ['acme/first'] });
    expect([counted.status, counted.json]).toEqual([200, json]);
  });
});

test.each<[body: object, status: number, param: string, words: RegExp]>([
  [{ ...both, models: 'acme/second' }, 400, 'models', /array/],
  [{ ...both, models: [7] }, 400, 'models[0]', /id of a model/],
  [{ ...both, models: ['acme/second', ''] }, 400, 'models[1]', /id of a model/],
  [{ ...both, models: ['a', 'b', 'c', 'd'] }, 400, 'models', /at most 3/],
  [{ ...both, models: ['acme/second', 'acme/none'] }, 404, 'models[1]', /"acme\/none"/],
  [{ ...both, models: ['sandbox/image'] }, 404, 'models[0]', /image model: use/],
  [{ ...both, models: ['__proto__'] }, 404, 'models[0]', /__proto__/],
  [{ models: ['acme/none'] }, 404, 'models[0]', /"acme\/none"/],
  [{ models: [] }, 400, 'model', /required/],
  [{ model: 'acme/none', models: ['acme/second'] }, 404, 'model', /"acme\/none"/],
  [{ ...both, fallbacks: [{ model: 'acme/third' }] }, 400, 'fallbacks', /left out/],
  [{ model: 'acme/first', fallbacks: ['acme/third'] }, 400, 'fallbacks[0]', /object/],
  [{ model: 'acme/first', fallbacks: [{ model: 'acme/none' }] }, 404, 'fallbacks[0].model', /"acme\/none"/],
  [
    { model: 'acme/first', fallbacks: [{ model: 'acme/third', max_tokens: 9 }] },
    400,
    'fallbacks[0].max_tokens',
    /model/,
  ],
])('fallbacks that cannot be meant are refused by name: %j', async (body, status, param, words) => {
  const { length } = stage.upstream.requests;
  const { status: got, json } = await ask(body);
  expect([got, json.error.param]).toEqual([status, param]);
  expect(json.error.message).toMatch(words);
  expect(stage.upstream.requests).toHaveLength(length);
});

describe('the money of a call with fallbacks', () => {
  const input = 'x'.repeat(2_000);

  test('is held for the most expensive of its models, and charged by the one that answers', async () => {
    const { promise: release, resolve } = Promise.withResolvers<void>();
    stage.upstream.script('second', { json: message('from second'), after: release });
    stage.upstream.script('first', failing);
    const answering = ask({ model: 'acme/second', models: ['acme/first'], max_tokens: 100 });
    const held = async () => (await client.call('GET', '/v1/balance')).json.held.exact;
    await expect.poll(held).toMatch(/^0\.01\d{4}$/); // 100 tokens of the dear one, and its input
    resolve();
    expect(modelOf(await answering)).toEqual([200, 'acme/second']);
    await expect.poll(held).toBe('0.000000');
  });

  test('stands in the books, the usage and the statement under the model that answered', async () => {
    stage.upstream.script('first', failing);
    const answer = await ask(both);
    expect(answer.status).toBe(200);
    const entries = await stage.test.app.db.query<{ event: string; model: string; route: string | null }>(
      'select event, model, route from ledger_entries where ref = $1 order by number',
      [answer.headers.get('x-request-id')],
    );
    const settled = entries.filter(({ event: name }) => name === 'close');
    expect(settled).toEqual([{ event: 'close', model: 'acme/second', route: 'acme/second#ant' }]);
    const usage = await client.call('GET', '/v1/usage?group_by=model');
    expect(JSON.stringify(usage.json)).toContain('acme/second');
    expect(JSON.stringify(usage.json)).not.toContain('acme/first');
  });

  test('goes as far as it pays one of them: the others are passed over', async () => {
    const poor = await stage.test.client({ credit: '0.02' });
    const body = { ...both, max_tokens: 500, messages: [{ role: 'user', content: input }] };
    const answer = await ask(body, poor);
    expect(routeOf(answer)).toEqual(['acme/second#ant', 'models[0]']);
    const capped = await stage.test.client({ limit: '0.02' });
    expect(routeOf(await ask(body, capped))[0]).toBe('acme/second#ant');
    const broke = await stage.test.client({ credit: '0.001' });
    const refused = await ask(body, broke);
    expect([refused.status, refused.json.error.message]).toEqual([402, expect.stringContaining('0.01 USD')]);
    const limited = await stage.test.client({ limit: '0.001' });
    expect((await ask(body, limited)).status).toBe(403);
  });

  test('bounds the output of each model by itself', async () => {
    stage.upstream.script('first', failing);
    const some = await stage.test.client({ credit: '0.09' });
    const answer = await ask({ ...both, max_tokens: 1_000, messages: [{ role: 'user', content: input }] }, some);
    expect(modelOf(answer)).toEqual([200, 'acme/second']);
    const [first, second] = stage.upstream.requests.slice(-2);
    expect(first?.body['max_tokens']).toBeLessThan(500);
    expect(second?.body['max_tokens']).toBe(1_000);
    expect(answer.headers.get('x-max-tokens')).toBeNull();
  });
});

test('a response in the background has fallbacks, at the prices of its moment', async () => {
  stage.upstream.script('first', failing);
  stage.upstream.script('third', { stream: completionsStream(['from third'], [10, 5]) });
  const created = await client.call('POST', '/v1/responses', {
    model: 'acme/first',
    models: ['acme/third'],
    input: 'Hello',
    background: true,
  });
  expect(modelOf(created)).toEqual([200, 'acme/first']);
  const read = () => client.call('GET', `/v1/responses/${created.json['id']}`);
  await expect.poll(async () => (await read()).json['status']).toBe('completed');
  const { json } = await read();
  expect(json['model']).toBe('acme/third');
  await expect.poll(async () => (await client.call('GET', '/v1/balance')).json.balance.exact).toBe('99.999930');
  expect(await recordOf(created)).toMatchObject({ model: 'acme/third', cost: { exact: '0.000070' } });
});
