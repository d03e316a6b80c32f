import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listEndpoints } from '../../src/server.ts';
import { asObject } from './harness.ts';
import { startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { mediaModel, required_prompt } from '../helpers/catalog.ts';

const image = { price: '0.10', routes: ['{ provider: sandbox, upstream_model: image }'] };

const yaml = `
version: 1
currencies: { USD: "1", PLN: "3.65" }
limits: { generate_per_minute: 3, chat_per_minute: 40 }
models:${mediaModel({
  ...image,
  id: 'acme/pictures/v1',
  schema: required_prompt,
  more: ['name: Pictures', 'description: A picture.', 'created: 2026-03-01', 'estimate: { image: "1" }'],
})}${mediaModel({ ...image, id: 'acme/secret', more: ['name: Secret', 'hidden: true', 'estimate: { image: "1" }'] })}
`;

let service: TestApp;
let client: Client;
beforeAll(async () => {
  service = await startTestApp({ yaml, worker: false });
  client = await service.client();
});
afterAll(() => service?.stop());

const get = (path: string) => client.call('GET', path);
const ids = (answer: Answered) => answer.json.data.map((model) => model.id);

/** Of the built-in catalogue, behind those of the file. */
const sandbox = [
  'sandbox/image',
  'sandbox/edit',
  'sandbox/video',
  'sandbox/audio',
  'sandbox/transcript',
  'sandbox/chat',
  'sandbox/embedding',
  'sandbox/rerank',
  'sandbox/moderation',
  'sandbox/failover',
  'sandbox/down',
];

describe('GET /v1/models', () => {
  test('lists all models, those of the file first, without the hidden one', async () => {
    const answer = await get('/v1/models');
    expect(answer.status).toBe(200);
    expect(ids(answer)).toEqual(['acme/pictures/v1', ...sandbox]);
    expect(answer.json).toMatchObject({
      object: 'list',
      has_more: false,
      first_id: 'acme/pictures/v1',
      last_id: 'sandbox/down',
    });
  });

  test('returns records that SDKs of both chat styles read', async () => {
    const [first] = (await get('/v1/models?limit=1')).json.data;
    expect(first).toEqual({
      id: 'acme/pictures/v1',
      object: 'model',
      type: 'model',
      created: 1772323200,
      created_at: '2026-03-01T00:00:00.000Z',
      owned_by: 'acme',
      display_name: 'Pictures',
      modality: 'image',
      description: 'A picture.',
      input_schema: { type: 'object', required: ['prompt'], properties: { prompt: { type: 'string' } } },
      output_types: ['image'],
      pricing: [{ unit: 'image', amount: '0.10', per: 1, currency: 'USD' }],
      limits: {},
      capabilities: [],
      status: 'available',
      aliases: ['v1'],
    });
  });

  test('pages forwards and backwards', async () => {
    const all = ['acme/pictures/v1', ...sandbox];
    const first = await get('/v1/models?limit=4');
    expect([ids(first), first.json.has_more, first.json.last_id]).toEqual([all.slice(0, 4), true, all[3]]);
    const second = await get(`/v1/models?limit=9&after_id=${encodeURIComponent(first.json.last_id ?? '')}`);
    expect([ids(second), second.json.has_more]).toEqual([all.slice(4), false]);
    const back = await get(`/v1/models?limit=3&before_id=${second.json.first_id}`);
    expect([ids(back), back.json.has_more]).toEqual([all.slice(1, 4), true]);
    const start = await get(`/v1/models?limit=9&before_id=${all[2]}`);
    expect([ids(start), start.json.has_more]).toEqual([all.slice(0, 2), false]);
  });

  test('lists one modality, or an empty list', async () => {
    expect(ids(await get('/v1/models?modality=audio'))).toEqual(['sandbox/audio', 'sandbox/transcript']);
    expect(ids(await get('/v1/models?modality=chat'))).toEqual(['sandbox/chat']);
    const none = await get('/v1/models?modality=audio&after_id=sandbox/transcript');
    expect(none.json).toEqual({ object: 'list', data: [], has_more: false, first_id: null, last_id: null });
  });

  test.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=', 'limit'],
    ['after_id=nothing', 'after_id'],
    ['before_id=acme/secret', 'before_id'],
    ['after_id=sandbox/image&before_id=sandbox/image', 'before_id'],
    ['modality=smell', 'modality'],
  ])('gets 400 for %s', async (query, param) => {
    const answer = await get(`/v1/models?${query}`);
    expect([answer.status, answer.json.error.type, answer.json.error.param]).toEqual([400, 'invalid_request', param]);
  });
});

