import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeDataUrl } from '../../../src/lib/data-url.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { openai } from '../../../src/providers/adapters/openai/adapter.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../../helpers/app.ts';
import { limits } from '../../helpers/catalog.ts';
import { prober } from '../../helpers/prober.ts';
import { bytesOf, conformance, expectOutcome, runOf, runToEnd } from '../conformance.ts';
import { sampleFile, type Imitation } from '../imitations/imitation.ts';
import { partsOf, textsOf } from '../imitations/multipart.ts';
import { startVideos, video } from '../imitations/openai-videos.ts';
import { configOf, never, secret } from '../upstreams.ts';

/** Servers that make videos in the shape of OpenAI's `/videos`. */

const authorization = `Bearer ${secret}`;
const filming = { kind: 'video', model: 'acme/film', input: { prompt: 'A bay', seconds: 4 } } as const;
const failed = (code: string, message: string) => ({
  poll: [{ json: video('failed', { error: { code, message } }) }],
});

const common = {
  adapter: openai,
  imitate: startVideos,
  base_path: '/v1',
  pace: { per_minute: 600 },
  refusals: [
    [
      'the prompt is missing',
      { status: 400, json: { error: { message: 'prompt is required', type: 'invalid_request_error' } } },
      { refused: 'invalid_request', message: /prompt is required/ },
    ],
    [
      'the prompt was found unfit',
      { status: 400, json: { error: { message: 'Rejected.', code: 'moderation_blocked' } } },
      { refused: 'content_policy_violation' },
    ],
    [
      'no credit, as a 429',
      { status: 429, json: { error: { message: 'You exceeded your current quota', code: 'insufficient_quota' } } },
      { not_started: 'rejected_credentials' },
    ],
    ['a job without an id', { json: { object: 'video', status: 'queued' } }, 'unknown'],
    ['lost behind a gateway', { status: 524, text: 'A timeout occurred' }, 'unknown'],
  ],
  polls: [
    ['in the queue', { poll: [{ json: video('queued') }] }, { phase: 'waiting' }],
    ['at work', { poll: [{ json: video('in_progress') }] }, { phase: 'running' }],
    [
      'flagged',
      failed('moderation_blocked', 'The video was flagged.'),
      { phase: 'failed', type: 'content_policy_violation', message: /flagged/ },
    ],
    [
      'an input that it cannot use',
      failed('invalid_image', 'input_reference has another size'),
      { phase: 'failed', type: 'invalid_request', message: /another size/ },
    ],
    [
      'a failure of the server',
      failed('internal_error', 'GPU 7 is lost'),
      { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    ],
    [
      'a failure without a code, as SGLang has it',
      { poll: [{ json: { id: 'a', status: 'failed', error: { message: 'CUDA out of memory' } } }] },
      { phase: 'failed', type: 'upstream_error' },
    ],
    ['not known yet', { poll: [{ status: 404, json: { detail: 'Video not found' } }] }, { phase: 'waiting' }],
    ['no status', { poll: [{ json: { id: 'a' } }] }, 'unknown'],
  ],
  unknown_word: { json: { ...video('queued'), status: 'upscaling' } },
} satisfies Partial<Parameters<typeof conformance>[0]>;

conformance({
  ...common,
  name: 'videos in the shape of openai',
  run: filming,
  submit: {
    method: 'POST',
    path: '/v1/videos',
    headers: { authorization, 'content-type': expect.stringMatching(/^multipart\/form-data; boundary=/) },
  },
});

conformance({
  ...common,
  name: 'videos in the shape of openai, as JSON',
  run: { ...filming, options: { body_as: 'json' } },
  submit: {
    method: 'POST',
    path: '/v1/videos',
    headers: { authorization, 'content-type': 'application/json' },
    json: { model: 'acme/film', prompt: 'A bay', seconds: '4' },
  },
});

describe('videos in the shape of openai', () => {
  let upstream: Imitation;
  let image: string;

  beforeAll(async () => {
    upstream = await startVideos();
    image = writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });
  });
  afterAll(() => upstream.stop());

  const opened = (more: Parameters<typeof configOf>[2] = {}) =>
    openai.open(configOf('videos', `${upstream.url}/v1`, more), { guard: openGuard(), prober });
  const lastSubmit = () => {
    const request = upstream.requestsFor('submit').at(-1);
    if (!request) throw new Error('nothing was asked for');
    return request;
  };

  it('are asked for by a form with their file, and numbers as texts', async () => {
    const provider = opened();
    const input = { prompt: 'A bay', seconds: 8, size: '1280x720', seed: 7, input_reference: image, extra: null };
    await provider.start(runOf({ ...filming, input }), never);
    const request = lastSubmit();
    expect(textsOf(request)).toEqual({
      model: 'acme/film',
      prompt: 'A bay',
      seconds: '8',
      size: '1280x720',
      seed: '7',
    });
    expect(partsOf(request).filter(({ filename }) => filename !== undefined)).toEqual([
      { name: 'input_reference', filename: 'image.png', type: 'image/png', bytes: await sampleFile('image') },
    ]);
    await provider.close?.();
  });

  it('are asked for by JSON with their file in it, where the route says so', async () => {
    const provider = opened();
    const input = { prompt: 'A bay', input_reference: image };
    await provider.start(runOf({ ...filming, input, options: { body_as: 'json' } }), never);
    expect(lastSubmit().json).toEqual({
      model: 'acme/film',
      prompt: 'A bay',
      input_reference: { image_url: image },
    });
    await provider.close?.();
  });

  it.each(['multipart', 'json'])("of something that is no file are the caller's mistake: %s", async (body_as) => {
    const provider = opened();
    const before = upstream.requests.length;
    const input = { prompt: 'A bay', input_reference: 'https://example.com/a.png' };
    const run = runOf({ ...filming, input, options: { body_as } });
    await expectOutcome(provider.start(run, never), {
      refused: 'invalid_request',
      message: /input_reference holds no file/,
    });
    expect(upstream.requests).toHaveLength(before);
    await provider.close?.();
  });

  it('are fetched with the headers and the query of the provider', async () => {
    const provider = opened({ headers: { 'x-tenant': 'a' }, query: { 'api-version': 'v1' } });
    const state = await runToEnd(provider, runOf(filming));
    const [file] = state.phase === 'done' ? state.files : [];
    if (!file) throw new Error(`the run is ${state.phase}`);
    expect(await bytesOf(file)).toEqual(await sampleFile('video'));
    expect(upstream.requestsFor('file').at(-1)).toMatchObject({
      query: { 'api-version': 'v1' },
      headers: { authorization, 'x-tenant': 'a' },
    });
    await provider.close?.();
  });

  it('are fetched by signed requests where the provider has no key that a link could take', async () => {
    const credentials = {
      kind: 'aws',
      region: 'eu-central-1',
      service: 'x',
      access_key_id: 'AKID',
      secret_access_key: 'x',
    } as const;
    const { api_key: _, ...keyless } = configOf('videos', `${upstream.url}/v1`, { credentials });
    const provider = openai.open(keyless, { guard: openGuard(), prober });
    upstream.instead('submit', { json: video('queued', {}, 'video_9') });
    upstream.instead('poll', { json: video('completed', {}, 'video_9') });
    upstream.instead('file', { bytes: await sampleFile('video') });
    const state = await runToEnd(provider, runOf(filming));
    expect(state).toMatchObject({ phase: 'done', files: [{ bytes: await sampleFile('video') }] });
    expect(upstream.requestsFor('file').at(-1)?.headers.authorization).toMatch(/^AWS4-HMAC-SHA256 /);
    await provider.close?.();
  });

  it('have their own option', () => {
    expect(openai.checkOptions({ body_as: 'json' })).toEqual([]);
    expect(openai.checkOptions({ body_as: 'yaml' }).map(({ field }) => field)).toEqual(['body_as']);
  });
});

