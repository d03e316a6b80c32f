import {
  embed,
  embedMany,
  APICallError,
  experimental_generateVideo as generateVideo,
  generateImage,
  generateObject,
  generateSpeech,
  generateText,
  rerank,
  stepCountIs,
  streamObject,
  streamText,
  tool,
  transcribe,
  type LanguageModel,
} from 'ai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Stage } from '../chat/setup.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { wav } from '../storage/samples.ts';
import { audio_base64, image_base64, modelAnswer, pdf_base64 } from './model.ts';
import { answered, chat_models, loadProvider, setChatStage, startSite, type Sdk } from './stage.ts';

/**
 * The cases of the AI SDK's own feature suite for providers (vercel/ai, examples/ai-functions/src/e2e, read on 2026-11-28),
 * in words of our own, with the built package against the service. Each kind of upstream answers; search grounding and
 * safety ratings are Google's alone.
 */

let provider: ReturnType<Sdk['createMedley']>;
let stage: Stage;
let site: Awaited<ReturnType<typeof startSite>>;
let remove: () => void;

beforeAll(async () => {
  const loaded = await loadProvider();
  ({ remove } = loaded);
  stage = await setChatStage();
  site = await startSite(Buffer.from(image_base64, 'base64'), 'image/png');
  provider = loaded.sdk.createMedley({ baseURL: `${stage.test.url}/v1`, apiKey: stage.client.key });
});
beforeEach(() => {
  for (const [, style, upstream] of chat_models) {
    stage.upstream.script(upstream, (request) => answered(style, modelAnswer(request), request));
  }
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(async () => {
  await site?.stop();
  await stage?.stop();
  remove?.();
});

const chunksOf = async <T>(stream: AsyncIterable<T>): Promise<T[]> => {
  const chunks: T[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
};
const refusal = (error: unknown) => error;
const positive = expect.toSatisfy((value: unknown) => typeof value === 'number' && value > 0);
const asking = (text: string, file: { type: 'file'; data: string | URL; mediaType: string }) => [
  { role: 'user' as const, content: [{ type: 'text' as const, text }, file] },
];

describe.each([...chat_models.map(([id]) => id), 'sandbox/chat'])('text of %s', (id) => {
  let model: LanguageModel;
  beforeAll(() => (model = provider(id)));

  test('is generated, with its usage', async () => {
    const { text, usage } = await generateText({ model, prompt: 'A haiku about programming.' });
    expect(text.length).toBeGreaterThan(5);
    expect(usage.totalTokens).toEqual(positive);
  });

  test('is generated under a system message', async () => {
    const system = 'You are a helpful assistant.';
    const { text, usage } = await generateText({ model, instructions: system, prompt: 'A haiku.' });
    expect(text.length).toBeGreaterThan(5);
    expect(usage.totalTokens).toEqual(positive);
    const request = JSON.stringify(stage.upstream.requests.at(-1)?.body);
    expect(id === 'sandbox/chat' || request.includes(system)).toBe(true);
  });

  test('streams in pieces, with its usage', async () => {
    const result = streamText({ model, prompt: 'Count from 1 to 5 slowly.' });
    expect((await chunksOf(result.textStream)).length).toBeGreaterThan(1);
    expect((await result.usage).totalTokens).toEqual(positive);
    expect(await result.finishReason).toBe('stop');
  });
});

const person = z.object({ name: z.string(), age: z.number() });
const product = z.object({ name: z.string(), category: z.string(), usage_instructions: z.string() });
const schemas = {
  'a title and tags': z.object({ title: z.string(), tags: z.array(z.string()) }),
  'a simple object': person,
  'three items': z.object({ items: z.array(z.object({ name: z.string(), quantity: z.number() })).min(3) }),
  'nested objects': z.object({
    user: z.object({ name: z.string(), contact: z.object({ email: z.string(), phone: z.string() }) }),
    preferences: z.object({ theme: z.enum(['light', 'dark']), notifications: z.boolean() }),
  }),
  'arrays of objects': z.object({
    posts: z.array(z.object({ title: z.string(), comments: z.array(z.object({ author: z.string() })).min(1) })).min(2),
  }),
  'schemas that share parts': z.object({
    morning: z.array(product.extend({ morning_instructions: z.string() })),
    evening: z.array(product.extend({ evening_instructions: z.string() })),
    notes: z.string(),
  }),
  'fields with descriptions': z.object({
    title: z.string().describe('A catchy title'),
    summary: z.string().describe('Two or three sentences'),
    readingTime: z.number().describe('Minutes'),
  }),
};
const book = z.object({
  chapters: z.array(
    z.object({
      title: z.string(),
      sections: z.array(z.object({ heading: z.string(), paragraphs: z.array(z.string()) })),
    }),
  ),
});

describe.each([...chat_models.map(([id]) => id), 'sandbox/chat'])('objects of %s', (id) => {
  let model: LanguageModel;
  beforeAll(() => (model = provider(id)));

  test.each(Object.entries(schemas))('fit the schema: %s', async (_name, schema) => {
    const { object, usage } = await generateObject({ model, schema, prompt: 'Something that fits.' });
    expect(schema.parse(object)).toEqual(object);
    expect(usage.totalTokens).toEqual(positive);
  });

  test('fit the schema under a system message, with a name and a description', async () => {
    const more = { schemaName: 'product', schemaDescription: 'A product listing' };
    const system = 'You are a product manager.';
    const { object } = await generateObject({
      model,
      schema: product,
      ...more,
      instructions: system,
      prompt: 'A device.',
    });
    expect(product.parse(object)).toEqual(object);
  });

  test.each([z.object({ characters: z.array(person) }), book])('come in parts, nested ones too', async (schema) => {
    const result = streamObject({ model, schema, prompt: 'Three characters, or a book.' });
    expect((await chunksOf(result.partialObjectStream)).length).toBeGreaterThan(0);
    const object = await result.object;
    expect(schema.parse(object)).toEqual(object);
    expect((await result.usage).totalTokens).toEqual(positive);
  });
});

describe.each(chat_models)('tools of %s', (id, style) => {
  let model: LanguageModel;
  let calls: string[];
  beforeAll(() => (model = provider(id)));
  beforeEach(() => (calls = []));

  const calculator = tool({
    description: 'Computes.',
    inputSchema: z.object({ expression: z.string().describe('The expression') }),
    execute: ({ expression }) => {
      calls.push(expression);
      return '4';
    },
  });
  const prompt = 'What is 2+2? Use the calculator.';

  test('are called, and their results are there', async () => {
    const { toolCalls, toolResults, usage, finishReason } = await generateText({
      model,
      prompt,
      tools: { calculator },
    });
    expect(toolCalls).toMatchObject([{ toolName: 'calculator', input: { expression: '2+2' } }]);
    expect(toolResults).toMatchObject([{ output: '4' }]);
    expect([usage.totalTokens, finishReason]).toEqual([positive, 'tool-calls']);
  });

  test('are called once in a stream', async () => {
    const result = streamText({ model, prompt, tools: { calculator } });
    const types = (await chunksOf(result.stream)).map(({ type }) => type);
    expect(types).toContain('tool-call');
    expect(types).toContain('tool-input-delta');
    expect(calls).toEqual(['2+2']);
    expect((await result.usage).totalTokens).toEqual(positive);
  });

  test.each(['whole', 'streamed'])('are called one behind the other until there is a text, %s', async (form) => {
    const tools = {
      getTemperature: tool({
        inputSchema: z.object({ city: z.string() }),
        execute: ({ city }) => {
          calls.push(city);
          return '15 degrees';
        },
      }),
      playMusic: tool({
        inputSchema: z.object({ temperature: z.number() }),
        execute: ({ temperature }) => {
          calls.push(String(temperature));
          return 'Playing "Foggy Morning"';
        },
      }),
    };
    const request = { model, tools, stopWhen: stepCountIs(10), prompt: 'Play music that fits the weather.' };
    const text = form === 'whole' ? (await generateText(request)).text : await streamText(request).text;
    expect(calls).toEqual(['San Francisco', '15']);
    expect(text).toContain('Foggy Morning');
    expect(stage.upstream.requests.slice(-3).every(({ path }) => path.includes(pathOf(style)))).toBe(true);
  });
});

function pathOf(style: string): string {
  return style === 'completions' ? 'chat/completions' : style === 'gemini' ? 'enerateContent' : style;
}

describe.each(chat_models)('files for %s', (id) => {
  let model: LanguageModel;
  beforeAll(() => (model = provider(id)));

  const image = { type: 'file' as const, data: image_base64, mediaType: 'image/png' };

  test('are read: an image, whole and streamed', async () => {
    const messages = asking('Describe the image.', image);
    const { text, usage } = await generateText({ model, messages });
    expect([text, usage.totalTokens]).toEqual([expect.stringContaining('cat'), positive]);
    expect(await streamText({ model, messages }).text).toContain('cat');
  });

  test('are read: an image behind a link, whole and streamed', async () => {
    const messages = asking('Describe the image.', { ...image, data: new URL(site.url), mediaType: 'image' });
    expect((await generateText({ model, messages })).text).toContain('cat');
    expect(await streamText({ model, messages }).text).toContain('cat');
  });

  test('are read: a PDF', async () => {
    const messages = asking('Summarize this PDF.', { type: 'file', data: pdf_base64, mediaType: 'application/pdf' });
    const { text, usage } = await generateText({ model, messages });
    expect([text, usage.totalTokens]).toEqual([expect.stringContaining('embedding'), positive]);
  });
});

describe('a recording', () => {
  const messages = asking('What is said?', { type: 'file', data: audio_base64, mediaType: 'audio/wav' });
  const able = chat_models.filter(([, style]) => style !== 'messages');

  test.each(able)('is heard by %s', async (id) => {
    expect((await generateText({ model: provider(id), messages })).text).toContain('Galileo');
  });

  test('is refused before anything is paid where the upstream hears nothing', async () => {
    const requests_before = stage.upstream.requests.length;
    const error = await generateText({ model: provider('acme/ant'), messages, maxRetries: 0 }).catch(refusal);
    if (!APICallError.isInstance(error)) throw error;
    expect([error.statusCode, error.isRetryable]).toEqual([400, false]);
    expect(stage.upstream.requests).toHaveLength(requests_before);
  });
});

describe('a model that does not exist', () => {
  test('is an error of the API for texts, streams, images, embeddings and the others', async () => {
    const prompt = 'This should fail';
    const id = 'no/such-model';
    const errors = [
      await generateText({ model: provider(id), prompt }).catch(refusal),
      await generateImage({ model: provider.image(id), prompt }).catch(refusal),
      await generateVideo({ model: provider.video(id), prompt }).catch(refusal),
      await generateSpeech({ model: provider.speech(id), text: prompt }).catch(refusal),
      await transcribe({ model: provider.transcription(id), audio: wav(1) }).catch(refusal),
      await embed({ model: provider.embedding(id), value: prompt }).catch(refusal),
      await rerank({ model: provider.reranking(id), query: prompt, documents: [prompt] }).catch(refusal),
    ];
    let streamed: unknown;
    const result = streamText({ model: provider(id), prompt, onError: ({ error }) => void (streamed = error) });
    await result.consumeStream();
    for (const error of [...errors, streamed]) {
      if (!APICallError.isInstance(error)) throw error;
      expect([error.statusCode, error.isRetryable]).toEqual([404, false]);
      expect(error.message).toContain('no/such-model');
    }
  });
});

describe('embeddings', () => {
  test('are made of one value and of many', async () => {
    const model = provider.embedding('sandbox/embedding');
    const { embedding, usage, providerMetadata } = await embed({ model, value: 'A sentence.' });
    expect([embedding.length, usage.tokens]).toEqual([positive, positive]);
    expect(providerMetadata).toMatchObject({ medley: { cost: { currency: 'USD' } } });
    const values = ['First sentence.', 'Second sentence.', 'Third sentence.'];
    const many = await embedMany({ model, values });
    expect(many.embeddings).toHaveLength(3);
    expect(many.usage.tokens).toEqual(positive);
  });
});

describe('media', () => {
  test('an image is generated', async () => {
    const { image } = await generateImage({ model: provider.image('sandbox/image'), prompt: 'A cute cartoon cat' });
    expect(Buffer.from(image.base64, 'base64').length).toBeGreaterThan(1024);
    expect(image.mediaType).toBe('image/png');
  });

  test('speech is generated, and transcribed', async () => {
    const { audio } = await generateSpeech({ model: provider.speech('sandbox/audio'), text: 'Hello from the AI SDK!' });
    expect(audio.uint8Array.length).toBeGreaterThan(1024);
    expect(audio.mediaType).toBe('audio/wav');
    const hint = { providerOptions: { medley: { prompt: 'Hello from the AI SDK!' } } };
    const model = provider.transcription('sandbox/transcript');
    const transcript = await transcribe({ model, audio: audio.uint8Array, ...hint });
    expect(transcript.text).toBe('Hello from the AI SDK!');
    expect(transcript.segments).toMatchObject([{ startSecond: 0, text: expect.stringContaining('Hello') }]);
    expect([transcript.durationInSeconds, transcript.language]).toEqual([positive, expect.toSatisfy(isCode)]);
  });

  test('a video is generated', async () => {
    const model = provider.video('sandbox/video');
    const { video } = await generateVideo({ model, prompt: 'Waves', duration: 1, aspectRatio: '16:9' });
    expect(video.mediaType).toBe('video/mp4');
    expect(video.uint8Array.length).toBeGreaterThan(1024);
  });

  test('documents are ranked', async () => {
    const model = provider.reranking('sandbox/rerank');
    const documents = ['Two blue cars', 'A red bicycle', 'Bicycle lanes'];
    const { rerankedDocuments } = await rerank({ model, query: 'a red bicycle', documents, topN: 2 });
    expect(rerankedDocuments).toHaveLength(2);
    expect(rerankedDocuments[0]).toBe('A red bicycle');
  });
});

function isCode(value: unknown): boolean {
  return value === undefined || (typeof value === 'string' && /^[a-z]{2}$/.test(value));
}