describe('GET /v1/models/{id}', () => {
  test.each(['acme/pictures/v1', 'acme%2Fpictures%2Fv1'])('returns 200 for %s', async (id) => {
    const answer = await get(`/v1/models/${id}`);
    expect([answer.status, answer.json.id]).toEqual([200, 'acme/pictures/v1']);
  });

  test('returns a hidden model by its id', async () => {
    expect((await get('/v1/models/acme/secret')).status).toBe(200);
  });

  test('returns a 404 that names the unknown id', async () => {
    const answer = await get('/v1/models/acme/nothing');
    expect([answer.status, answer.json.error.type]).toEqual([404, 'not_found']);
    expect(answer.json.error.message).toContain('"acme/nothing"');
  });

  test('returns 404 for a name that every JavaScript object has', async () => {
    expect((await get('/v1/models/__proto__')).status).toBe(404);
    expect((await get('/v1/models/toString')).status).toBe(404);
  });
});

describe('a chat path without a chat model', () => {
  const messages = [{ role: 'user', content: 'Hello' }];
  const completions = '/v1/chat/completions';
  const post = (path: string, body: unknown) => client.call('POST', path, body);

  test.each([completions, '/v1/messages', '/v1/messages/count_tokens'])(
    'gets a 400 on %s that names the missing model',
    async (path) => {
      const answer = await post(path, { messages: [] });
      expect(answer.status).toBe(400);
      expect(answer.json.error).toMatchObject({ type: 'invalid_request', message: 'model is required.' });
      expect((await post(path, { model: 5 })).json.error.message).toBe('model must be a non-empty string.');
      expect((await post(path, '{')).status).toBe(400);
    },
  );

  test('gets 404 in the chat-completions style', async () => {
    const answer = await post(completions, { model: 'acme/chat', messages, max_tokens: 5 });
    expect(answer.status).toBe(404);
    expect(answer.json).toEqual({
      error: {
        message: 'There is no model "acme/chat". GET /v1/models lists the models.',
        type: 'not_found',
        param: 'model',
        code: 'model_not_found',
        request_id: answer.headers.get('x-request-id'),
      },
    });
  });

  test('gets 404 in the messages style, with the headers that SDKs send', async () => {
    const headers = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'a,b' };
    const answer = await client.call(
      'POST',
      '/v1/messages?beta=true',
      { model: 'acme/chat', messages, max_tokens: 5 },
      headers,
    );
    expect(answer.status).toBe(404);
    expect(answer.json).toMatchObject({
      type: 'error',
      error: { type: 'not_found', message: 'There is no model "acme/chat". GET /v1/models lists the models.' },
      request_id: answer.headers.get('request-id'),
    });
  });

  test.each([completions, '/v1/messages', '/v1/messages/count_tokens'])(
    'gets a 404 on %s with a media model that names the right endpoint',
    async (path) => {
      const answer = await post(path, { model: 'sandbox/video', messages, max_tokens: 5 });
      expect(answer.status).toBe(404);
      expect(answer.json.error.message).toBe('"sandbox/video" is a video model: use POST /v1/generate or /v1/videos.');
    },
  );

  test.each([
    [completions, { error: { type: 'invalid_request', param: null, code: null } }],
    ['/v1/messages', { type: 'error', error: { type: 'invalid_request' } }],
    ['/v1/messages/count_tokens', { type: 'error', error: { type: 'invalid_request' } }],
  ])('gets 405 for GET %s', async (path, body) => {
    const answer = await get(path);
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
    expect(answer.json).toMatchObject(body);
  });

  test('counts in the rate limit of chat whatever the method, but count_tokens in that of reads', async () => {
    const limit = async (path: string) => (await post(path, {})).headers.get('x-ratelimit-limit-requests');
    expect((await get('/v1/messages')).headers.get('x-ratelimit-limit-requests')).toBe('40');
    expect((await get('/v1/generate')).headers.get('x-ratelimit-limit-requests')).toBe('600');
    expect([await limit(completions), await limit('/v1/messages'), await limit('/v1/messages/count_tokens')]).toEqual([
      '40',
      '40',
      '600',
    ]);
  });
});