describe('a service whose provider is another service of the same kind', () => {
  let behind: TestApp;
  let service: TestApp;

  beforeAll(async () => {
    behind = await startTestApp();
    const { key } = await behind.client();
    process.env['TEST_VIDEOS_KEY'] = key;
    service = await startTestApp({
      yaml: `
version: 1
sandbox: false
${limits()}
providers:
  behind: { adapter: openai, base_url: "${behind.url}/v1", api_key: env:TEST_VIDEOS_KEY, allow_private: true }
models:
  - id: test/film
    kind: video
    input_schema:
      type: object
      required: [prompt]
      properties: { prompt: { type: string }, duration: { type: integer, default: 5 } }
    price: [{ unit: second, amount: "0.10" }]
    estimate: { second: $input.duration }
    routes:
      - provider: behind
        upstream_model: sandbox/video
        poll: { first: 50ms, max: 500ms }
        input: { prompt: $input.prompt, seconds: $input.duration }
`,
    });
  });
  afterAll(async () => {
    await expectExactBooks(service.app);
    await service.stop();
    await behind.stop();
  });

  it('makes a video by its `/v1/videos`, and charges the seconds that were made', async () => {
    const client = await service.client();
    const created = await client.call('POST', '/v1/generate?wait=120', {
      model: 'test/film',
      input: { prompt: 'A bay', duration: 5 },
    });
    expect(created.json).toMatchObject({
      status: 'succeeded',
      output: [{ type: 'video', content_type: 'video/mp4', duration: 5 }],
      cost: { exact: '0.500000' },
    });
  });
});
