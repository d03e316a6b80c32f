import { afterAll, beforeAll, expect, test } from 'vitest';
import { completion, hello, setStage, type Stage } from './setup.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await setStage();
});
afterAll(() => stage.stop());

test('clients that know a model without its provider are answered, and charged, as the model itself', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  const answer = await stage.client.call('POST', '/v1/chat/completions', { model: 'oai', messages: hello });
  expect([answer.status, answer.json['model']]).toEqual([200, 'acme/oai']);
  const record = await stage.client.call('GET', '/v1/models/oai');
  expect(record.json).toMatchObject({ id: 'acme/oai', aliases: ['oai'] });
  const task = await stage.client.call('POST', '/v1/generate', { model: 'image', input: { prompt: 'x' } });
  expect([task.status, task.json['model']]).toEqual([202, 'sandbox/image']);
});
