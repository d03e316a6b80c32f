import { ApiError, FunctionCallingConfigMode, GoogleGenAI, Type, type GenerateContentResponse } from '@google/genai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { completion, generated, message, setStage, type Stage } from '../chat/setup.ts';
import { response, messageItem } from '../chat/responses-streams.ts';
import { expectExactBooks } from '../helpers/app.ts';
import type { CallerStyle as WireStyle } from '../styles/by-name.ts';
import { onWire, type Piece } from '../styles/wire.ts';

/** Google's own SDK with upstreams of every style. */

let stage: Stage;
let ai: GoogleGenAI;

const more = `
  - id: acme/res
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: res-x, options: { responses: always } }]
  - id: acme/vectors
    kind: embedding
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }]
    routes: [{ provider: oai, upstream_model: vectors-x }]
`;

beforeAll(async () => {
  stage = await setStage({ more });
  const apiKey = stage.client.key;
  ai = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: stage.test.url } });
});
beforeEach(() => stage.test.app.db.query('delete from route_health'));
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const cells = [
  { model: 'acme/oai', behind: 'gpt-x', upstream: 'completions' },
  { model: 'acme/ant', behind: 'claude-x', upstream: 'messages' },
  { model: 'acme/res', behind: 'res-x', upstream: 'responses' },
  { model: 'acme/gem', behind: 'gemini-x', upstream: 'gemini' },
] as const satisfies { model: string; behind: string; upstream: WireStyle }[];

const whole = (words: string): { readonly [style in WireStyle]: object } => ({
  completions: completion(words),
  messages: message(words),
  gemini: generated([{ text: words }]),
  responses: response([messageItem(words)]),
});

const framing = { end: '\n', space: ' ', comments: false, spread: false };
const called: Piece[] = [
  { say: 'thinking', text: 'Hm.' },
  { say: 'call', index: 0, name: 'look' },
  { say: 'arguments', index: 0, text: '{"city":"Łódź' },
  { say: 'arguments', index: 0, text: ' 😀"}' },
];

const lastRequest = () => stage.upstream.requests.at(-1);

describe.each(cells)('the SDK with $model', ({ model, behind, upstream }) => {
  test('gets a whole answer with its counts', async () => {
    stage.upstream.script(behind, { json: whole('Good day.')[upstream] });
    const answer = await ai.models.generateContent({
      model,
      contents: 'Hello',
      config: { systemInstruction: 'Be brief.' },
    });
    expect(answer.text).toBe('Good day.');
    expect(answer.candidates?.[0]?.finishReason).toBe('STOP');
    expect(answer.modelVersion).toBe(model);
    expect(answer.responseId).toMatch(/^req_/);
    expect(answer.usageMetadata).toMatchObject({ promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 });
    expect(JSON.stringify(lastRequest()?.body)).toContain('Be brief.');
  });

  test('gets a stream with a thought, a call and its result in the next turn', async () => {
    stage.upstream.script(
      behind,
      { stream: [onWire(upstream, called, framing)] },
      { json: whole('It rains.')[upstream] },
    );
    const config = {
      thinkingConfig: { includeThoughts: true },
      tools: [
        {
          functionDeclarations: [
            { name: 'look', parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } } } },
          ],
        },
      ],
    };
    const chunks: GenerateContentResponse[] = [];
    for await (const chunk of await ai.models.generateContentStream({ model, contents: 'Weather?', config }))
      chunks.push(chunk);
    const parts = chunks.flatMap((chunk) => chunk.candidates?.[0]?.content?.parts ?? []);
    const [call] = chunks.flatMap((chunk) => chunk.functionCalls ?? []);
    expect(call).toMatchObject({ name: 'look', args: { city: 'Łódź 😀' } });
    expect(
      parts
        .filter(({ thought }) => thought)
        .map(({ text }) => text)
        .join(''),
    ).toBe('Hm.');
    expect(chunks.at(-1)?.candidates?.[0]?.finishReason).toBe('STOP');
    expect(chunks.at(-1)?.usageMetadata?.totalTokenCount).toBeGreaterThan(0);
    const functionResponse = { name: 'look', response: { output: 'rain' }, ...(call?.id && { id: call.id }) };
    const contents = [
      { role: 'user', parts: [{ text: 'Weather?' }] },
      { role: 'model', parts },
      { role: 'user', parts: [{ functionResponse }] },
    ];
    const answer = await ai.models.generateContent({ model, contents, config });
    expect(answer.text).toBe('It rains.');
    expect(JSON.stringify(lastRequest()?.body)).toContain('rain');
  });

  test('makes the model call a function, sends an image and wants JSON', async () => {
    stage.upstream.script(behind, { json: whole('{"city":"Łódź"}')[upstream] });
    const inlineData = { mimeType: 'image/png', data: 'iVBORw0KGgo=' };
    const answer = await ai.models.generateContent({
      model,
      contents: [{ role: 'user', parts: [{ text: 'Where?' }, { inlineData }] }],
      config: {
        responseMimeType: 'application/json',
        responseSchema: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ['city'] },
        maxOutputTokens: 99,
        stopSequences: upstream === 'responses' ? [] : ['END'],
        temperature: 0.5,
      },
    });
    expect(answer.text).toBe('{"city":"Łódź"}');
    expect(JSON.stringify(lastRequest()?.body)).toContain('iVBORw0KGgo=');
    expect(JSON.stringify(lastRequest()?.body)).toMatch(/"city"/);
  });

  test('is told when a stream breaks off', async () => {
    const [half = ''] = onWire(
      upstream,
      [
        { say: 'text', text: 'Good ' },
        { say: 'text', text: 'day.' },
      ],
      framing,
    ).split('day.');
    stage.upstream.script(behind, { stream: [half], then: 'cut' });
    const read = async () => {
      for await (const chunk of await ai.models.generateContentStream({ model, contents: 'Hello' })) void chunk;
    };
    await expect(read()).rejects.toThrow(ApiError);
  });

  test('counts tokens', async () => {
    stage.upstream.script(behind, { json: { input_tokens: 7, totalTokens: 7 } });
    const { totalTokens } = await ai.models.countTokens({ model, contents: 'Hello' });
    expect(totalTokens).toBeGreaterThan(0);
  });
});

