import { APICallError, generateText } from 'ai';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { ChatAnthropic } from '@langchain/anthropic';
import { ContextOverflowError } from '@langchain/core/errors';
import { ChatOpenAI } from '@langchain/openai';
import Anthropic from 'anthropic-1';
import OpenAI from 'openai-7';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import type { Script } from '../helpers/chat-upstream.ts';
import { completion, hello, message, setStage, type Stage } from './setup.ts';
import { chunk, event, messageStart } from './streams.ts';

/** Errors by which clients shorten a conversation, wait or give up, whatever style the upstream said them in. */

const in_responses = `
  - id: acme/res
    kind: chat
    max_output_tokens: 1000
    limits: { context_tokens: 8192 }
    price: *price
    routes: [{ provider: oai, upstream_model: res-x, options: { responses: always } }]
`;

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ more: in_responses });
});
beforeEach(() => stage.test.app.db.query('delete from route_health'));
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

type CallerStyle = 'chat/completions' | 'messages' | 'responses';
const caller_styles: readonly CallerStyle[] = ['chat/completions', 'messages', 'responses'];

function post(path: CallerStyle, body: object, key = stage.client.key): Promise<Response> {
  return fetch(`${stage.test.url}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...(path === 'responses' ? { input: 'Hello' } : { messages: hello }),
      ...(path === 'messages' && { max_tokens: 100 }),
      ...body,
    }),
  });
}

async function errorIn(answer: Response): Promise<{ code?: string; message: string }> {
  const { error } = JSON.parse(await answer.text()) as { error: { code?: string; message: string } };
  return error;
}

const window_exceeded = {
  code: 'context_length_exceeded',
  message: 'Your input exceeds the context window of this model: your messages resulted in 9001 tokens.',
};

const too_long: { upstream: string; model: string; behind: string; refusal: Script; streamed?: Script }[] = [
  {
    upstream: 'completions',
    model: 'acme/oai',
    behind: 'gpt-x',
    refusal: {
      status: 400,
      json: {
        error: {
          message:
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
          type: 'invalid_request_error',
          code: 'context_length_exceeded',
        },
      },
    },
  },
  {
    upstream: 'messages',
    model: 'acme/ant',
    behind: 'claude-x',
    refusal: {
      status: 400,
      json: {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'prompt is too long: 9001 tokens > 8192 maximum' },
      },
    },
  },
  {
    upstream: 'gemini',
    model: 'acme/gem',
    behind: 'gemini-x',
    refusal: {
      status: 400,
      json: {
        error: {
          code: 400,
          status: 'INVALID_ARGUMENT',
          message: 'The input token count (9001) exceeds the maximum number of tokens allowed (8192).',
        },
      },
    },
  },
  {
    upstream: 'responses',
    model: 'acme/res',
    behind: 'res-x',
    refusal: { status: 400, json: { error: { ...window_exceeded, type: 'invalid_request_error', param: 'input' } } },
    streamed: {
      stream: [
        event({ type: 'response.failed', response: { id: 'resp_1', status: 'failed', error: window_exceeded } }),
      ],
    },
  },
];

/** Words by which clients know that a prompt is too long. */
const clients: readonly [name: string, isOverflow: (text: string) => boolean][] = [
  ['Claude Code', (text) => /prompt is too long[^0-9]*(\d+)\s*tokens?\s*>\s*(\d+)/i.test(text)],
  ['LangChain for messages', (text) => text.includes('prompt is too long')],
  ['LangChain for chat completions', (text) => text.includes('context_length_exceeded')],
  [
    'LiteLLM',
    (text) => !/rate[\s_-]*limit/i.test(text) && text.toLowerCase().includes("this model's maximum context length is"),
  ],
  ['CrewAI', (text) => text.includes('maximum context length')],
  ['others', (text) => text.includes('exceeds the context window')],
];

describe.each(too_long)(
  'a prompt that is too long for an upstream of $upstream',
  ({ model, behind, refusal, streamed }) => {
    test.each(caller_styles)('is named in words and a code that clients know: %s', async (path) => {
      stage.upstream.script(behind, refusal);
      const answer = await post(path, { model });
      const error = await errorIn(answer);
      expect([answer.status, error]).toEqual([
        400,
        expect.objectContaining({ type: 'invalid_request', code: 'context_length_exceeded' }),
      ]);
      for (const [name, isOverflow] of clients) expect(isOverflow(error.message), name).toBe(true);
    });

    test.each(['generateContent', 'streamGenerateContent?alt=sse'])(
      "is named so to callers of Gemini's style: %s",
      async (method) => {
        stage.upstream.script(behind, method === 'generateContent' ? refusal : (streamed ?? refusal));
        const answer = await fetch(`${stage.test.url}/v1beta/models/${model}:${method}`, {
          method: 'POST',
          headers: { 'x-goog-api-key': stage.client.key, 'content-type': 'application/json' },
          body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }),
        });
        const text = await answer.text();
        expect([answer.status, text]).toEqual([400, expect.stringMatching(/"status": ?"INVALID_ARGUMENT"/)]);
        expect(text).toMatch(/"code": ?"context_length_exceeded"/);
        for (const [name, isOverflow] of clients) expect(isOverflow(text), name).toBe(true);
      },
    );

    test.each(caller_styles)('ends a stream before its first word with the same: %s', async (path) => {
      stage.upstream.script(behind, streamed ?? refusal);
      const answer = await post(path, { model, stream: true });
      const text = await answer.text();
      expect(text).toContain('"code":"context_length_exceeded"');
      for (const [name, isOverflow] of clients) expect(isOverflow(text), name).toBe(true);
      // Codex looks for it in the last event of a stream, and takes a 400 for a mistake of its own.
      const [status, end] =
        path === 'responses'
          ? [200, /event: response\.failed\ndata: .*"error":{"code":"context_length_exceeded".*\n\n$/]
          : [400, /^{.*}$/];
      expect([answer.status, text]).toEqual([status, expect.stringMatching(end)]);
    });
  },
);

describe('a prompt that is too long is the own exception of', () => {
  const place = () => ({ baseURL: `${stage.test.url}/v1`, apiKey: stage.client.key });
  const thrown = (call: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(call).then(
      () => 'answered',
      (error: unknown) => error,
    );
  const models = too_long.map(({ model }) => model);

  beforeEach(() => {
    for (const { behind, refusal } of too_long) stage.upstream.script(behind, refusal);
  });

  test.each(models)('LangChain: %s', async (model) => {
    const { baseURL, apiKey } = place();
    const options = { model, apiKey, maxRetries: 0 };
    for (const useResponsesApi of [false, true]) {
      for (const streaming of [false, true]) {
        const chat = new ChatOpenAI({ ...options, configuration: { baseURL }, useResponsesApi, streaming });
        const error = await thrown(chat.invoke('Hello'));
        expect([useResponsesApi, streaming, ContextOverflowError.isInstance(error), String(error)]).toEqual([
          useResponsesApi,
          streaming,
          true,
          expect.anything(),
        ]);
      }
    }
    const chat = new ChatAnthropic({ ...options, anthropicApiUrl: stage.test.url });
    expect(ContextOverflowError.isInstance(await thrown(chat.invoke('Hello')))).toBe(true);
  });

  test.each(models)('the official SDKs: %s', async (model) => {
    const openai = new OpenAI({ ...place(), maxRetries: 0 });
    const call = openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hello' }] });
    const error = await thrown(call);
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ status: 400, code: 'context_length_exceeded' });
    const anthropic = new Anthropic({
      baseURL: stage.test.url,
      apiKey: stage.client.key,
      authToken: null,
      maxRetries: 0,
    });
    const messages = [{ role: 'user' as const, content: 'Hello' }];
    const refused = await thrown(anthropic.messages.create({ model, messages, max_tokens: 10 }));
    expect(refused).toBeInstanceOf(Anthropic.BadRequestError);
    expect(String(refused)).toContain('prompt is too long: 9001 tokens > 8192 maximum');
  });

  test.each(models)('the AI SDK, which does not repeat it: %s', async (model) => {
    const { baseURL, apiKey } = place();
    const openai = createOpenAI({ baseURL, apiKey });
    const anthropic = createAnthropic({ baseURL, apiKey });
    for (const chat of [openai.chat(model), openai.responses(model), anthropic(model)]) {
      const error = await thrown(generateText({ model: chat, prompt: 'Hello', maxRetries: 0 }));
      expect(APICallError.isInstance(error) && [error.statusCode, error.isRetryable]).toEqual([400, false]);
      expect(String(error)).toContain('context_length_exceeded');
    }
  });
});

test.each(caller_styles)(
  'a context that is full in the middle of an answer has its code in the last event: %s',
  async (path) => {
    const full = { error: { code: 400, type: 'exceed_context_size_error', message: 'context size has been exceeded' } };
    stage.upstream.script('gpt-x', { stream: [chunk({ content: 'Half' }), `data: ${JSON.stringify(full)}\n\n`] });
    const answer = await post(path, { model: 'acme/oai', stream: true });
    const text = await answer.text();
    expect([answer.status, text.includes('Half')]).toEqual([200, true]);
    expect(text.slice(text.indexOf('Half'))).toMatch(
      /"type":"upstream_error".*"code":"context_length_exceeded"|"code":"context_length_exceeded".*"type":"upstream_error"/s,
    );
  },
);

test.each(caller_styles)('a content that was refused has the code content_filter: %s', async (path) => {
  const error = { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' };
  stage.upstream.script('claude-x', { status: 400, json: { type: 'error', error } });
  const answer = await post(path, { model: 'acme/ant' });
  const refused = await errorIn(answer);
  expect([answer.status, refused]).toEqual([400, expect.objectContaining({ code: 'content_filter' })]);
  expect(refused.message).toMatch(/request was rejected as a result of the safety system.*content filtering policy/);
  stage.upstream.script('claude-x', { stream: [messageStart(), event({ type: 'error', error })] });
  const streamed = await post(path, { model: 'acme/ant', stream: true });
  expect([streamed.status, (await errorIn(streamed)).code]).toEqual([400, 'content_filter']);
});

test.each(caller_styles)('our own refusals have the codes of the official APIs: %s', async (path) => {
  const code = async (answer: Response) => [answer.status, (await errorIn(answer)).code];
  expect(await code(await post(path, { model: 'acme/none' }))).toEqual([404, 'model_not_found']);
  expect(await code(await post(path, { model: 'acme/oai' }, 'mdl_wrong'))).toEqual([401, 'invalid_api_key']);
  const poor = await stage.test.client({ credit: '0.000001' });
  expect(await code(await post(path, { model: 'acme/oai' }, poor.key))).toEqual([402, 'insufficient_quota']);
  stage.upstream.script('gpt-x', {
    status: 429,
    headers: { 'retry-after': '60' },
    json: { error: { message: 'Rate limit reached' } },
  });
  const limited = await post(path, { model: 'acme/oai' });
  expect(limited.headers.get('retry-after')).not.toBeNull();
  expect(await code(limited)).toEqual([502, 'rate_limit_exceeded']);
});

test('a limit of requests is the rate limit of the SDKs, and money that is missing is a quota that nobody waits for', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  stage.upstream.script('claude-x', { json: message('Hi') });
  const poor = await stage.test.client({ credit: '0.000001' });
  const { baseURL } = { baseURL: `${stage.test.url}/v1` };
  const chat = new ChatOpenAI({ model: 'acme/oai', apiKey: poor.key, configuration: { baseURL }, maxRetries: 3 });
  const refused = () => {
    const lines = [...stage.test.app.metrics.http_requests.lines()];
    const line = lines.find((each) => each.includes('route="/v1/chat/completions",status="402"'));
    return Number(line?.split(' ').at(-1) ?? 0);
  };
  const before = refused();
  await expect(chat.invoke('Hello')).rejects.toMatchObject({ status: 402, code: 'insufficient_quota' });
  await expect.poll(refused).toBe(before + 1); // it was not sent again
});
