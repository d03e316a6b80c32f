// isolated: it moves the monotonic clock of its process
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { elapse } from '../helpers/clock.ts';

/** Specification 2.6 and 4.5: models; and the few paths that need no key. */

const count = 30;
const names = Array.from({ length: count }, (_, i) => `test/model-${String(i).padStart(2, '0')}`);
const model = (id: string, more: string) => `
  - id: ${id}
    kind: image
    input_schema: { type: object, required: [prompt], properties: { prompt: { type: string } } }
    routes: [{ provider: sandbox }]
${more}`;
const plain = `    price: [{ unit: image, amount: "0.01" }]`;
const detailed = `    name: A deeper model
    description: With a long name.
    created: 2025-06-07
    owned_by: somebody
    capabilities: [fast]
    limits: { images_max: 4 }
    price:
      - { unit: image, amount: "0.2", when: { prompt: x } }
      - { unit: image, amount: "0.100000000001", per: 1000 }
`;
const models = [...names.map((name) => model(name, plain)), model('deep/er/model', detailed)];
const yaml = `version: 1\nmodels:${models.join('')}`;

let service: TestApp;
let client: Client;

beforeAll(async () => {
  service = await startTestApp({ yaml, worker: false });
  client = await service.client();
});
afterAll(() => service.stop());

const list = (query = ''): Promise<Answered> => client.call('GET', `/v1/models${query}`);
const idsOf = async (query: string) => (await list(query)).json.data.map(({ id }) => id);
const refusal = (param: string) => ({ status: 400, json: { error: { type: 'invalid_request', param } } });

const deep = { id: 'deep/er/model', display_name: 'A deeper model' };

it('S2.6-2 a model has an id and an input_schema, which is a JSON Schema of 2020-12', async () => {
  const { data } = (await list()).json;
  for (const { id, input_schema, modality } of data) {
    expect(id).toMatch(/^[a-z]/);
    const validate = new Ajv2020({ strict: false }).compile(input_schema);
    const of_calls: Record<string, object> = {
      chat: { messages: [{ role: 'user', content: 'x' }] },
      rerank: { query: 'x', documents: ['x', { text: 'x' }] },
      moderation: { input: 'x' },
      embedding: { input: 'x' },
    };
    const file = 'https://files.example/a';
    const of_files: Record<string, object> = {
      'sandbox/edit': { prompt: 'x', images: [file] },
      'sandbox/transcript': { audio: file },
    };
    const input = of_calls[modality] ?? of_files[id] ?? { prompt: 'x' };
    expect([validate(input), validate({})]).toEqual([true, false]);
  }
});

it('D-models-1 GET /v1/models lists all models by default', async () => {
  const { json } = await list();
  const ids = json.data.map(({ id }) => id);
  expect(ids.slice(0, count)).toEqual(names);
  expect(ids).toEqual(expect.arrayContaining(['sandbox/image', 'sandbox/video', 'sandbox/audio', 'sandbox/failover']));
  expect([json.object, json.has_more, json.first_id, json.last_id]).toEqual(['list', false, ids[0], ids.at(-1)]);
});

it('D-models-2 the limit of GET /v1/models is a whole number from 1 to 1000', async () => {
  expect(await idsOf('?limit=2')).toEqual(names.slice(0, 2));
  expect((await list('?limit=2')).json).toMatchObject({ has_more: true, first_id: names[0], last_id: names[1] });
  expect((await list('?limit=1000')).status).toBe(200);
  for (const limit of ['0', '1001', '-1', 'x']) expect(await list(`?limit=${limit}`)).toMatchObject(refusal('limit'));
});

it('D-models-3 after_id lists the models that follow this one', async () => {
  expect(await idsOf(`?limit=3&after_id=${names[4]}`)).toEqual(names.slice(5, 8));
  expect((await idsOf(`?after_id=${names[4]}`)).slice(0, 25)).toEqual(names.slice(5));
  expect(await list('?after_id=no/such')).toMatchObject(refusal('after_id'));
});

it('D-models-4 before_id lists the models right before this one', async () => {
  expect(await idsOf(`?limit=3&before_id=${names[4]}`)).toEqual(names.slice(1, 4));
  expect(await idsOf(`?before_id=${names[2]}`)).toEqual(names.slice(0, 2));
  expect(await list('?before_id=no/such')).toMatchObject(refusal('before_id'));
});

it('D-models-5 modality lists only the models of this kind', async () => {
  expect(await idsOf('?modality=video')).toEqual(['sandbox/video']);
  expect(await idsOf('?modality=audio')).toEqual(['sandbox/audio', 'sandbox/transcript']);
  expect(await idsOf('?modality=chat')).toEqual(['sandbox/chat']);
  expect(await list('?modality=text')).toMatchObject(refusal('modality'));
});