test('the SDK is refused in its own way', async () => {
  const error = await ai.models
    .generateContent({ model: 'acme/none', contents: 'Hello' })
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 404 });
  const stranger = new GoogleGenAI({ apiKey: 'sk-none', httpOptions: { baseUrl: stage.test.url } });
  await expect(stranger.models.generateContent({ model: 'acme/oai', contents: 'Hello' })).rejects.toMatchObject({
    status: 401,
  });
});

test('the SDK makes the model call a function', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  await ai.models.generateContent({
    model: 'acme/oai',
    contents: 'Hello',
    config: {
      tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: { type: 'object' } }] }],
      toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['look'] } },
    },
  });
  expect(lastRequest()?.body).toMatchObject({ tool_choice: { type: 'function', function: { name: 'look' } } });
});

test('the SDK lists models, and finds one', async () => {
  const names: (string | undefined)[] = [];
  for await (const one of await ai.models.list({ config: { pageSize: 2 } })) names.push(one.name);
  expect(names).toEqual(expect.arrayContaining(['models/acme/oai', 'models/acme/vectors']));
  expect(await ai.models.get({ model: 'acme/oai' })).toMatchObject({ name: 'models/acme/oai', outputTokenLimit: 1000 });
});

test('the SDK makes embeddings', async () => {
  const data = [
    { index: 0, object: 'embedding', embedding: [0.5, 1] },
    { index: 1, object: 'embedding', embedding: [2, 3] },
  ];
  stage.upstream.script('vectors-x', {
    json: { object: 'list', data, model: 'vectors-x', usage: { prompt_tokens: 3, total_tokens: 3 } },
  });
  const { embeddings } = await ai.models.embedContent({ model: 'acme/vectors', contents: ['a', 'b'] });
  expect(embeddings?.map(({ values }) => values)).toEqual([
    [0.5, 1],
    [2, 3],
  ]);
});

test('a chat of the SDK goes on over turns', async () => {
  stage.upstream.script('claude-x', {
    stream: [
      onWire(
        'messages',
        [
          { say: 'text', text: 'Good ' },
          { say: 'text', text: 'day.' },
        ],
        framing,
      ),
    ],
  });
  const chat = ai.chats.create({ model: 'acme/ant' });
  for await (const chunk of await chat.sendMessageStream({ message: 'Hello' })) void chunk;
  stage.upstream.script('claude-x', { json: message('Bye.') });
  expect((await chat.sendMessage({ message: 'And now?' })).text).toBe('Bye.');
  expect(JSON.stringify(lastRequest()?.body['messages'])).toContain('Good ');
});

test('the SDK set to version v1 is served too', async () => {
  stage.upstream.script('gpt-x', { json: completion('Good day.') });
  const v1 = new GoogleGenAI({ apiKey: stage.client.key, apiVersion: 'v1', httpOptions: { baseUrl: stage.test.url } });
  expect((await v1.models.generateContent({ model: 'acme/oai', contents: 'Hello' })).text).toBe('Good day.');
});

test('the SDK lists and reads models in version v1 too, which is the one of the SDK for Python', async () => {
  const httpOptions = { baseUrl: stage.test.url };
  const in_v1 = new GoogleGenAI({ apiKey: stage.client.key, apiVersion: 'v1', httpOptions });
  const names: (string | undefined)[] = [];
  for await (const { name } of await in_v1.models.list({ config: { pageSize: 2 } })) names.push(name);
  const expected: (string | undefined)[] = [];
  for await (const { name } of await ai.models.list()) expected.push(name);
  expect(names).toEqual(expected);
  expect(names).toContain('models/acme/oai');
  expect((await in_v1.models.get({ model: 'acme/oai' })).name).toBe('models/acme/oai');
  await expect(in_v1.models.get({ model: 'acme/none' })).rejects.toMatchObject({ status: 404 });
});
