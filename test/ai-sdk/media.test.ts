import {
  APICallError,
  experimental_generateVideo as generateVideo,
  generateImage,
  generateSpeech,
  transcribe,
  UnsupportedFunctionalityError,
} from 'ai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Task } from '../../clients/typescript/src/index.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { local_clients } from '../helpers/catalog.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';
import { sampleImage, wav } from '../storage/samples.ts';
import { startCuttingProxy, type CuttingProxy } from '../typescript-client/cutting-proxy.ts';
import { loadProvider, startSite, type Sdk } from './stage.ts';

let sdk: Sdk;
let service: TestApp;
let proxy: CuttingProxy;
let receiver: Receiver;
let own: Client;
let provider: ReturnType<Sdk['createMedley']>;
let remove: () => void;
const sent: { url: string; headers: Headers }[] = [];

beforeAll(async () => {
  ({ sdk, remove } = await loadProvider());
  service = await startTestApp({ yaml: local_clients });
  proxy = await startCuttingProxy(service.url);
  receiver = await startReceiver();
  png = await sampleImage('png', 32, 32);
});
afterAll(async () => {
  await receiver?.stop();
  await proxy?.stop();
  await service?.stop();
  remove?.();
});
beforeEach(async () => {
  own = await service.client();
  provider = sdk.createMedley({
    baseURL: proxy.url,
    apiKey: own.key,
    headers: { 'x-team': 'blue' },
    fetch: (input, init) => {
      const { url, headers } = new Request(input, init);
      sent.push({ url, headers });
      return fetch(input, init);
    },
  });
  proxy.decide = () => 'pass';
  proxy.seen.length = 0;
  sent.length = 0;
});
afterEach(() => expectExactBooks(service.app));

const refusal = (error: unknown) => error;
const tasksOf = async (): Promise<Task[]> => (await own.call('GET', '/v1/tasks?limit=100')).json.data as Task[];
const spent = async () => (await own.call('GET', '/v1/key')).json.spent.exact;
const creations = () => proxy.seen.filter(({ path }) => path.startsWith('/v1/generate'));
let png: Uint8Array;

function callError(error: unknown): APICallError {
  if (!APICallError.isInstance(error)) throw error;
  return error;
}

