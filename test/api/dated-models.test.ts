import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { mediaModel, required_prompt } from '../helpers/catalog.ts';

const yaml = `version: 1
sandbox: false
providers: { studio: { adapter: sandbox } }
models:${mediaModel({
  id: 'a/picture',
  schema: required_prompt,
  price: ['{ unit: image, amount: "0.10" }', '{ unit: image, amount: "0.25", from: 2027-01-01 }'],
  more: ['retires: 2027-01-06', 'replaced_by: a/painting', 'estimate: { image: 1 }'],
  routes: ['{ provider: studio, upstream_model: sandbox/image }'],
})}
  - id: a/talk
    kind: chat
    retires: 2027-01-06
    price: [{ unit: input_token, amount: "1", per: 1000000 }, { unit: output_token, amount: "1", per: 1000000 }]
    routes: [{ provider: studio, upstream_model: sandbox/chat }]
`;

let now_ms = Date.parse('2026-12-31T23:59:00Z');
let service: TestApp;
let client: Client;
beforeAll(async () => {
  service = await startTestApp({ yaml, clock: { now: () => now_ms } });
  client = await service.client();
});
afterAll(() => service.stop());

const generate = () => client.call('POST', '/v1/generate?wait=60', { model: 'a/picture', input: { prompt: 'x' } });

test('a task pays the price of the day on which it is created, also if it is at work while the price changes', async () => {
  expect((await generate()).json).toMatchObject({ status: 'succeeded', cost: { amount: '0.10' } });
  now_ms = Date.parse('2026-12-31T23:59:58Z');
  const slow = { model: 'a/picture', input: { prompt: 'x [[delay 5s]]' } };
  const { json: created } = await client.call('POST', '/v1/generate', slow);
  expect(created).toMatchObject({ completed_at: null, estimated_cost: { amount: '0.10' } });
  const task = async () => (await client.call('GET', `/v1/tasks/${created.id}`)).json;
  await expect.poll(async () => (await task()).status, { timeout: 120_000 }).toBe('running');
  now_ms = Date.parse('2027-01-01T00:00:05Z');
  expect((await generate()).json).toMatchObject({ status: 'succeeded', cost: { amount: '0.25' } });
  await expect.poll(async () => (await task()).status, { timeout: 120_000 }).toBe('succeeded');
  expect((await task()).cost.exact).toBe('0.100000');
});

test('a model says when it ends, and is a 404 that names its successor from then on', async () => {
  expect((await client.call('GET', '/v1/models/a/picture')).json).toMatchObject({
    pricing: [{ amount: '0.25' }],
    retires: '2027-01-06',
    replaced_by: 'a/painting',
  });
  now_ms = Date.parse('2027-01-06T00:00:00Z');
  const gone = { status: 404, json: { error: { message: 'a/picture ended on 2027-01-06; use a/painting instead.' } } };
  expect(await generate()).toMatchObject(gone);
  expect(await client.call('GET', '/v1/models/a/picture')).toMatchObject(gone);
  const chat = { model: 'a/talk', messages: [{ role: 'user', content: 'Hi' }] };
  expect(await client.call('POST', '/v1/chat/completions', chat)).toMatchObject({
    status: 404,
    json: { error: { message: 'a/talk ended on 2027-01-06.', param: 'model' } },
  });
  expect((await client.call('GET', '/v1/models')).json).toMatchObject({ data: [] });
});
