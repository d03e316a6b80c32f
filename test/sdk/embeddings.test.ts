import OpenAI6 from 'openai-6';
import OpenAI7 from 'openai-7';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';

let service: TestApp;
let own: Client;

beforeAll(async () => {
  service = await startTestApp({ worker: false });
  own = await service.client();
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

const model = 'sandbox/embedding';
const input = ['A cat on a sofa', 'Größe 😀'];

describe.each([
  ['openai 6', OpenAI6],
  ['openai 7', OpenAI7],
])('the embeddings of the SDK %s', (_, OpenAI) => {
  const client = (key = own.key) => new OpenAI({ baseURL: `${service.url}/v1`, apiKey: key, maxRetries: 0 });

  test('are the same vectors as base64, its default, and as numbers', async () => {
    const usual = await client().embeddings.create({ model, input });
    const plain = await client().embeddings.create({ model, input, encoding_format: 'float' });
    expect(usual.data.map(({ index, object }) => [index, object])).toEqual([
      [0, 'embedding'],
      [1, 'embedding'],
    ]);
    expect(plain.data.map(({ embedding }) => embedding)).toEqual(usual.data.map(({ embedding }) => embedding));
    for (const { embedding } of usual.data) expect(Math.hypot(...embedding)).toBeCloseTo(1, 5);
    expect([usual.model, usual.object]).toEqual([model, 'list']);
    expect(usual.usage).toEqual({ prompt_tokens: 8, total_tokens: 8 });
  });

  test('accept tokens, dimensions and base64 text', async () => {
    const request = { model, input: [24_912, 2_375], dimensions: 8, encoding_format: 'base64' as const };
    const { data } = await client().embeddings.create(request);
    expect(Buffer.from(String(data[0]?.embedding), 'base64')).toHaveLength(32);
  });

  test('report their cost in the headers', async () => {
    const { response } = await client()
      .embeddings.create({ model, input: 'word '.repeat(99) })
      .withResponse();
    expect(response.headers.get('x-cost-amount')).toBe('0.000010'); // 100 tokens at 0.10 per million
  });

  test("fail with the SDK's own errors", async () => {
    const refusal = (error: unknown) => error;
    const unknown = await client().embeddings.create({ model: 'nobody/none', input }).catch(refusal);
    expect(unknown).toBeInstanceOf(OpenAI.NotFoundError);
    expect(unknown).toMatchObject({ status: 404, type: 'not_found', param: 'model' });
    const wrong = await client().embeddings.create({ model, input: [] }).catch(refusal);
    expect(wrong).toBeInstanceOf(OpenAI.BadRequestError);
    expect(wrong).toMatchObject({ param: 'input', requestID: expect.stringMatching(/^req_/) });
    const stranger = await client('sk-nobody').embeddings.create({ model, input }).catch(refusal);
    expect(stranger).toBeInstanceOf(OpenAI.AuthenticationError);
    const poor = await service.client({ credit: '0.000001' });
    const broke = await client(poor.key)
      .embeddings.create({ model, input: 'x'.repeat(1_000) })
      .catch(refusal);
    expect(broke).toMatchObject({ status: 402, type: 'insufficient_balance' });
  });
});
