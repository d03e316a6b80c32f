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

const model = 'sandbox/moderation';

describe.each([
  ['openai 6', OpenAI6],
  ['openai 7', OpenAI7],
])('the moderations of the SDK %s', (_, OpenAI) => {
  const client = (key = own.key) => new OpenAI({ baseURL: `${service.url}/v1`, apiKey: key, maxRetries: 0 });

  test('say of each text whether it is flagged', async () => {
    const input = ['A cat on a sofa', 'A fight [[flag violence/graphic]]'];
    const answer = await client().moderations.create({ model, input });
    expect(answer.model).toBe(model);
    expect(answer.id).toMatch(/^modr-/);
    expect(answer.results.map(({ flagged }) => flagged)).toEqual([false, true]);
    expect(answer.results[1]?.categories['violence/graphic']).toBe(true);
    expect(answer.results[1]?.category_scores['violence/graphic']).toBeGreaterThan(0.5);
    expect(answer.results[1]?.category_applied_input_types['violence/graphic']).toEqual(['text']);
  });

  test('take texts and images of one message', async () => {
    const url = 'https://example.com/cat.png';
    const input = [
      { type: 'text' as const, text: 'A cat' },
      { type: 'image_url' as const, image_url: { url } },
    ];
    const { results } = await client().moderations.create({ model, input });
    expect(results).toHaveLength(1);
    expect(results[0]?.category_applied_input_types.violence).toEqual(['text', 'image']);
  });

  test('report their cost in the headers, which is nothing', async () => {
    const { response } = await client().moderations.create({ model, input: 'A cat' }).withResponse();
    expect(response.headers.get('x-cost-amount')).toBe('0.000000');
  });

  test("fail with the SDK's own errors", async () => {
    const refusal = (error: unknown) => error;
    const unknown = await client().moderations.create({ input: 'A cat' }).catch(refusal);
    expect(unknown).toBeInstanceOf(OpenAI.NotFoundError); // this service has no model of the usual name
    expect(unknown).toMatchObject({ status: 404, type: 'not_found', param: 'model' });
    const wrong = await client().moderations.create({ model, input: [] }).catch(refusal);
    expect(wrong).toBeInstanceOf(OpenAI.BadRequestError);
    expect(wrong).toMatchObject({ param: 'input', requestID: expect.stringMatching(/^req_/) });
    const stranger = await client('sk-nobody').moderations.create({ model, input: 'A cat' }).catch(refusal);
    expect(stranger).toBeInstanceOf(OpenAI.AuthenticationError);
  });
});
