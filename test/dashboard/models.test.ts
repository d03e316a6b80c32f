import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelView } from '../../src/dashboard/views/models.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { memberOf, ownerOfNew, type Someone } from './people.ts';

let test: TestApp;
let viewer: Someone;
let client: Client;

beforeAll(async () => {
  test = await startTestApp({ yaml: 'version: 1\n' });
  viewer = await memberOf(test, await ownerOfNew(test), 'viewer');
  client = await test.client({ account_id: viewer.account_id });
});

afterAll(() => test.stop());

const base = () => `${viewer.base}/models`;

async function listed(): Promise<ModelView[]> {
  const answer = await viewer.get(base());
  expect(answer.status).toBe(200);
  return (answer.json as { data: ModelView[] }).data;
}

async function paceOf(id: string) {
  const answer = await viewer.get(`${base()}/${id}`);
  expect(answer.status).toBe(200);
  return (answer.json as ModelView).pace;
}

describe('models in the dashboard', () => {
  it('are those of the API in the same words and order', async () => {
    const { json } = await client.call('GET', '/v1/models');
    const models = json.data.map(({ id, display_name, input_schema, pricing, status }) => {
      return { id, display_name, input_schema, pricing, status };
    });
    expect(await listed()).toMatchObject(models);
    expect(models.length).toBeGreaterThan(5);
  });

  it('that are hidden are not among the choices of filters, nor in the speeds of all accounts', async () => {
    const caller = await test.client();
    await test.configure(`version: 1
models:
  - id: acme/secret
    kind: chat
    hidden: true
    price: [{ unit: input_token, per: 1000000, amount: "3" }, { unit: output_token, per: 1000000, amount: "15" }]
    routes: [{ provider: sandbox, upstream_model: chat }]
`);
    const calls_min = 20; // with fewer, nobody sees the speed of a model
    const body = { model: 'acme/secret', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20 };
    const run = () => caller.call('POST', '/v1/chat/completions', body);
    const answers = await Promise.all(Array.from({ length: calls_min }, run));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const records = await Promise.all(
      answers.map(({ headers }) => caller.call('GET', `/v1/chat/${headers.get('x-request-id')}`)),
    );
    expect(records.map(({ status }) => status)).toEqual(records.map(() => 200));
    const shown = await Promise.all([viewer.get(`${viewer.base}/choices`), viewer.get(`${viewer.base}/model-speeds`)]);
    for (const { status, text } of shown) expect([status, text]).toEqual([200, expect.not.stringContaining('secret')]);
    expect(shown[0]?.text).toContain('sandbox/image');
    await test.configure('version: 1\n');
  });

  it('have a page each, whose address has slashes', async () => {
    const plain = await viewer.get(`${base()}/sandbox/image`);
    const encoded = await viewer.get(`${base()}/sandbox%2Fimage`);
    expect(plain.json).toMatchObject({ id: 'sandbox/image', modality: 'image', status: 'available', pace: null });
    expect(encoded.json).toEqual(plain.json);
    expect((await viewer.get(`${base()}/sandbox/unknown`)).status).toBe(404);
  });

  it('show how they served this account alone, without canceled or refused calls', async () => {
    const other = await test.client();
    const run = (by: Client, prompt: string) =>
      by.call('POST', '/v1/generate?wait=60', { model: 'sandbox/image', input: { prompt, width: 64, height: 64 } });
    await Promise.all([run(client, 'a'), run(client, 'b'), run(client, 'c [[fail]]'), run(client, 'd [[moderate]]')]);
    await run(other, 'somebody else');
    const pace = await paceOf('sandbox/image');
    expect(pace).toMatchObject({ ended: 3, succeeded: 2, first_p50_ms: null });
    expect(pace?.p50_ms).toBeGreaterThan(0);
    expect(pace?.p95_ms).toBeGreaterThanOrEqual(pace?.p50_ms ?? Infinity);
    expect((await listed()).find(({ id }) => id === 'sandbox/image')?.pace).toEqual(pace);
  });

  it('show the time to first content of chat', async () => {
    const body = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20 };
    expect((await client.call('POST', '/v1/chat/completions', body)).status).toBe(200);
    const wrong = { ...body, messages: [{ role: 'user', content: 'Hello [[fail before start]]' }] };
    expect((await client.call('POST', '/v1/chat/completions', wrong)).status).toBeGreaterThanOrEqual(500);
    await expect.poll(() => paceOf('sandbox/chat'), { timeout: 120_000 }).toMatchObject({ ended: 2, succeeded: 1 });
    const pace = await paceOf('sandbox/chat');
    expect(pace?.p50_ms).toBeGreaterThanOrEqual(pace?.first_p50_ms ?? Infinity);
  });

  it('are invisible to strangers', async () => {
    const stranger = await ownerOfNew(test, 'Foreign');
    expect((await stranger.get(base())).status).toBe(404);
    expect((await stranger.get(`${base()}/sandbox/image`)).status).toBe(404);
  });
});
