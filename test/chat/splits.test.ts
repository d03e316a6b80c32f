import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import type { Script } from '../helpers/chat-upstream.ts';
import { completion, message, setStage, yamlOf, type Stage } from './setup.ts';
import { completionsStream } from './streams.ts';
import { ownerOfNew } from '../dashboard/people.ts';

/** Aliases of the operator: names that stand for several chat models. */

let stage: Stage;
let client: Client;

const dear =
  '[{ unit: input_token, per: 1000000, amount: "20.00" }, { unit: output_token, per: 1000000, amount: "100.00" }]';
const model = (id: string, provider: string, price: string) => `
  - id: acme/${id}
    kind: chat
    max_output_tokens: 1000
    capabilities: [tools${id === 'large' ? ', vision' : ''}]
    price: ${price}
    routes: [{ provider: ${provider}, upstream_model: ${id} }]`;
const aliases = (large: number, small: number, fallbacks = false) => `
aliases:
  smart: { models: [{ model: acme/large, weight: ${large} }, { model: acme/small, weight: ${small} }], fallbacks: ${fallbacks} }
  steady: { models: [{ model: acme/large, weight: 1 }, { model: acme/small, weight: 0 }], fallbacks: true }
  gone: { models: [{ model: acme/none }] }
`;
const models = model('large', 'oai', dear) + model('small', 'ant', '*price');