it('D-models-6 GET /v1/models/{id} accepts an id with plain slashes', async () => {
  expect(await client.call('GET', '/v1/models/deep/er/model')).toMatchObject({ status: 200, json: deep });
  expect(await client.call('GET', '/v1/models/deep/er')).toMatchObject({ status: 404 });
});

it('D-models-7 GET /v1/models/{id} accepts an id with slashes written as %2F', async () => {
  expect(await client.call('GET', '/v1/models/deep%2Fer%2fmodel')).toMatchObject({ status: 200, json: deep });
  expect(await client.call('GET', '/v1/models/deep%2Fer/model')).toMatchObject({ status: 200, json: deep });
});

it('D-models-8 a model has the fields that SDKs of the chat-completions style read', async () => {
  const { json } = await client.call('GET', '/v1/models/deep/er/model');
  expect(json).toMatchObject({ id: deep.id, object: 'model', created: 1_749_254_400, owned_by: 'somebody' });
});

it('D-models-9 a model has the fields that SDKs of the messages style read', async () => {
  const { json } = await client.call('GET', '/v1/models/deep/er/model');
  expect(json).toMatchObject({ type: 'model', display_name: 'A deeper model', created_at: '2025-06-07T00:00:00.000Z' });
});

it('D-models-10 a model has modality, description, output_types, limits, capabilities and status', async () => {
  const { json } = await client.call('GET', '/v1/models/deep/er/model');
  expect(json).toMatchObject({
    modality: 'image',
    description: 'With a long name.',
    output_types: ['image'],
    limits: { images_max: 4 },
    capabilities: ['fast'],
    status: 'available',
  });
});

it('D-models-13 the status of a model says whether all, some or none of its routes accept tasks', async () => {
  const { db } = service.app;
  const pause = (route: string) =>
    db.query(
      `insert into route_health (route, cause, openings, opened_at, retry_at) values ($1, 'upstream_error', 1, $2, $3)`,
      [route, new Date(), new Date(Date.now() + 300_000)],
    );
  const statusOf = async (id: string) => {
    elapse(1_001);
    const { json } = await client.call('GET', `/v1/models/${id}`);
    expect((await list()).json.data.find((one) => one.id === id)?.status).toBe(json.status);
    return json.status;
  };
  const [route] = service.app.catalog.current.models.get(deep.id)?.routes ?? [];
  await pause(`${deep.id}#${route?.id}`);
  expect([await statusOf(deep.id), await statusOf('sandbox/image')]).toEqual(['unavailable', 'available']);
  const [first] = service.app.catalog.current.models.get('sandbox/failover')?.routes ?? [];
  await pause(`sandbox/failover#${first?.id}`);
  expect(await statusOf('sandbox/failover')).toBe('degraded');
  await db.query('delete from route_health');
  expect([await statusOf(deep.id), await statusOf('sandbox/failover')]).toEqual(['available', 'available']);
});

it('D-models-11 the pricing of a model has unit, amount as decimal text, per, currency and when', async () => {
  const { json } = await client.call('GET', '/v1/models/deep/er/model');
  expect(json.pricing).toEqual([
    { unit: 'image', amount: '0.2', per: 1, currency: 'USD', when: { prompt: 'x' } },
    { unit: 'image', amount: '0.100000000001', per: 1000, currency: 'USD' },
  ]);
});

it('D-health-1 GET /livez and GET /readyz need no key', async () => {
  expect(await (await fetch(`${service.url}/livez`)).json()).toEqual({ status: 'ok' });
  expect(await (await fetch(`${service.url}/readyz`)).json()).toMatchObject({ status: 'ready' });
});

it('D-health-2 GET /openapi.json and GET /docs need no key', async () => {
  expect(await (await fetch(`${service.url}/openapi.json`)).json()).toMatchObject({
    openapi: expect.stringMatching(/^3\.1/),
  });
  const docs = await fetch(`${service.url}/docs`);
  expect([docs.status, docs.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
});

it('D-health-3 responses carry no CORS headers unless server.cors_origins names the origin', async () => {
  const from = (origin: string) =>
    client
      .call('GET', '/v1/models?limit=1', undefined, { origin })
      .then(({ headers }) => headers.get('access-control-allow-origin'));
  expect(await from('https://app.example.com')).toBeNull();
  await service.configure(`${yaml}server: { cors_origins: ["https://app.example.com"] }\n`);
  const named = [await from('https://app.example.com'), await from('https://other.example.com')];
  await service.configure(yaml);
  expect(named).toEqual(['https://app.example.com', null]);
});
