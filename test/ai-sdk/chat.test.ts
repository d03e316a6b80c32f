import { APICallError, generateText, stepCountIs, streamText, tool, type ModelMessage } from 'ai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { completion, generated, message, type Stage } from '../chat/setup.ts';
import { response, responsesStream, messageItem } from '../chat/responses-streams.ts';
import { chunk, completionsStream, event, messageStart, messagesStream } from '../chat/streams.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { image_base64 } from './model.ts';
import { loadProvider, setChatStage, type Sdk } from './stage.ts';

let sdk: Sdk;
let provider: ReturnType<Sdk['createMedley']>;
let stage: Stage;
let remove: () => void;
const sent: Request[] = [];

beforeAll(async () => {
  ({ sdk, remove } = await loadProvider());
  stage = await setChatStage();
});
beforeEach(async () => {
  stage.client = await stage.test.client();
  provider = sdk.createMedley({
    baseURL: stage.test.url,
    apiKey: stage.client.key,
    headers: { 'x-team': 'blue' },
    fetch: (input, init) => {
      sent.push(new Request(input, init));
      return fetch(input, init);
    },
  });
  sent.length = 0;
  stage.upstream.requests.length = 0;
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(async () => {
  await stage?.stop();
  remove?.();
});

const refusal = (error: unknown) => error;
const bodies = () => stage.upstream.requests.map(({ body }) => body);
const spent = async () => (await stage.client.call('GET', '/v1/key')).json.spent.exact;
const look = { look: tool({ inputSchema: z.object({ x: z.number() }), execute: () => 'seen' }) };
const looped = (id: string) => ({ model: provider(id), prompt: 'Look.', tools: look, stopWhen: stepCountIs(3) });

function callError(error: unknown): APICallError {
  if (!APICallError.isInstance(error)) throw error;
  return error;
}

describe('thinking over several turns', () => {
  const thought = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' };
  const called = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { x: 1 } };
  const first = { ...message(''), content: [thought, called], stop_reason: 'tool_use' };
  const block = (index: number, content_block: object, delta: object) => [
    event({ type: 'content_block_start', index, content_block }),
    ...(Array.isArray(delta) ? delta : [delta]).map((each: object) =>
      event({ type: 'content_block_delta', index, delta: each }),
    ),
    event({ type: 'content_block_stop', index }),
  ];
  const first_streamed = [
    messageStart(),
    ...block(0, { type: 'thinking', thinking: '', signature: '' }, [
      { type: 'thinking_delta', thinking: 'Hm.' },
      { type: 'signature_delta', signature: 'c2ln' },
    ]),
    ...block(1, { ...called, input: {} }, { type: 'input_json_delta', partial_json: '{"x":1}' }),
    event({
      type: 'message_delta',
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    event({ type: 'message_stop' }),
  ];

  test.each(['whole', 'streamed'])('goes back to a messages upstream with its signature, %s', async (form) => {
    const is_whole = form === 'whole';
    stage.upstream.script(
      'claude-x',
      is_whole ? { json: first } : { stream: first_streamed },
      is_whole ? { json: message('Done.') } : { stream: messagesStream(['Done.']) },
    );
    const request = { ...looped('acme/ant'), reasoning: 'high' as const };
    const result = is_whole ? await generateText(request) : streamText(request);
    expect(await result.text).toBe('Done.');
    const [, second] = bodies();
    expect(second).toMatchObject({ messages: [{ role: 'user' }, { content: [thought, called] }, { role: 'user' }] });
    const [step] = await result.steps;
    expect(step?.reasoningText).toBe('Hm.');
  });

  test('goes back to a Gemini upstream in the call that it belongs to', async () => {
    const part = { functionCall: { id: 'f1', name: 'look', args: { x: 1 } }, thoughtSignature: 'c2lnbmF0dXJl' };
    stage.upstream.script('gemini-x', { json: generated([part]) }, { json: generated([{ text: 'Done.' }]) });
    expect((await generateText(looped('acme/gem'))).text).toBe('Done.');
    expect(JSON.stringify(bodies()[1])).toContain('"thoughtSignature":"c2lnbmF0dXJl"');
  });

  test('goes back to an upstream of the responses style as it sealed it', async () => {
    const reasoning = {
      id: 'rs_1',
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: 'Hm.' }],
      encrypted_content: 'sealed==',
    };
    const call = {
      id: 'fc_1',
      type: 'function_call',
      status: 'completed',
      call_id: 'c1',
      name: 'look',
      arguments: '{"x":1}',
    };
    stage.upstream.script(
      'native-x',
      { json: response([reasoning, call]) },
      { json: response([messageItem('Done.')]) },
    );
    expect((await generateText(looped('acme/native'))).text).toBe('Done.');
    const [first_body, second] = bodies();
    expect(first_body).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] });
    expect(JSON.stringify(second)).toContain('"encrypted_content":"sealed=="');
  });

  test('goes back to an upstream that seals nothing and wants its thoughts all the same', async () => {
    const calls = [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"x":1}' } }];
    const whole = completion('');
    const thinking = { role: 'assistant', content: null, reasoning_content: 'Hm.', tool_calls: calls };
    const choices = [{ index: 0, message: thinking, finish_reason: 'tool_calls' }];
    stage.upstream.script('deep-x', { json: { ...whole, choices } }, { json: completion('Done.') });
    expect((await generateText(looped('acme/deep'))).text).toBe('Done.');
    expect(bodies()[1]).toMatchObject({ messages: [{}, { role: 'assistant', reasoning_content: 'Hm.' }, {}] });
    expect(JSON.stringify(await sent[1]?.json())).not.toContain('medley:unsealed');
  });

  test('of another provider, and its options, stay where they are', async () => {
    stage.upstream.script('native-x', { json: response([messageItem('Hi')]) });
    const options = { openai: { itemId: 'msg_of_somebody', reasoningEncryptedContent: 'theirs' } };
    const messages: ModelMessage[] = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: [{ type: 'text', text: 'Hi', providerOptions: options }] },
      { role: 'user', content: 'Again' },
    ];
    await generateText({
      model: provider('acme/native'),
      messages,
      providerOptions: { openai: { user: 'x', store: true } },
    });
    expect(JSON.stringify(await sent[0]?.json())).not.toMatch(/msg_of_somebody|theirs|"store":true|"user":"x"/);
  });
});

