import { OpenAI as LangChain } from '@langchain/openai';
import OpenAI6 from 'openai-6';
import OpenAI7 from 'openai-7';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { completion, generated, message } from '../chat/setup.ts';
import { completionsStream } from '../chat/streams.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { setSdkStage, type SdkStage } from './stage.ts';

/** The calls that both versions have in common, as far as the tests need them. */
type Sdk = { completions: { create(body: object): PromiseLike<unknown> } };
type Text = { object: string; choices: { text: string }[]; usage?: { total_tokens: number } };

let sdk: SdkStage;

beforeAll(async () => {
  sdk = await setSdkStage();
});
beforeEach(() => {
  sdk.upstream.script('claude-x', { json: message('Green.') });
  sdk.upstream.script('gpt-x', { json: completion('Green.') });
  sdk.upstream.script('gemini-x', { json: generated([{ text: 'Green.' }]) });
});
afterAll(async () => {
  await expectExactBooks(sdk.stage.test.app);
  await sdk.stop();
});

const prompt = 'The colour is';

describe.each([
  ['openai 6', OpenAI6],
  ['openai 7', OpenAI7],
])('the text completions of the SDK %s', (_, OpenAI) => {
  const client = (): Sdk =>
    new OpenAI({ baseURL: `${sdk.stage.test.url}/v1`, apiKey: sdk.stage.client.key, maxRetries: 0 });

  test.each(['acme/oai', 'acme/ant', 'acme/gem'])('are texts of %s', async (model) => {
    const answer = (await client().completions.create({ model, prompt, max_tokens: 20 })) as Text;
    expect(answer.object).toBe('text_completion');
    expect(answer.choices).toEqual([{ text: 'Green.', index: 0, logprobs: null, finish_reason: 'stop' }]);
    expect(answer.usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 });
  });

  test('are streamed', async () => {
    sdk.upstream.script('gpt-x', { stream: completionsStream(['Gre', 'en.'], [10, 5]) });
    const stream = (await client().completions.create({
      model: 'acme/oai',
      prompt,
      stream: true,
      stream_options: { include_usage: true },
    })) as AsyncIterable<Text>;
    let text = '';
    let total = 0;
    for await (const { choices, usage } of stream) {
      text += choices[0]?.text ?? '';
      total = usage?.total_tokens ?? total;
    }
    expect([text, total]).toEqual(['Green.', 15]);
  });

  test("fail with the SDK's own errors", async () => {
    const error: unknown = await client()
      .completions.create({ model: 'acme/oai', prompt: [1, 2] })
      .then(undefined, (refusal: unknown) => refusal);
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ param: 'prompt', code: 'unsupported_field' });
  });
});

test("LangChain's language model of texts works, whole and streamed", async () => {
  const configuration = { baseURL: `${sdk.stage.test.url}/v1` };
  const model = new LangChain({ model: 'acme/oai', apiKey: sdk.stage.client.key, configuration, maxRetries: 0 });
  expect(await model.invoke(prompt)).toBe('Green.');
  sdk.upstream.script('gpt-x', { stream: completionsStream(['Gre', 'en.'], [10, 5]) });
  let text = '';
  for await (const piece of await model.stream(prompt)) text += piece;
  expect(text).toBe('Green.');
});