describe('an image', () => {
  test('is one task for several, with its cost and its sizes, and the key goes to no link', async () => {
    const size = '64x32' as const;
    const request = { model: provider.image('sandbox/image'), prompt: 'A cat', n: 3, size, seed: 7 };
    const { images, warnings, providerMetadata } = await generateImage(request);
    const [task, ...others] = await tasksOf();
    expect([images.length, new Set(images.map(({ base64 }) => base64)).size, others, warnings]).toEqual([3, 3, [], []]);
    const facts = { contentType: 'image/png', sizeBytes: expect.any(Number), width: 64, height: 32 };
    const image = { ...facts, taskId: task?.id, taskCost: { amount: '0.030000', currency: 'USD' } };
    expect(providerMetadata['medley']).toEqual({ images: [image, image, image] });
    expect(await spent()).toBe('0.030000');
    for (const { url, headers } of sent) {
      const is_own = url.startsWith(`${proxy.url}/v1/`);
      expect([headers.has('authorization'), headers.get('x-team')]).toEqual([is_own, is_own ? 'blue' : null]);
    }
    expect(sent.some(({ url }) => !url.startsWith(`${proxy.url}/v1/`))).toBe(true);
  });

  test('is several tasks where one task has no more', async () => {
    const { images } = await generateImage({ model: provider.image('sandbox/image'), prompt: 'A cat', n: 5 });
    expect([images.length, (await tasksOf()).length, await spent()]).toEqual([5, 2, '0.050000']);
  });

  test('comes with a warning about a setting that the model has no field for', async () => {
    const request = { model: provider.image('sandbox/image'), prompt: 'A cat', aspectRatio: '16:9' as const };
    const { warnings } = await generateImage(request);
    expect(warnings).toMatchObject([{ type: 'unsupported', feature: 'aspectRatio' }]);
    expect(warnings[0]).toMatchObject({ details: expect.stringContaining('prompt, width, height') });
  });

  test('is made of others, below a mask; large ones are uploaded, and gone after the task', async () => {
    const small = { images: [png, png], text: 'A cat', mask: png };
    const model = provider.image('sandbox/edit');
    const first = await generateImage({ model, prompt: small });
    expect(first.warnings).toEqual([]);
    expect(proxy.seen.filter(({ path }) => path.startsWith('/v1/files'))).toEqual([]);
    const large = Buffer.concat([png, Buffer.alloc(10_000_000)]); // what stands behind a picture is no part of it
    const second = await generateImage({ model, prompt: { images: [large], text: 'A cat' } });
    expect(second.image.base64).not.toBe(first.image.base64);
    expect(proxy.seen.some(({ method, path }) => method === 'POST' && path.startsWith('/v1/files'))).toBe(true);
    await expect.poll(async () => (await own.call('GET', '/v1/files')).json.data).toEqual([]);
  });

  test('of others is refused where the model takes none, or not so many, before anything is paid', async () => {
    const prompt = { images: [png], text: 'A cat' };
    const none = await generateImage({ model: provider.image('sandbox/image'), prompt }).catch(refusal);
    expect(UnsupportedFunctionalityError.isInstance(none)).toBe(true);
    const masked = { ...prompt, mask: png };
    expect(
      String(await generateImage({ model: provider.image('sandbox/image'), prompt: masked }).catch(refusal)),
    ).toContain('files');
    expect(creations()).toEqual([]);
  });

  test('takes any field of its model by providerOptions.medley, before the settings', async () => {
    const providerOptions = { medley: { width: 48, height: 16 } };
    const request = {
      model: provider.image('sandbox/image'),
      prompt: 'A cat',
      size: '64x64' as const,
      providerOptions,
    };
    expect((await generateImage(request)).providerMetadata['medley']?.images).toMatchObject([
      { width: 48, height: 16 },
    ]);
    const wrong = { ...request, providerOptions: { medley: { widht: 48 } } };
    const error = callError(await generateImage(wrong).catch(refusal));
    expect([error.statusCode, error.isRetryable]).toEqual([422, false]);
    expect(error.message).toContain('widht');
    expect(await tasksOf()).toHaveLength(1);
  });

  test.each([
    ['[[moderate]]', 400, 'content_policy_violation'],
    ['[[fail]]', 502, 'upstream_error'],
  ])('that fails by %s is an error that is not repeated, and costs nothing', async (directive, status, type) => {
    const request = { model: provider.image('sandbox/image'), prompt: `A cat ${directive}` };
    const error = callError(await generateImage(request).catch(refusal));
    expect([error.statusCode, error.isRetryable]).toEqual([status, false]);
    const [task, ...others] = await tasksOf();
    expect(error.data).toMatchObject({ error: { type }, task: { id: task?.id, status: 'failed' } });
    expect([others, await spent()]).toEqual([[], '0.000000']);
  });

  test('is one task when the answers to its creation are lost', async () => {
    proxy.decide = (_method, path) => (path.startsWith('/v1/generate') && creations().length <= 2 ? 'cut' : 'pass');
    await generateImage({ model: provider.image('sandbox/image'), prompt: 'A cat' });
    expect([creations().length, new Set(creations().map(({ key }) => key)).size, (await tasksOf()).length]).toEqual([
      3, 1, 1,
    ]);
  });

  test('that a 429 refuses is asked for again by the AI SDK, as often as its caller wants', async () => {
    const busy = { status: 429, headers: { 'retry-after': '0', 'content-type': 'application/json' } };
    proxy.decide = (_method, path) => (path.startsWith('/v1/generate') && creations().length <= 1 ? busy : 'pass');
    const request = { model: provider.image('sandbox/image'), prompt: 'A cat' };
    const error = callError(await generateImage({ ...request, maxRetries: 0 }).catch(refusal));
    expect([error.statusCode, error.isRetryable, creations().length]).toEqual([429, true, 1]);
    proxy.seen.length = 0;
    await generateImage({ ...request, maxRetries: 1 });
    expect([creations().length, (await tasksOf()).length]).toEqual([2, 1]);
  });

  test('whose end cannot be asked for is not made again, and the error names its task', async () => {
    // Asked to wait for longer than two minutes, the client gives up at once.
    const away = { status: 503, headers: { 'retry-after': '3600', 'content-type': 'application/json' } };
    proxy.decide = (_method, path) => (path.startsWith('/v1/tasks/') ? away : 'pass');
    const request = { model: provider.image('sandbox/image'), prompt: 'A cat [[delay 1s]]' };
    const error = callError(await generateImage(request).catch(refusal));
    proxy.decide = () => 'pass';
    const [task, ...others] = await tasksOf();
    expect([error.statusCode, error.isRetryable, creations().length, others]).toEqual([503, false, 1, []]);
    expect(error.data).toMatchObject({ task_id: task?.id });
    await expect.poll(async () => (await tasksOf())[0]?.status).toBe('succeeded');
  });

  test('has the fields of its model read once, also for calls that come together and one that leaves', async () => {
    const reads = () => proxy.seen.filter(({ path }) => path.startsWith('/v1/models/')).length;
    const make = (abortSignal?: AbortSignal) =>
      generateImage({ model: provider.image('sandbox/image'), prompt: 'A cat', ...(abortSignal && { abortSignal }) });
    const controller = new AbortController();
    const results = [make(controller.signal).catch(refusal), make(), make()];
    controller.abort(new Error('left'));
    const [left, ...images] = await Promise.all(results);
    expect([String(left), images.length]).toEqual(['Error: left', 2]);
    for (const each of images) expect(each).toMatchObject({ warnings: [] });
    await make();
    expect([reads(), (await tasksOf()).length]).toEqual([1, 3]);
  });

  test('with the Idempotency-Key of its caller is the same task at the second call', async () => {
    const headers = { 'Idempotency-Key': 'order-7' };
    const request = { model: provider.image('sandbox/image'), prompt: 'A cat', headers };
    const [first, second] = [await generateImage(request), await generateImage(request)];
    const [{ id } = { id: '' }, ...others] = await tasksOf();
    const images = [first, second].map(({ providerMetadata }) => providerMetadata['medley']?.images);
    expect([images, others]).toMatchObject([[[{ taskId: id }], [{ taskId: id }]], []]);
    expect(await spent()).toBe('0.010000');
  });

  test('that is aborted is canceled, and costs nothing', async () => {
    const controller = new AbortController();
    const request = { model: provider.image('sandbox/image'), prompt: 'A cat [[delay 60s]]' };
    const result = generateImage({ ...request, abortSignal: controller.signal }).catch(refusal);
    await expect.poll(async () => (await tasksOf()).map(({ status }) => status)).toEqual(['running']);
    controller.abort();
    expect(await result).toMatchObject({ name: 'AbortError' });
    await expect.poll(async () => (await tasksOf())[0]?.error?.type).toBe('canceled');
    expect(await spent()).toBe('0.000000');
  });
});