describe('settings', () => {
  const settings = { temperature: 1.5, topP: 0.5, topK: 7, stopSequences: ['END'], maxOutputTokens: 50, seed: 3 };

  test.each([
    ['acme/oai', 'gpt-x', { json: completion('Hi') }, { temperature: 1.5, top_p: 0.5, stop: ['END'], max_tokens: 50 }],
    [
      'acme/ant',
      'claude-x',
      { json: message('Hi') },
      { temperature: 1, top_k: 7, stop_sequences: ['END'], max_tokens: 50 },
    ],
    [
      'acme/gem',
      'gemini-x',
      { json: generated([{ text: 'Hi' }]) },
      {
        generationConfig: {
          temperature: 1.5,
          topP: 0.5,
          topK: 7,
          stopSequences: ['END'],
          seed: 3,
          maxOutputTokens: 50,
        },
      },
    ],
  ])('reach the upstream of %s as it has them, without a warning', async (id, upstream, script, body) => {
    stage.upstream.script(upstream, script);
    const { warnings } = await generateText({ model: provider(id), prompt: 'Hi', ...settings });
    expect([bodies()[0], warnings]).toMatchObject([body, []]);
  });

  test('that an upstream of the responses style lacks are left out, and a text to stop at is refused', async () => {
    stage.upstream.script('native-x', { json: response([messageItem('Hi')]) });
    const model = provider('acme/native');
    const { stopSequences, topK: _, ...others } = settings;
    await generateText({ model, prompt: 'Hi', ...others, presencePenalty: 1, frequencyPenalty: 1 });
    expect(Object.keys(bodies()[0] ?? {})).not.toEqual(expect.arrayContaining(['seed', 'presence_penalty']));
    expect(bodies()[0]).toMatchObject({ temperature: 1.5, top_p: 0.5, max_output_tokens: 50 });
    const error = callError(await generateText({ model, prompt: 'Hi', stopSequences }).catch(refusal));
    expect([error.statusCode, error.isRetryable, bodies().length]).toEqual([400, false, 1]);
    expect(error.message).toContain('stop');
  });

  test.each([
    ['acme/oai', 'gpt-x', { json: completion('Hi') }, { reasoning_effort: 'high' }],
    ['acme/native', 'native-x', { json: response([messageItem('Hi')]) }, { reasoning: { effort: 'high' } }],
    ['acme/ant', 'claude-x', { json: message('Hi') }, { output_config: { effort: 'high' } }],
  ])('of the effort reach %s', async (id, upstream, script, body) => {
    stage.upstream.script(upstream, script);
    await generateText({ model: provider(id), prompt: 'Hi', reasoning: 'high' });
    expect(bodies()[0]).toMatchObject(body);
  });

  test('of the effort do not reach a model that does not think, and its thoughts are not asked for', async () => {
    stage.upstream.script('plain-x', { json: response([messageItem('Hi')]) });
    await generateText({ model: provider('acme/plain'), prompt: 'Hi', reasoning: 'high' });
    expect(bodies()[0]).toMatchObject({ include: [] });
    expect(bodies()[0]).not.toHaveProperty('reasoning');
  });

  test('of caches reach an upstream that has them, on system, text and tool', async () => {
    stage.upstream.script('claude-x', { json: message('Hi') });
    const medley = { cacheControl: { type: 'ephemeral' } };
    const messages: ModelMessage[] = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Long', providerOptions: { medley } },
          { type: 'text', text: 'Hi' },
        ],
      },
    ];
    const instructions = { role: 'system' as const, content: 'Be kind.', providerOptions: { medley } };
    await generateText({ model: provider('acme/ant'), instructions, messages });
    const cache_control = { type: 'ephemeral' };
    expect(bodies()[0]).toMatchObject({
      system: [{ text: 'Be kind.', cache_control }],
      messages: [{ content: [{ text: 'Long', cache_control }, { text: 'Hi' }] }],
    });
  });

  test('of the service itself are fields of providerOptions.medley: fallbacks, end users', async () => {
    stage.upstream.script('gpt-x', { status: 500, json: {} });
    stage.upstream.script('claude-x', { json: message('Hi') });
    const providerOptions = { medley: { models: ['acme/ant'], user: 'kim' } };
    const { response: answer } = await generateText({ model: provider('acme/oai'), prompt: 'Hi', providerOptions });
    expect(answer.modelId).toBe('acme/ant');
    expect(bodies()[1]).toMatchObject({ metadata: { user_id: expect.any(String) } });
  });
});

