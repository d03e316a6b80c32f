import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks, type Answered } from '../helpers/app.ts';
import { completion, generated, hello, message, setStage, yamlOf, type Stage } from './setup.ts';
import { completionsStream } from './streams.ts';

/** Preferences of callers for the routes of a model (`provider`). */

let stage: Stage;
const more = `
  - id: acme/three
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes:
      - { provider: oai, upstream_model: one }
      - { provider: quiet, upstream_model: two }
      - { provider: gem, upstream_model: three }
  - id: acme/passes
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: gpt-x, options: { pass: [provider] } }]
`;
const providers = `
  quiet: { adapter: anthropic, base_url: "URL", api_key: env:TEST_UPSTREAM_KEY, allow_private: true, data_collection: deny }
`;

beforeAll(async () => {
  stage = await setStage({ more, providers });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

function scriptAll(): void {
  stage.upstream.script('one', { json: completion('Hi') });
  stage.upstream.script('two', { json: message('Hi') });
  stage.upstream.script('three', { json: generated([{ text: 'Hi' }]) });
}

const ask = (provider: unknown, fields: object = {}): Promise<Answered> =>
  stage.client.call('POST', '/v1/chat/completions', { model: 'acme/three', messages: hello, provider, ...fields });
const routeOf = ({ status, headers }: Answered) => [status, headers.get('x-route'), headers.get('x-route-reason')];
const refusalOf = ({ status, json }: Answered) => [status, json.error.param, json.error.message];

describe('preferences for providers', () => {
  test.each<[provider: object | undefined, route: string, why: string]>([
    [undefined, 'oai', 'default'],
    [{}, 'oai', 'default'],
    [{ order: ['gem', 'quiet'] }, 'gem', 'provider.order'],
    [{ order: ['GEM'] }, 'gem', 'provider.order'],
    [{ order: ['far', 'quiet'] }, 'quiet', 'provider.order'],
    [{ only: ['quiet'] }, 'quiet', 'provider.only'],
    [{ only: ['quiet', 'gem'], order: ['gem'] }, 'gem', 'provider.order'],
    [{ ignore: ['oai'] }, 'quiet', 'provider.ignore'],
    [{ data_collection: 'deny' }, 'quiet', 'provider.data_collection'],
    [{ data_collection: 'allow', sort: 'price', allow_fallbacks: null }, 'oai', 'provider.sort=price'],
    [{ max_price: { prompt: 2, completion: '10.00', request: 0 } }, 'oai', 'default'],
  ])('%j are answered by %s', async (provider, route, why) => {
    scriptAll();
    expect(routeOf(await ask(provider))).toEqual([200, `acme/three#${route}`, why]);
  });

  test('that one style has work in every style, and upstreams do not get them', async () => {
    scriptAll();
    const provider = { only: ['quiet'] };
    const answers = [
      await ask(provider),
      await stage.client.call('POST', '/v1/messages', {
        model: 'acme/three',
        max_tokens: 9,
        messages: hello,
        provider,
      }),
      await stage.client.call('POST', '/v1/responses', { model: 'acme/three', input: 'Hello', provider }),
      await stage.client.call('POST', '/v1beta/models/acme/three:generateContent', {
        contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
        provider,
      }),
    ];
    for (const answer of answers) {
      expect(routeOf(answer)).toEqual([200, 'acme/three#quiet', 'provider.only']);
      expect(answer.headers.get('x-ignored-fields')).toBeNull();
    }
    for (const { body } of stage.upstream.requests.slice(-answers.length)) expect(body).not.toHaveProperty('provider');
  });

  test('name what failed before, in the headers and in the record of the call', async () => {
    scriptAll();
    stage.upstream.script('three', { status: 500, json: { error: { message: 'no' } } });
    const answer = await ask({ order: ['gem', 'quiet'] });
    expect(routeOf(answer)).toEqual([200, 'acme/three#quiet', 'provider.order, fallback']);
    const record = await stage.client.call('GET', `/v1/chat/${answer.headers.get('x-request-id')}`);
    expect(JSON.parse(record.text).attempts).toMatchObject([
      { route: 'acme/three#gem', outcome: 'failed', why: 'provider.order' },
      { route: 'acme/three#quiet', outcome: 'answered', why: 'provider.order, fallback' },
    ]);
  });

  test('without fallbacks leave the first route alone, or those of the order', async () => {
    scriptAll();
    const { length } = stage.upstream.requests;
    stage.upstream.script('one', { status: 500, json: { error: { message: 'no' } } });
    expect((await ask({ allow_fallbacks: false })).status).toBe(502);
    expect((await ask({ allow_fallbacks: false, order: ['oai'] })).status).toBe(502);
    expect(stage.upstream.requests).toHaveLength(length + 2);
    expect(routeOf(await ask({ order: ['oai', 'gem'], allow_fallbacks: false }))[1]).toBe('acme/three#gem');
  });

  test.each<[provider: unknown, param: string, words: RegExp]>([
    ['oai', 'provider', /object/],
    [{ order: 'oai' }, 'provider.order', /array|list/],
    [{ order: ['oai', 'nobody'] }, 'provider.order[1]', /"nobody".*acme\/three has oai, quiet, gem/],
    [{ only: [7] }, 'provider.only[0]', /7.*acme\/three has/],
    [{ ignore: ['__proto__'] }, 'provider.ignore[0]', /__proto__/],
    [{ only: ['far'] }, 'provider.only', /leaves no route: acme\/three has oai, quiet, gem/],
    [{ only: [] }, 'provider.only', /leaves no route/],
    [{ ignore: ['oai', 'quiet', 'gem'] }, 'provider.ignore', /leaves no route/],
    [{ only: ['oai'], data_collection: 'deny' }, 'provider.data_collection', /operator/],
    [{ order: ['far'], allow_fallbacks: false }, 'provider.order', /leaves no route/],
    [{ data_collection: 'never' }, 'provider.data_collection', /allow or deny/],
    [{ sort: 'cheapness' }, 'provider.sort', /price, latency, throughput/],
    [{ allow_fallbacks: 'no' }, 'provider.allow_fallbacks', /true or false/],
    [{ max_price: { prompt: 1.99 } }, 'provider.max_price.prompt', /price of acme\/three: 2 USD for a million tokens/],
    [{ max_price: { completion: '9.999999' } }, 'provider.max_price.completion', /10 USD/],
    [{ max_price: { prompt: -1 } }, 'provider.max_price.prompt', /not negative/],
    [{ max_price: { prompt: 1e300 } }, 'provider.max_price.prompt', /number/],
    [{ max_price: { prompt: {} } }, 'provider.max_price.prompt', /number/],
    [{ zdr: true }, 'provider.zdr', /not offered/],
    [{ quantizations: ['fp8'] }, 'provider.quantizations', /not offered/],
  ])('of %j are a 400 that names %s, and nothing is held or asked', async (provider, param, words) => {
    scriptAll();
    const { length } = stage.upstream.requests;
    const before = (await stage.client.call('GET', '/v1/balance')).json;
    const answer = await ask(provider);
    expect(refusalOf(answer)).toEqual([400, param, expect.stringMatching(words)]);
    expect(stage.upstream.requests).toHaveLength(length);
    expect((await stage.client.call('GET', '/v1/balance')).json.available).toEqual(before.available);
  });

  test('for the fastest take the route that streamed its first content soonest', async () => {
    const { speeds } = stage.test.app;
    stage.upstream.script('one', { stream: completionsStream(['Hi'], [10, 5]) });
    expect((await ask(undefined, { stream: true })).status).toBe(200);
    for (let count = 0; count < 20; count++) {
      speeds.note('acme/three#oai', { first_content_ms: 900, tokens_per_s: 1e9 });
      speeds.note('acme/three#gem', { first_content_ms: 90, tokens_per_s: 8 });
    }
    scriptAll();
    expect(routeOf(await ask({ sort: 'latency' }))).toEqual([200, 'acme/three#gem', 'provider.sort=latency']);
    expect(routeOf(await ask({ sort: { by: 'throughput' }, ignore: ['quiet'] }))[1]).toBe('acme/three#oai');
    expect(routeOf(await ask({ sort: 'throughput', ignore: ['oai', 'quiet'], allow_fallbacks: false }))[1]).toBe(
      'acme/three#gem',
    );
  });

  test('go to the upstream where its route passes them on', async () => {
    stage.upstream.script('gpt-x', { json: completion('Hi') });
    const provider = { order: ['DeepInfra'] };
    expect((await ask(provider, { model: 'acme/passes' })).status).toBe(200);
    expect(stage.upstream.requests.at(-1)?.body['provider']).toEqual(provider);
  });
});

test('an operator who chooses the routes alone refuses the field, and names no provider', async () => {
  scriptAll();
  const node = await stage.test.beside({
    yaml: `${yamlOf(stage.upstream, more, providers)}routing: { by_caller: false }\n`,
    worker: false,
  });
  try {
    const askThere = (body: object) =>
      fetch(`${node.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'acme/three', messages: hello, ...body }),
      });
    const refused = await askThere({ provider: { order: ['oai'] } });
    const text = await refused.text();
    expect([refused.status, text]).toEqual([400, expect.stringContaining('the operator chooses the route')]);
    expect(text).not.toMatch(/oai|quiet|gem/);
    const answered = await askThere({});
    expect([answered.status, answered.headers.get('x-route'), answered.headers.get('x-route-reason')]).toEqual([
      200,
      null,
      null,
    ]);
    await answered.arrayBuffer();
  } finally {
    await node.stop();
  }
});