beforeAll(async () => {
  stage = await setStage({ more: models + aliases(1, 1) });
});
beforeEach(async () => {
  for (const route of ['acme/large#oai', 'acme/small#ant']) await stage.test.app.health.closeCircuits(route);
  client = await stage.test.client();
  stage.upstream.script('large', { json: completion('from large') });
  stage.upstream.script('small', { json: message('from small') });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const failing: Script = { status: 500, json: { error: { message: 'no' } } };
const user = (content: string) => ({ role: 'user', content });
const ask = (text: string, fields: object = {}): Promise<Answered> =>
  client.call('POST', '/v1/chat/completions', { model: 'smart', messages: [user(text)], ...fields });
const modelOf = ({ status, json }: Answered) => [status, json['model']];
const routeOf = ({ headers }: Answered) => [headers.get('x-route'), headers.get('x-route-reason')];

/** A conversation that falls to this model. */
async function textFor(id: string): Promise<string> {
  for (let n = 0; n < 60; n++) if ((await ask(`Hello ${n}`)).json['model'] === id) return `Hello ${n}`;
  throw new Error(`no conversation of sixty fell to ${id}`);
}

describe('an alias', () => {
  test('splits conversations by weight, and each stays with its model in every style', async () => {
    for (const id of ['acme/large', 'acme/small']) {
      const text = await textFor(id);
      const grown = [user(text), { role: 'assistant', content: 'x' }, user('And then?')];
      const answers = [
        await ask(text),
        await ask('', { messages: grown }),
        await ask('', { messages: [{ role: 'system', content: 'It is 9:01.' }, ...grown] }),
        await client.call('POST', '/v1/messages', { model: 'smart', max_tokens: 9, messages: grown }),
        await client.call('POST', '/v1/responses', { model: 'smart', input: text }),
      ];
      for (const answer of answers) expect(modelOf(answer)).toEqual([200, id]);
    }
  });

  test('keeps a conversation that is continued by the id of its response', async () => {
    const text = await textFor('acme/small');
    const first = await client.call('POST', '/v1/responses', { model: 'smart', input: text });
    expect(modelOf(first)).toEqual([200, 'acme/small']);
    for (const input of ['And then?', 'And behind that?', 'What else?', 'Why?']) {
      const next = await client.call('POST', '/v1/responses', {
        model: 'smart',
        input,
        previous_response_id: first.json['id'],
      });
      expect(modelOf(next)).toEqual([200, 'acme/small']);
    }
  });

  test('keeps what has a key for caches or a user, whatever the texts are', async () => {
    for (const fields of [{ prompt_cache_key: 'k1' }, { user: 'jane' }, { session_id: 's1' }]) {
      const [first, ...others] = await Promise.all(
        ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((text) => ask(text, fields)),
      );
      for (const answer of others) expect(modelOf(answer)).toEqual([200, first?.json['model']]);
    }
  });

  test('is charged and recorded as the model that answers, and the answer says why', async () => {
    const text = await textFor('acme/small');
    const answer = await ask(text);
    expect(routeOf(answer)).toEqual(['acme/small#ant', 'alias smart']);
    expect(answer.headers.get('x-cost-amount')).toBe('0.000070');
    const record = await client.call('GET', `/v1/chat/${answer.headers.get('x-request-id')}`);
    expect(JSON.parse(record.text)).toMatchObject({
      model: 'acme/small',
      attempts: [{ route: 'acme/small#ant', why: 'alias smart' }],
    });
    const preferred = await ask(text, { provider: { order: ['ant'] } });
    expect(routeOf(preferred)).toEqual(['acme/small#ant', 'alias smart, provider.order']);
  });

  test('asks no other model, unless the operator wants that', async () => {
    const text = await textFor('acme/large');
    stage.upstream.script('large', failing);
    expect((await ask(text)).status).toBe(502);
    const steady = await ask(text, { model: 'steady' });
    expect(routeOf(steady)).toEqual(['acme/small#ant', 'alias steady, fallback']);
    const own = await ask(text, { models: ['acme/oai', 'acme/small'] });
    expect(routeOf(own)[1]).toBe('models[1], fallback');
    const named = await ask(text, { model: 'acme/large', models: ['steady'] });
    expect(routeOf(named)).toEqual(['acme/small#ant', 'models[0], alias steady, fallback']);
  });

  test('is listed as a model that all styles of clients can read', async () => {
    const listed = await client.call('GET', '/v1/models');
    const ids = JSON.parse(listed.text).data.map(({ id }: { id: string }) => id);
    expect(ids).toContain('smart');
    expect(ids).not.toContain('gone');
    const { json } = await client.call('GET', '/v1/models/smart');
    expect(json).toMatchObject({
      id: 'smart',
      object: 'model',
      aliases: [],
      modality: 'chat',
      models: ['acme/large', 'acme/small'],
      capabilities: ['tools'],
      status: 'available',
      pricing: [{ amount: '20.00' }, { amount: '100.00' }],
    });
    const gemini = await client.call('GET', '/v1beta/models/smart');
    expect([gemini.status, JSON.parse(gemini.text)]).toMatchObject([200, { name: 'models/smart' }]);
    const counted = await client.call('POST', '/v1/messages/count_tokens', { model: 'smart', messages: [user('Hi')] });
    expect(counted.status).toBe(200);
    const generated = await client.call('POST', '/v1beta/models/smart:generateContent', {
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
    });
    expect(JSON.parse(generated.text)).toMatchObject({ modelVersion: expect.stringMatching(/^acme\/(large|small)$/) });
  });

  test('is no model of media or embeddings, and one without models is not available', async () => {
    const task = await client.call('POST', '/v1/generate', { model: 'smart', input: { prompt: 'x' } });
    expect([task.status, task.json.error.message]).toEqual([404, expect.stringContaining('POST /v1/chat/completions')]);
    const vectors = await client.call('POST', '/v1/embeddings', { model: 'smart', input: 'x' });
    expect(vectors.status).toBe(404);
    const gone = await ask('x', { model: 'gone' });
    expect([gone.status, gone.json.error.message]).toEqual([502, expect.stringContaining('gone is not available')]);
    expect((await client.call('GET', '/v1/models/gone')).status).toBe(404);
  });

  test('works in the playground of the dashboard', async () => {
    const owner = await ownerOfNew(stage.test);
    const listed = await owner.get(`${owner.base}/models`);
    expect(JSON.stringify(listed.json)).toContain('"id":"smart"');
    expect((await owner.get(`${owner.base}/models/smart`)).json).toMatchObject({
      id: 'smart',
      models: ['acme/large', 'acme/small'],
      pace: null,
    });
    const body = { model: 'smart', messages: [user('Hello')], max_tokens: 9 };
    const estimated = await owner.post(`${owner.base}/chat/completions/estimate`, body);
    expect(estimated.json).toMatchObject({ ok: true });
    const answered = await owner.post(`${owner.base}/chat/completions`, body);
    expect([answered.status, answered.json]).toMatchObject([200, { model: expect.stringMatching(/^acme\//) }]);
  });

  test('has its response in the background made by the model of its moment, whatever a reload changes', async () => {
    await stage.test.configure(yamlOf(stage.upstream, models + aliases(1, 0)));
    stage.upstream.script('large', { stream: completionsStream(['from large'], [10, 5]) });
    const created = await client.call('POST', '/v1/responses', { model: 'smart', input: 'Hello', background: true });
    await stage.test.configure(yamlOf(stage.upstream, models + aliases(0, 1)));
    const read = () => client.call('GET', `/v1/responses/${created.json['id']}`);
    await expect.poll(async () => (await read()).json['status']).toBe('completed');
    expect((await read()).json['model']).toBe('acme/large');
  });

  test('has its summary written by the model of the conversation', async () => {
    const input = [user(await textFor('acme/small')), { role: 'assistant', content: 'x' }, user('And then?')];
    stage.upstream.script('small', { json: message('A summary.') });
    const { length } = stage.upstream.requests;
    const compacted = await client.call('POST', '/v1/responses/compact', { model: 'smart', input });
    expect(compacted.status).toBe(200);
    expect(stage.upstream.requests.slice(length).map(({ body }) => body['model'])).toEqual(['small']);
  });

  test('moves conversations when a reload changes its weights', async () => {
    await stage.test.configure(yamlOf(stage.upstream, models + aliases(1, 0)));
    for (const text of ['a', 'b', 'c', 'd']) expect(modelOf(await ask(text))).toEqual([200, 'acme/large']);
    await stage.test.configure(yamlOf(stage.upstream, models + aliases(0, 1)));
    for (const text of ['a', 'b', 'c', 'd']) expect(modelOf(await ask(text))).toEqual([200, 'acme/small']);
    await expect(stage.test.configure(yamlOf(stage.upstream, models + aliases(0, 0)))).rejects.toThrow(
      /weight above 0/,
    );
    expect(modelOf(await ask('a'))).toEqual([200, 'acme/small']);
  });
});