describe('files', () => {
  test('of text, and images in results of tools, reach a messages upstream', async () => {
    stage.upstream.script('claude-x', { json: message('Hi') });
    const messages: ModelMessage[] = [
      { role: 'user', content: [{ type: 'file', mediaType: 'text/plain', data: { type: 'text', text: 'A note.' } }] },
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 't1', toolName: 'look', input: { x: 1 } }] },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 't1',
            toolName: 'look',
            output: {
              type: 'content',
              value: [
                { type: 'text', text: 'Look at this.' },
                { type: 'file', mediaType: 'image/png', data: { type: 'data', data: image_base64 } },
              ],
            },
          },
        ],
      },
    ];
    await generateText({ model: provider('acme/ant'), messages, tools: look });
    const text = JSON.stringify(bodies()[0]);
    expect(text).toContain('A note.');
    expect(text).toContain(image_base64);
    expect(bodies()[0]).toMatchObject({
      messages: [{}, {}, { content: [{ type: 'tool_result', tool_use_id: 't1' }] }],
    });
  });
});

describe('answers', () => {
  test('have sources where the model cites pages', async () => {
    const annotation = { type: 'url_citation', url: 'https://a.example/', title: 'A', start_index: 0, end_index: 2 };
    const cited = {
      ...messageItem('Hi'),
      content: [{ type: 'output_text', text: 'Hi', annotations: [annotation], logprobs: [] }],
    };
    stage.upstream.script('native-x', { json: response([cited]) });
    const { sources } = await generateText({ model: provider('acme/native'), prompt: 'Hi' });
    expect(sources).toMatchObject([{ sourceType: 'url', url: 'https://a.example/', title: 'A' }]);
  });

  test('have counts of cached and reasoning tokens', async () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 3 },
    };
    stage.upstream.script('gpt-x', { json: completion('Hi', usage) });
    const { usage: counted } = await generateText({ model: provider('acme/oai'), prompt: 'Hi' });
    expect(counted).toMatchObject({
      inputTokens: 10,
      inputTokenDetails: { noCacheTokens: 6, cacheReadTokens: 4 },
      outputTokens: 5,
      outputTokenDetails: { reasoningTokens: 3, textTokens: 2 },
    });
  });

  test.each([
    ['length', 'length'],
    ['content_filter', 'content-filter'],
    ['stop', 'stop'],
  ])('that end with %s say %s', async (reason, name) => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: reason }];
    stage.upstream.script('gpt-x', { json: { ...completion('Hi'), choices } });
    const { finishReason } = await generateText({ model: provider('acme/oai'), prompt: 'Hi' });
    expect(finishReason).toBe(name);
  });

  test.each([
    ['whole', 'acme/native', 'native-x', { json: response([messageItem('Hi')]) }],
    ['streamed', 'acme/native', 'native-x', { stream: responsesStream(['Hi']) }],
    ['whole', 'acme/oai', 'gpt-x', { json: completion('Hi') }],
    ['streamed', 'acme/oai', 'gpt-x', { stream: completionsStream(['Hi'], [10, 5]) }],
  ])('have the cost that the account is charged: %s, of %s', async (form, id, upstream, script) => {
    stage.upstream.script(upstream, script);
    const request = { model: provider(id), prompt: 'Hi' };
    const result = form === 'whole' ? await generateText(request) : streamText(request);
    const { cost, requestId } = (await result.providerMetadata)?.['medley'] ?? {};
    await expect.poll(spent).toBe('0.000070');
    expect(cost).toMatchObject({ amount: '0.000070' });
    await expect.poll(async () => (await stage.client.call('GET', `/v1/chat/${String(requestId)}`)).status).toBe(200);
  });
});