describe('a video', () => {
  const request = { prompt: 'Waves', duration: 1 };

  test('is as long and wide as its settings say, with a warning about the others', async () => {
    const settings = { ...request, resolution: '1280x720' as const, fps: 24, generateAudio: false };
    const { warnings, providerMetadata } = await generateVideo({ model: provider.video('sandbox/video'), ...settings });
    expect(warnings).toMatchObject([{ type: 'unsupported', feature: 'fps' }]);
    const output = { contentType: 'video/mp4', width: 1280, height: 720, durationSeconds: 1 };
    expect(providerMetadata['medley']).toMatchObject({ outputs: [output], cost: { amount: '0.020000' } });
  });

  test('is started and asked for by the AI SDK where its caller wants that', async () => {
    const poll = { intervalMs: 20 };
    const { video } = await generateVideo({ model: provider.video('sandbox/video'), ...request, poll });
    expect(video.mediaType).toBe('video/mp4');
    expect(creations().map(({ key }) => key)).toEqual([expect.stringMatching(/^aisdk_vid_/)]);
    const failing = { ...request, prompt: 'Waves [[fail]]', poll };
    const error = await generateVideo({ model: provider.video('sandbox/video'), ...failing }).catch(refusal);
    expect(error).toBeInstanceOf(Error);
    expect((await tasksOf()).map(({ status }) => status)).toEqual(['failed', 'succeeded']);
  });

  test('is announced to the webhook of its caller', async () => {
    const webhook = async () => ({
      url: `${receiver.url}/hook`,
      received: receiver
        .nth('/hook', 1)
        .then(({ body }) => ({ headers: {}, body: JSON.parse(body.toString()) as object })),
    });
    const { video } = await generateVideo({
      model: provider.video('sandbox/video'),
      ...request,
      webhook: webhook as NonNullable<Parameters<typeof generateVideo>[0]['webhook']>,
    });
    expect(video.uint8Array.length).toBeGreaterThan(1024);
    expect(proxy.seen.filter(({ path }) => /^\/v1\/tasks\/task_\w+$/.test(path))).toHaveLength(1);
  });

  test('with a first image is refused where the model takes none', async () => {
    const prompt = { image: png, text: 'Waves' };
    const error = await generateVideo({ model: provider.video('sandbox/video'), prompt }).catch(refusal);
    expect(UnsupportedFunctionalityError.isInstance(error)).toBe(true);
    expect(creations()).toEqual([]);
  });
});

describe('speech and transcripts', () => {
  test('speech warns about a voice that the model does not have', async () => {
    const { warnings, providerMetadata } = await generateSpeech({
      model: provider.speech('sandbox/audio'),
      text: 'Hello',
      voice: 'alloy',
      outputFormat: 'wav',
    });
    expect(warnings).toMatchObject([{ type: 'unsupported', feature: 'voice' }]);
    expect(providerMetadata['medley']).toMatchObject({ outputs: [{ contentType: 'audio/wav' }] });
  });

  test('speech in a format that the model lists otherwise is refused, and nothing is paid', async () => {
    const model = provider.speech('sandbox/audio');
    const error = callError(await generateSpeech({ model, text: 'Hello', outputFormat: 'mp3' }).catch(refusal));
    expect([error.statusCode, await spent()]).toEqual([422, '0.000000']);
  });

  test('a transcript of a link is fetched by the service', async () => {
    const site = await startSite(wav(1), 'audio/wav');
    try {
      const { text, durationInSeconds } = await transcribe({
        model: provider.transcription('sandbox/transcript'),
        audio: new URL(site.url),
        providerOptions: { medley: { prompt: 'Good morning' } },
      });
      expect([text, Math.round(durationInSeconds ?? 0)]).toEqual(['Good morning', 1]);
    } finally {
      await site.stop();
    }
  });

  test('a model of another kind is an error that names the task, and is not asked again', async () => {
    const model = provider.speech('sandbox/image');
    const error = callError(await generateSpeech({ model, text: 'Hello' }).catch(refusal));
    const [task, ...others] = await tasksOf();
    expect([error.isRetryable, others]).toEqual([false, []]);
    expect(error.message).toContain(task?.id);
  });
});
