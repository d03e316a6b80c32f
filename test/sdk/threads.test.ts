import Anthropic1 from 'anthropic-1';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { completion, generated, message } from '../chat/setup.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { setSdkStage, type SdkStage } from './stage.ts';

let sdk: SdkStage;
let client: Anthropic1;

beforeAll(async () => {
  sdk = await setSdkStage();
  client = new Anthropic1({ baseURL: sdk.stage.test.url, apiKey: sdk.stage.client.key, authToken: null });
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

const first = { role: 'user', content: 'The colour is green.' } as const;
const second = { role: 'user', content: 'Which colour?' } as const;

describe.each(['acme/ant', 'acme/oai', 'acme/gem'])('a conversation with %s', (model) => {
  test('continues in the tool runner without the thread that the SDK asks for by default', async () => {
    const asked_before = sdk.upstream.requests.length;
    const answer = await client.beta.messages.toolRunner({ model, max_tokens: 100, messages: [first], tools: [] });
    expect(answer.content).toMatchObject([{ type: 'text', text: 'Green.' }]);
    expect(sdk.upstream.requests.length).toBe(asked_before + 1);
    expect(sdk.upstream.requests.at(-1)?.body).not.toHaveProperty('thread');
  });

  test('keeps its history when it may go on without a thread', async () => {
    const unsupportedRequestBehavior = 'continue_unthreaded';
    const thread = client.beta.messages.thread({ model, max_tokens: 100, unsupportedRequestBehavior });
    await thread.send(first);
    await thread.send(second);
    const sent = JSON.stringify(sdk.upstream.requests.at(-1)?.body);
    for (const text of [first.content, 'Green.', second.content]) expect(sent).toContain(text);
  });

  test('is refused before anything is lost when it insists on a thread', async () => {
    const thread = client.beta.messages.thread({ model, max_tokens: 100 });
    const asked_before = sdk.upstream.requests.length;
    await expect(thread.send(first)).rejects.toMatchObject({
      status: 400,
      errorCode: 'thread_unsupported_request',
      details: { unsupported: ['thread'] },
    });
    expect(sdk.upstream.requests.length).toBe(asked_before);
  });
});

test('every style refuses a thread in the format of its errors', async () => {
  const thread = { type: 'create' };
  const { call } = sdk.stage.client;
  for (const [path, body] of [
    ['/v1/messages', { model: 'acme/ant', max_tokens: 1, messages: [first], thread }],
    ['/v1/messages/count_tokens', { model: 'acme/ant', messages: [first], thread }],
    ['/v1/chat/completions', { model: 'acme/oai', messages: [first], thread }],
    ['/v1/responses', { model: 'acme/oai', input: 'Hi', thread }],
  ] as const) {
    const details = { error_code: 'thread_unsupported_request' };
    expect(await call('POST', path, body)).toMatchObject({
      status: 400,
      json: { error: { param: 'thread', details } },
    });
  }
});