describe('errors', () => {
  test('are repeated by the rules of the service: 502 is, and then the answer comes', async () => {
    stage.upstream.script('gpt-x', { status: 500, json: {} }, { json: completion('Hi') });
    const { text } = await generateText({ model: provider('acme/oai'), prompt: 'Hi', maxRetries: 1 });
    expect([text, sent.length]).toEqual(['Hi', 2]);
  });

  test.each<[string, number, string, () => Promise<ReturnType<Sdk['createMedley']>>]>([
    [
      'a key that is none',
      401,
      'authentication_error',
      async () => sdk.createMedley({ baseURL: stage.test.url, apiKey: 'mdl_none' }),
    ],
    [
      'an account without money',
      402,
      'insufficient_balance',
      async () =>
        sdk.createMedley({ baseURL: stage.test.url, apiKey: (await stage.test.client({ credit: '0.000001' })).key }),
    ],
  ])('are not repeated: %s', async (_name, status, type, makeProvider) => {
    const model = (await makeProvider())('acme/oai');
    const error = callError(await generateText({ model, prompt: 'Hi' }).catch(refusal));
    expect([error.statusCode, error.isRetryable]).toEqual([status, false]);
    expect(error.data).toMatchObject({ error: { type } });
    expect(bodies()).toEqual([]);
  });

  test('before anything came are thrown, in streams too', async () => {
    stage.upstream.script('gpt-x', { status: 500, json: {} });
    let error: unknown;
    const result = streamText({
      model: provider('acme/oai'),
      prompt: 'Hi',
      maxRetries: 0,
      onError: (all) => void ({ error } = all),
    });
    await result.consumeStream();
    expect([callError(error).statusCode, callError(error).isRetryable]).toEqual([502, true]);
  });

  test('after the first words end the stream with an error, never cleanly', async () => {
    stage.upstream.script('gpt-x', {
      stream: [chunk({ role: 'assistant', content: '' }), chunk({ content: 'Some words' })],
      then: 'cut',
    });
    const parts: string[] = [];
    const result = streamText({ model: provider('acme/oai'), prompt: 'Hi', onError: () => undefined });
    for await (const part of result.stream) parts.push(part.type);
    expect(parts).toEqual(expect.arrayContaining(['text-delta', 'error']));
    expect(sent).toHaveLength(1);
  });

  test('of a service that is not there are repeated; a lost answer is not, since it may be paid', async () => {
    // Port 2 is one of those that no test is given.
    const model = sdk.createMedley({ baseURL: 'http://127.0.0.1:2', apiKey: 'mdl_x' })('acme/oai');
    expect(callError(await generateText({ model, prompt: 'Hi', maxRetries: 0 }).catch(refusal)).isRetryable).toBe(true);
    const lost = new TypeError('fetch failed', {
      cause: Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }),
    });
    const broken = sdk.createMedley({ baseURL: stage.test.url, apiKey: 'mdl_x', fetch: () => Promise.reject(lost) })(
      'acme/oai',
    );
    expect(callError(await generateText({ model: broken, prompt: 'Hi' }).catch(refusal)).isRetryable).toBe(false);
  });
});

