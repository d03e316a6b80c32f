import OpenAI6, { toFile as toFile6 } from 'openai-6';
import OpenAI7, { toFile as toFile7 } from 'openai-7';
import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { probeMedia } from '../helpers/prober.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { depth } from '../helpers/depth.ts';
import { sampleImage, wav } from '../storage/samples.ts';

type Answering<T> = Promise<T> & { withResponse(): Promise<{ data: T; response: Response }> };
type Images = { data?: { b64_json?: string; url?: string }[] };
type Video = {
  id: string;
  status: string;
  completed_at: number | null;
  expires_at: number | null;
  error: object | null;
};

/** The calls that both versions have in common, as far as the tests need them. */
type Sdk = {
  images: {
    generate(body: object): Answering<Images>;
    edit(body: object): Answering<Images>;
    createVariation(body: object): Promise<unknown>;
  };
  audio: {
    speech: { create(body: object): Answering<Response> };
    transcriptions: { create(body: object): Promise<unknown> };
    translations: { create(body: object): Promise<unknown> };
  };
  videos: {
    create(body: object): Promise<Video>;
    retrieve(id: string): Promise<Video>;
    downloadContent(id: string): Promise<Response>;
    list(query?: object): PromiseLike<{ data: Video[] }> & AsyncIterable<Video>;
    delete(id: string): Promise<object>;
  };
};

let service: TestApp;
let own: Client;

beforeAll(async () => {
  service = await startTestApp();
});
afterAll(() => service.stop());
beforeEach(async () => {
  own = await service.client();
});
afterEach(() => expectExactBooks(service.app));

const spent = async () => (await own.call('GET', '/v1/key')).json.spent.exact;
const refusal = (error: unknown) => error;

const sdks = [
  { name: 'openai 7', OpenAI: OpenAI7, toFile: toFile7 },
  { name: 'openai 6', OpenAI: OpenAI6, toFile: toFile6 },
];

