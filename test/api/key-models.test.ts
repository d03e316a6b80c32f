// isolated: it moves the monotonic clock of its process
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { no_rules } from '../../src/accounts/key-rules.ts';
import { changeKeyRules } from '../../src/accounts/keys.ts';
import { completion, hello, message, setStage, type Stage } from '../chat/setup.ts';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import { elapse } from '../helpers/clock.ts';

/** The models that a key may use: in every kind of call, in each style's words, and before any money is held. */

const aliases = `
aliases:
  both: { models: [{ model: acme/oai }, { model: acme/ant }] }
  gem: { models: [{ model: acme/gem }] }
`;

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ more: aliases });
});
beforeEach(() => {
  stage.upstream.script('gpt-x', { json: completion('from oai') });
  stage.upstream.script('claude-x', { json: message('from ant') });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

/** A client whose key may use these models alone. */
async function clientFor(models: readonly string[]): Promise<Client> {
  const client = await stage.test.client();
  await changeKeyRules(stage.test.app.db, client.key_id, { ...no_rules, models });
  stage.test.app.authenticator.invalidate();
  return client;
}

const messages = hello;
const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];
const image = { prompt: 'x', width: 16, height: 16 };

type Refused = readonly [path: string, model: string, body: object];

const refused: readonly Refused[] = [
  ['/v1/chat/completions', 'acme/ant', { model: 'acme/ant', messages }],
  ['/v1/messages', 'acme/ant', { model: 'acme/ant', messages, max_tokens: 5 }],
  ['/v1/messages/count_tokens', 'acme/ant', { model: 'acme/ant', messages }],
  ['/v1/responses', 'acme/ant', { model: 'acme/ant', input: 'Hello' }],
  ['/v1/responses', 'acme/ant', { model: 'acme/ant', input: 'Hello', background: true }],
  ['/v1/responses/input_tokens', 'acme/ant', { model: 'acme/ant', input: 'Hello' }],
  ['/v1/completions', 'acme/ant', { model: 'acme/ant', prompt: 'Hello' }],
  ['/v1beta/models/acme/ant:generateContent', 'acme/ant', { contents }],
  ['/v1beta/models/acme/ant:streamGenerateContent', 'acme/ant', { contents }],
  ['/v1beta/models/acme/ant:countTokens', 'acme/ant', { contents }],
  ['/v1/embeddings', 'sandbox/embedding', { model: 'sandbox/embedding', input: 'Hello' }],
  ['/v1/rerank', 'sandbox/rerank', { model: 'sandbox/rerank', query: 'a', documents: ['b'] }],
  ['/v1/moderations', 'sandbox/moderation', { model: 'sandbox/moderation', input: 'Hello' }],
  ['/v1/generate', 'sandbox/image', { model: 'sandbox/image', input: image }],
  ['/v1/estimate', 'sandbox/image', { model: 'sandbox/image', input: image }],
  ['/v1/images/generations', 'sandbox/image', { model: 'sandbox/image', prompt: 'x' }],
  ['/v1/videos', 'sandbox/video', { model: 'sandbox/video', prompt: 'x' }],
  ['/v1/audio/speech', 'sandbox/audio', { model: 'sandbox/audio', input: 'x', voice: 'a' }],
];

it.each(refused)(
  'POST %s with %s is 403 for a key for another model, and nothing is held',
  async (path, model, body) => {
    const client = await clientFor(['acme/oai']);
    const requests_before = stage.upstream.requests.length;
    const { status, text, headers } = await client.call('POST', path, body);
    expect([status, headers.get('x-should-retry')]).toEqual([403, 'false']);
    expect(text).toContain(`This key may not use ${model}: its rule allows acme/oai.`);
    expect(stage.upstream.requests).toHaveLength(requests_before);
    expect((await client.call('GET', '/v1/balance/transactions?type=hold')).json.data).toEqual([]);
  },
);

it('a refusal has the form of its style', async () => {
  const client = await clientFor(['acme/oai']);
  const ask = async (path: string, body: object) => (await client.call('POST', path, body)).json;
  const error = { type: 'permission_error', message: expect.stringContaining('acme/ant') };
  const chat = await ask('/v1/chat/completions', { model: 'acme/ant', messages });
  expect(chat).toMatchObject({ error: { ...error, code: 'model_not_allowed', param: 'model' } });
  const in_messages = await ask('/v1/messages', { model: 'acme/ant', messages, max_tokens: 5 });
  expect(in_messages).toMatchObject({ type: 'error', error });
  const in_gemini = await ask('/v1beta/models/acme/ant:generateContent', { contents });
  expect(in_gemini).toMatchObject({ error: { code: 403, status: 'PERMISSION_DENIED' } });
});

it('what the key may use is answered, by its other name, too', async () => {
  const client = await clientFor(['acme/oai', 'sandbox/*']);
  const answers = [
    await client.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages }),
    await client.call('POST', '/v1/chat/completions', { model: 'oai', messages }),
    await client.call('POST', '/v1/generate', { model: 'image', input: image }),
    await client.call('POST', '/v1/chat/completions', { model: 'gem', messages }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 202, 403]);
});

describe('an alias of the operator', () => {
  it('in the rule means the models behind it', async () => {
    const client = await clientFor(['both']);
    for (const model of ['both', 'acme/oai', 'acme/ant']) {
      const answer = await client.call('POST', '/v1/chat/completions', { model, messages });
      expect([model, answer.status]).toEqual([model, 200]);
    }
    expect((await client.call('POST', '/v1/chat/completions', { model: 'acme/gem', messages })).status).toBe(403);
  });

  it('stands for those of its models that the key may use', async () => {
    const client = await clientFor(['acme/ant']);
    const ask = (content: string) =>
      client.call('POST', '/v1/chat/completions', { model: 'both', messages: [{ role: 'user', content }] });
    const answers = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(ask));
    expect(answers.map(({ status, json }) => [status, json.model])).toEqual(answers.map(() => [200, 'acme/ant']));
    const none = await client.call('POST', '/v1/chat/completions', { model: 'gem', messages });
    expect([none.status, none.json.error.message]).toEqual([403, expect.stringContaining('may not use gem')]);
  });
});