describe('an abort', () => {
  let controller: AbortController;
  beforeEach(() => (controller = new AbortController()));
  const request = () => ({ model: provider('acme/oai'), prompt: 'Hi', abortSignal: controller.signal });
  const held = async () => (await stage.client.call('GET', '/v1/balance')).json.held.exact;

  test('ends a call, and its hold is settled', async () => {
    stage.upstream.script('gpt-x', 'hang');
    const result = generateText(request()).catch(refusal);
    await expect.poll(() => stage.upstream.requests.length).toBe(1);
    controller.abort();
    expect(await result).toMatchObject({ name: 'AbortError' });
    stage.upstream.letGo();
    await expect.poll(held).toBe('0.000000');
  });

  test('ends a stream, at the upstream too', async () => {
    const stream = [chunk({ role: 'assistant', content: '' }), chunk({ content: 'Some words' })];
    stage.upstream.script('gpt-x', { stream, then: 'hang' });
    const parts: string[] = [];
    for await (const part of streamText(request()).stream) {
      parts.push(part.type);
      if (part.type === 'text-delta') controller.abort();
    }
    expect(parts.at(-1)).toBe('abort');
    await expect.poll(() => stage.upstream.open()).toBe(0);
    await expect.poll(held).toBe('0.000000');
  });
});

describe('a provider', () => {
  test('sends the headers of its own and of the call, and hands out those of the answer', async () => {
    stage.upstream.script('gpt-x', { json: completion('Hi') });
    const headers = { 'x-client-request-id': 'mine-7' };
    const { response: answer } = await generateText({ model: provider('acme/oai'), prompt: 'Hi', headers });
    expect(sent[0]?.headers.get('x-team')).toBe('blue');
    expect(answer.headers?.['x-client-request-id']).toBe('mine-7');
    expect(sent[0]?.url).toBe(`${stage.test.url}/v1/responses`);
  });

  test('reads MEDLEY_URL and MEDLEY_API_KEY at its first call, and says which of them is missing', async () => {
    stage.upstream.script('gpt-x', { json: completion('Hi') });
    try {
      vi.stubEnv('MEDLEY_URL', undefined);
      vi.stubEnv('MEDLEY_API_KEY', undefined);
      const own = sdk.createMedley();
      const ask = () => generateText({ model: own('acme/oai'), prompt: 'Hi' });
      await expect(ask()).rejects.toThrow('MEDLEY_URL');
      vi.stubEnv('MEDLEY_URL', `${stage.test.url}/v1/`);
      await expect(ask()).rejects.toThrow('MEDLEY_API_KEY');
      vi.stubEnv('MEDLEY_API_KEY', stage.client.key);
      expect((await ask()).text).toBe('Hi');
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test('refuses an address with a name and a password in it, and does not repeat them', async () => {
    const own = sdk.createMedley({ baseURL: 'https://kim:secret@medley.example', apiKey: 'mdl_x' });
    const error = await generateText({ model: own('acme/oai'), prompt: 'Hi' }).catch(refusal);
    expect(String(error)).toContain('base_url');
    expect(String(error)).not.toContain('secret');
  });
});