describe.each(sdks.slice(0, depth(1, sdks.length)))('the SDK $name', ({ OpenAI, toFile }) => {
  const client = (key = own.key, maxRetries = 0): Sdk =>
    new OpenAI({ baseURL: `${service.url}/v1`, apiKey: key, maxRetries });

  describe('and images', () => {
    const model = 'sandbox/image';

    test('generates images as files and as links of the requested size', async () => {
      const request = { model, prompt: 'a bicycle', n: 2, size: '512x256', quality: 'auto' };
      const { data, response } = await client().images.generate(request).withResponse();
      expect(data).toMatchObject({ size: '512x256', output_format: 'png', created: expect.any(Number) });
      expect(data.data).toHaveLength(2);
      for (const { b64_json = '', url = '' } of data.data ?? []) {
        const bytes = Buffer.from(b64_json, 'base64');
        expect(await sharp(bytes).metadata()).toMatchObject({ format: 'png', width: 512, height: 256 });
        const linked = await fetch(url);
        expect(Buffer.from(await linked.arrayBuffer()).equals(bytes)).toBe(true);
      }
      expect(response.headers.get('x-cost-amount')).toBe('0.020000');
      expect(response.headers.get('x-cost-currency')).toBe('USD');
      const task = await own.call('GET', `/v1/tasks/${response.headers.get('x-task-id')}`);
      expect(task.json).toMatchObject({ status: 'succeeded', model });
      expect(await spent()).toBe('0.020000');
    });

    test.each(['url', 'b64_json'] as const)('returns only the response_format %s', async (response_format) => {
      const { data } = await client().images.generate({ model, prompt: 'x', response_format });
      expect(Object.keys(data?.[0] ?? {})).toEqual([response_format]);
    });

    test('edits one image or several with a mask', async () => {
      const first = await toFile(await sampleImage('png', 40, 30), 'first.png');
      const second = await toFile(await sampleImage('jpeg', 30, 40), 'second.jpg');
      const request = { model: 'sandbox/edit', prompt: 'at night', response_format: 'b64_json' };
      const one = await client().images.edit({ ...request, image: first });
      const two = await client().images.edit({ ...request, image: [first, second] });
      const again = await client().images.edit({ ...request, image: first });
      const masked = await client().images.edit({ ...request, image: first, mask: first });
      const seen = [one, two, again, masked].map(({ data }) => data?.[0]?.b64_json);
      expect(seen[0]).toBe(seen[2]);
      expect(new Set(seen).size).toBe(3);
      expect(await spent()).toBe('0.040000');
    });
  });

  describe('and audio', () => {
    test('returns speech as the audio itself', async () => {
      const request = { model: 'sandbox/audio', input: 'Good morning', voice: 'alloy', response_format: 'wav' };
      const { data, response } = await client().audio.speech.create(request).withResponse();
      const bytes = Buffer.from(await data.arrayBuffer());
      expect(await probeMedia(bytes)).toMatchObject({ probe: { content_type: 'audio/wav', duration: 5 } });
      expect(response.headers.get('content-type')).toBe('audio/wav');
      expect(response.headers.get('x-cost-amount')).toBe('0.050000');
      expect(response.headers.get('x-task-id')).toMatch(/^task_/);
    });

    test('passes on a field of the model beside its own parameters', async () => {
      const request = { model: 'sandbox/audio', input: 'x', voice: 'any', duration: 2 };
      const audio = await client().audio.speech.create(request);
      expect(await probeMedia(Buffer.from(await audio.arrayBuffer()))).toMatchObject({ probe: { duration: 2 } });
    });

    test('returns transcriptions in every format', async () => {
      const file = () => toFile(wav(2), 'talk.wav');
      const request = { model: 'sandbox/transcript', prompt: 'Dzień dobry', language: 'pl' };
      const create = async (response_format?: 'json' | 'text' | 'srt' | 'vtt' | 'verbose_json'): Promise<unknown> =>
        client().audio.transcriptions.create({
          ...request,
          file: await file(),
          ...(response_format && { response_format }),
        });
      const usage = { type: 'duration', seconds: 2 };
      expect(await create()).toEqual({ text: 'Dzień dobry', usage });
      expect(await create('json')).toEqual({ text: 'Dzień dobry', usage });
      expect(await create('text')).toBe('Dzień dobry');
      expect(await create('srt')).toBe('1\n00:00:00,000 --> 00:00:02,000\nDzień dobry\n');
      expect(await create('vtt')).toBe('WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nDzień dobry\n');
      expect(await create('verbose_json')).toMatchObject({ text: 'Dzień dobry', language: 'pl', duration: 2 });
      expect(await spent()).toBe('0.001200'); // 6 × 2 s at 0.006 a minute
    });
  });

  describe('and streams', () => {
    /** The events of an answer, as the SDK reads them. */
    async function eventsOf(answer: Promise<unknown>): Promise<Record<string, unknown>[]> {
      const events: Record<string, unknown>[] = [];
      for await (const event of (await answer) as AsyncIterable<Record<string, unknown>>) events.push(event);
      return events;
    }

    test('has one completed event for each image, whatever partial ones were asked for', async () => {
      const request = { model: 'sandbox/image', prompt: 'a bicycle', n: 2, stream: true, partial_images: 2 };
      const events = await eventsOf(client().images.generate(request));
      const completed = { type: 'image_generation.completed', output_format: 'png', size: expect.any(String) };
      expect(events).toMatchObject([completed, completed]);
      for (const { b64_json } of events) {
        expect(await sharp(Buffer.from(String(b64_json), 'base64')).metadata()).toMatchObject({ format: 'png' });
      }
      expect(await spent()).toBe('0.020000');
    });

    test('has the whole transcript as a piece and at the end', async () => {
      const file = await toFile(wav(1), 'a.wav');
      const request = { model: 'sandbox/transcript', file, prompt: 'Good morning', stream: true };
      expect(await eventsOf(client().audio.transcriptions.create(request))).toMatchObject([
        { type: 'transcript.text.delta', delta: 'Good morning' },
        { type: 'transcript.text.done', text: 'Good morning' },
      ]);
    });

    test('has the whole speech in one event', async () => {
      const request = { model: 'sandbox/audio', input: 'Good morning', voice: 'any', stream_format: 'sse' };
      const answer = await client().audio.speech.create(request);
      expect(answer.headers.get('content-type')).toContain('text/event-stream');
      const [first, second] = [...(await answer.text()).matchAll(/^data: (.*)$/gm)].map(([, data = '']) =>
        JSON.parse(data),
      );
      expect(Buffer.from(first.audio, 'base64').subarray(0, 4).toString()).toBe('RIFF');
      expect([first.type, second.type]).toEqual(['speech.audio.delta', 'speech.audio.done']);
    });
  });

  describe('and calls that few models can answer', () => {
    test('makes variations of an image', async () => {
      const image = await toFile(await sampleImage('png', 40, 30), 'a.png');
      const answer = await client().images.createVariation({ model: 'sandbox/image', image }).catch(refusal);
      expect(answer).toBeInstanceOf(OpenAI.BadRequestError);
    });

    test('says that a model does not translate', async () => {
      const file = await toFile(wav(1), 'a.wav');
      const error = await client().audio.translations.create({ model: 'sandbox/transcript', file }).catch(refusal);
      expect(error).toBeInstanceOf(OpenAI.BadRequestError);
      expect(error).toMatchObject({ param: 'model', message: expect.stringContaining('does not translate') });
    });

    test('says what to use instead of changing a video', async () => {
      for (const path of ['x/remix', 'edits', 'extensions', 'x/edits', 'x/extensions']) {
        const { status, json } = await own.call('POST', `/v1/videos/${path}`, {
          prompt: 'x',
        });
        expect([status, json.error.message]).toEqual([400, expect.stringContaining('/v1/generate')]);
      }
    });
  });

  describe('and videos', () => {
    const model = 'sandbox/video';
    const video = { model, prompt: 'waves', seconds: '4', size: '1280x720' };

    test('creates, retrieves, downloads, lists and deletes them', async () => {
      const videos = client().videos;
      const created = await videos.create(video);
      expect(created).toMatchObject({ object: 'video', model, prompt: 'waves', seconds: '4', size: '1280x720' });
      expect(created).toMatchObject({ error: null, completed_at: null, expires_at: null });
      expect(['queued', 'in_progress']).toContain(created.status);
      await expect
        .poll(async () => (await videos.retrieve(created.id)).status, { timeout: 120_000, interval: 200 })
        .toBe('completed');
      const done = await videos.retrieve(created.id);
      expect(done).toMatchObject({ progress: 100, seconds: '4', size: '1280x720', completed_at: expect.any(Number) });
      expect(done.expires_at).toBe((done.completed_at ?? 0) + 7 * 86_400);
      const content = await videos.downloadContent(created.id);
      expect(content.headers.get('content-type')).toBe('video/mp4');
      const bytes = Buffer.from(await content.arrayBuffer());
      expect(await probeMedia(bytes)).toMatchObject({ probe: { duration: 4, width: 1280, height: 720 } });
      const second = await videos.create({ model, prompt: 'second' });
      const ids: string[] = [];
      for await (const { id } of videos.list({ limit: 1 })) ids.push(id);
      expect(ids).toEqual([second.id, created.id]);
      expect((await videos.list({ order: 'asc' })).data.map(({ id }) => id)).toEqual([created.id, second.id]);
      expect(await videos.delete(created.id)).toEqual({ id: created.id, object: 'video.deleted', deleted: true });
      expect(await videos.retrieve(created.id).catch(refusal)).toBeInstanceOf(OpenAI.NotFoundError);
      expect((await videos.list()).data.map(({ id }) => id)).toEqual([second.id]);
      expect((await own.call('GET', `/v1/tasks/${created.id}`)).json.status).toBe('succeeded');
      expect(await spent()).toMatch(/^0\.(08|18)0000$/);
    });

    test('reports why one failed, which has no content', async () => {
      const videos = client().videos;
      const { id } = await videos.create({ model, prompt: 'x [[fail]]' });
      await expect.poll(async () => (await videos.retrieve(id)).status).toBe('failed');
      const failed = await videos.retrieve(id);
      expect(failed.error).toEqual({ code: 'upstream_error', message: expect.any(String) });
      expect(await videos.downloadContent(id).catch(refusal)).toMatchObject({ status: 409 });
      expect(await spent()).toBe('0.000000');
    });
  });

  describe('and errors', () => {
    const generate = (prompt: string, more: object = {}, key = own.key, retries = 0) =>
      client(key, retries)
        .images.generate({ model: 'sandbox/image', prompt, ...more })
        .catch(refusal);

    test('throws its own classes for 402, 404 and 401', async () => {
      const poor = await service.client({ credit: '0.001' });
      expect(await generate('x', {}, poor.key)).toMatchObject({ status: 402, type: 'insufficient_balance' });
      expect(await generate('x', { model: 'nobody/none' })).toBeInstanceOf(OpenAI.NotFoundError);
      expect(await generate('x', { model: 'sandbox/chat' })).toMatchObject({ status: 404, param: 'model' });
      expect(await generate('x', {}, 'sk-nobody')).toBeInstanceOf(OpenAI.AuthenticationError);
    });

    test('throws a 502 that names the task for a failed run, which costs nothing and is not repeated', async () => {
      const error = await generate('x [[fail]]', {}, own.key, 2);
      expect(error).toBeInstanceOf(OpenAI.InternalServerError);
      expect(error).toMatchObject({ status: 502, type: 'upstream_error' });
      const { headers, message } = error as InstanceType<typeof OpenAI.APIError>;
      const task_id = headers?.get('x-task-id') ?? 'none';
      expect(message).toContain(task_id);
      expect((await own.call('GET', '/v1/tasks')).json.data.map(({ id }) => id)).toEqual([task_id]);
      expect(await spent()).toBe('0.000000');
    });

    test('throws a 400 with its code for blocked content', async () => {
      const error = await generate('x [[moderate]]');
      expect(error).toBeInstanceOf(OpenAI.BadRequestError);
      expect(error).toMatchObject({ code: 'content_policy_violation', headers: expect.anything() });
    });

    test('throws a 400 that names a parameter that the model does not support', async () => {
      for (const [param, value] of Object.entries({ size: '9999x64', n: 5, output_format: 'webp', stream: 'maybe' })) {
        const error = await generate('x', { [param]: value });
        expect(error, param).toBeInstanceOf(OpenAI.BadRequestError);
        expect(error).toMatchObject({ param, type: 'invalid_request' });
      }
      expect(await spent()).toBe('0.000000');
    });
  });
});