describe('every endpoint below /v1', () => {
  // Those of the dashboard are opened by sessions alone, and have tests of their own.
  const keyed = listEndpoints().filter((endpoint) => !endpoint.public && endpoint.session === undefined);

  test('needs a key', () => {
    const open = listEndpoints().filter((endpoint) => endpoint.public);
    expect(open.map(({ path }) => path).filter((path) => path.startsWith('/v1'))).toEqual([]);
    expect(keyed.length).toBeGreaterThan(14);
  });

  /** Errors come in the format of the path. */
  const isGoogles = (method: string, path: string) =>
    path.startsWith('/v1beta/') || (method === 'POST' && path.startsWith('/v1/models/'));

  test.each(keyed.map(({ method, path }) => [method, path.replaceAll(/\{\+?(\w+)\}/g, 'some')]))(
    'returns 401 without a key: %s %s',
    async (method, path) => {
      for (const authorization of ['', 'Bearer', 'Bearer wrong', `Basic ${client.key}`]) {
        const answer = await client.call(method, path, undefined, { authorization });
        expect(answer.status).toBe(401);
        expect(answer.text).toContain(isGoogles(method, path) ? '"UNAUTHENTICATED"' : '"authentication_error"');
      }
    },
  );

  test.each(keyed.map(({ method, path }) => [method, path.replaceAll(/\{\+?(\w+)\}/g, 'some')]))(
    'reports what is left of its rate limit: %s %s',
    async (method, path) => {
      const one = await service.client();
      const answer = await one.call(method, path);
      const left = Number(answer.headers.get('x-ratelimit-remaining-requests'));
      expect(left).toBe(Number(answer.headers.get('x-ratelimit-limit-requests')) - 1);
      expect(answer.headers.get('x-ratelimit-reset-requests')).toMatch(/^(\d+m)?\d+s$/);
      expect(answer.headers.get('cache-control')).toBe('no-store');
    },
  );
});

describe('the 429', () => {
  test('follows the limits of the file', async () => {
    const one = await service.client();
    const begun_ms = performance.now();
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await one.call('POST', '/v1/generate', {})).status);
    expect(statuses).toEqual([400, 400, 400, 429]);
    const refused = await one.call('POST', '/v1/generate', {});
    expect(refused.json.error.type).toBe('rate_limit');
    const passed_s = (performance.now() - begun_ms) / 1000;
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(Math.floor(60 - passed_s));
    expect((await client.call('GET', '/v1/tasks')).status).toBe(200);
  });
});

describe('the service', () => {
  test('is alive and ready', async () => {
    const ready = await fetch(`${service.url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { status: 'ready', checks: { database: 'ok', migrations: 'ok', money: 'ok' } },
    ]);
    expect((await fetch(`${service.url}/livez`)).status).toBe(200);
  });

  test('is not ready while a migration is missing', async () => {
    const other = await startTestApp({ worker: false });
    try {
      await other.app.db.query('delete from migrations where number = 100');
      const answer = await fetch(`${other.url}/readyz`);
      expect(answer.status).toBe(503);
      expect(await answer.json()).toMatchObject({ error: { checks: { database: 'ok', migrations: 'pending' } } });
    } finally {
      await other.stop();
    }
  });

  test('serves its API reference with its models and its address', async () => {
    const served = asObject(await (await fetch(`${service.url}/openapi.json`)).json());
    expect(served['servers']).toEqual([{ url: service.url }]);
    const names = Object.keys(asObject(asObject(served['components'])['schemas']));
    expect(names).toEqual(expect.arrayContaining(['Input_acme_pictures_v1', 'Input_sandbox_video']));
    expect(names).not.toContain('Input_acme_secret');
    const published = asObject(JSON.parse(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')));
    expect(Object.keys(asObject(served['paths']))).toEqual(Object.keys(asObject(published['paths'])));
  });

  test('returns 404 for a file without a valid link and asks for no key', async () => {
    for (const path of ['/files/a/b/0.png', '/files/a/b/0.png?exp=1&sig=x', '/files/%2e%2e/secret']) {
      const answer = await fetch(service.url + path);
      expect(answer.status).toBe(404);
      expect(await answer.json()).toMatchObject({ error: { type: 'not_found' } });
      expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
    }
    expect((await fetch(`${service.url}/files/`)).status).toBe(404);
    expect((await fetch(`${service.url}/files/a/b/0.png`, { method: 'POST' })).status).toBe(405);
  });
});