it('a fallback that the key may not use refuses the call, and the error names its field', async () => {
  const client = await clientFor(['acme/oai']);
  const body = { model: 'acme/oai', models: ['acme/oai', 'acme/ant'], messages };
  const { status, json } = await client.call('POST', '/v1/chat/completions', body);
  expect([status, json.error]).toEqual([
    403,
    expect.objectContaining({ code: 'model_not_allowed', param: 'models[1]' }),
  ]);
});

describe('lists of models', () => {
  it('have only what the key may use', async () => {
    const client = await clientFor(['acme/ant', 'sandbox/*']);
    const ids = (await client.call('GET', '/v1/models')).json.data.map(({ id }) => id);
    expect(ids.filter((id) => !id.startsWith('sandbox/'))).toEqual(['acme/ant', 'both']);
    const both = (await client.call('GET', '/v1/models/both')).json;
    expect(both).toMatchObject({ id: 'both', models: ['acme/ant'] });
    const { text } = await client.call('GET', '/v1beta/models');
    expect(text).toContain('models/acme/ant');
    expect(text).not.toContain('acme/oai');
    const by_header = await client.call('GET', '/v1/models', undefined, { 'x-goog-api-key': client.key });
    expect(by_header.text).not.toContain('acme/oai');
  });

  it.each(['/v1/models/acme/oai', '/v1/models/gem', '/v1beta/models/acme/oai', '/v1beta/models/gem'])(
    'GET %s is 403 for a key for another model',
    async (path) => {
      const client = await clientFor(['acme/ant']);
      const { status, text } = await client.call('GET', path);
      expect([status, text]).toEqual([403, expect.stringContaining('its rule allows acme/ant.')]);
    },
  );
});

it('GET /v1/key shows the models of the key', async () => {
  const client = await clientFor(['acme/*']);
  expect((await client.call('GET', '/v1/key')).json).toMatchObject({ models: ['acme/*'], requests_per_minute: null });
});

it('a changed list holds on every node within a second, without a notification', async () => {
  const client = await stage.test.client();
  const other = await stage.test.beside();
  try {
    const ask = async () => {
      const headers = { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ model: 'sandbox/chat', messages });
      return (await fetch(`${other.url}/v1/chat/completions`, { method: 'POST', headers, body })).status;
    };
    expect(await ask()).toBe(200);
    await changeKeyRules(stage.test.app.db, client.key_id, { ...no_rules, models: ['acme/oai'] });
    elapse(1_000);
    expect(await ask()).toBe(403);
  } finally {
    await other.stop();
  }
});

it('a line of a batch with another model fails alone', async () => {
  const client = await clientFor(['acme/oai']);
  const line = (custom_id: string, model: string) =>
    JSON.stringify({ custom_id, method: 'POST', url: '/v1/chat/completions', body: { model, messages } });
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new File([[line('a', 'acme/oai'), line('b', 'acme/ant')].join('\n')], 'calls.jsonl'));
  const authorization = `Bearer ${client.key}`;
  const sent = await fetch(`${stage.test.url}/v1/files`, { method: 'POST', headers: { authorization }, body: form });
  const { id: input_file_id } = (await sent.json()) as { id: string };
  const batch = { input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' };
  const { id } = (await client.call('POST', '/v1/batches', batch)).json;
  const read = async () => (await client.call('GET', `/v1/batches/${id}`)).text;
  await expect.poll(read, { interval: 100 }).toContain('"status":"completed"');
  const done = JSON.parse(await read()) as { request_counts: object; error_file_id: string };
  expect(done.request_counts).toEqual({ total: 2, completed: 1, failed: 1 });
  const { text } = await client.call('GET', `/v1/files/${done.error_file_id}/content`);
  expect(JSON.parse(text)).toMatchObject({
    custom_id: 'b',
    response: { status_code: 403, body: { error: { code: 'model_not_allowed' } } },
  });
});

it.each<[string, string[], string[]]>([
  ['ids', ['acme/ant'], ['acme/ant']],
  ['a beginning', ['acme/*'], ['acme/ant', 'acme/oai']],
  ['an alias', ['both'], ['acme/ant', 'acme/oai']],
  ['another model', ['sandbox/image'], []],
])('the report of speed of a key for %s has the models of its list alone', async (_, models, shown) => {
  const open = await stage.test.client();
  const limited = await stage.test.client({ account_id: open.account_id });
  await changeKeyRules(stage.test.app.db, limited.key_id, { ...no_rules, models });
  stage.test.app.authenticator.invalidate();
  await open.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages });
  await open.call('POST', '/v1/messages', { model: 'acme/ant', messages, max_tokens: 5 });
  const namesOf = async ({ call }: Client) => {
    const { data } = (await call('GET', '/v1/speed')).json;
    return data.map(({ model }: { model: string }) => model).toSorted();
  };
  await expect.poll(() => namesOf(open)).toEqual(['acme/ant', 'acme/oai']);
  expect(await namesOf(limited)).toEqual(shown);
  expect((await limited.call('GET', '/v1/speed?model=acme/oai')).json.data).toHaveLength(
    shown.includes('acme/oai') ? 1 : 0,
  );
});
