import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeDataUrl } from '../../../src/lib/data-url.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { openai } from '../../../src/providers/adapters/openai/adapter.ts';
import type { Provider, RunRequest, RunState } from '../../../src/providers/provider.ts';
import { prober, probeMedia } from '../../helpers/prober.ts';
import { wav } from '../../storage/samples.ts';
import { bytesOf, conformance, expectOutcome, runOf } from '../conformance.ts';
import { sampleFile, type Imitation } from '../imitations/imitation.ts';
import { partsOf, textsOf } from '../imitations/multipart.ts';
import { refusal, startOpenai, transcript } from '../imitations/openai.ts';
import { configOf, never, secret } from '../upstreams.ts';

const authorization = `Bearer ${secret}`;
const painting = { kind: 'image', model: 'gpt-image-1', input: { prompt: 'A bay', size: '1024x1024' } } as const;
const speaking = { kind: 'audio', model: 'gpt-4o-mini-tts', input: { input: 'Hello', voice: 'alloy' } } as const;

const safety = {
  message: 'Your request was rejected by the safety system. safety_violations=[sexual].',
  type: 'image_generation_user_error',
  code: 'moderation_blocked',
};

const common = {
  adapter: openai,
  imitate: startOpenai,
  base_path: '/v1',
  synchronous: true,
} as const;

conformance({
  ...common,
  name: 'openai images',
  run: painting,
  submit: {
    method: 'POST',
    path: '/v1/images/generations',
    headers: { authorization, 'content-type': 'application/json' },
    json: { model: 'gpt-image-1', prompt: 'A bay', size: '1024x1024' },
  },
  refusals: [
    [
      'the prompt was found unfit',
      refusal(400, { ...safety, moderation_details: { moderation_stage: 'input', categories: ['sexual'] } }),
      { refused: 'content_policy_violation', message: /safety system/ },
    ],
    [
      'the picture was found unfit',
      refusal(400, { ...safety, moderation_details: { moderation_stage: 'output', categories: ['sexual'] } }),
      { phase: 'failed', type: 'content_policy_violation', message: /safety system/ },
    ],
    [
      'found unfit by DALL·E',
      refusal(400, { message: 'Your request was rejected.', code: 'content_policy_violation' }),
      { refused: 'content_policy_violation' },
    ],
    [
      'a value that it does not take',
      refusal(400, { message: "Invalid value: '1x1'.", type: 'invalid_request_error', param: 'size' }),
      { refused: 'invalid_request', message: /Invalid value/ },
    ],
    [
      'the budget is used up, as a 400',
      refusal(400, { message: 'Billing hard limit has been reached', code: 'billing_hard_limit_reached' }),
      { not_started: 'rejected_credentials' },
    ],
    [
      'no credit, as a 429',
      refusal(429, { message: 'You exceeded your current quota', code: 'insufficient_quota' }),
      { not_started: 'rejected_credentials' },
    ],
    [
      'the organisation is not verified',
      refusal(403, { message: 'Your organization must be verified to use the model `gpt-image-1`.' }),
      { not_started: 'rejected_credentials' },
    ],
    [
      'a model that is gone',
      refusal(404, { message: "The model 'gpt-image-1' does not exist", code: 'model_not_found' }),
      { not_started: 'unavailable' },
    ],
    ['lost behind a gateway', { status: 524, text: 'A timeout occurred' }, 'unknown'],
  ],
});

conformance({
  ...common,
  name: 'openai speech',
  run: speaking,
  submit: {
    method: 'POST',
    path: '/v1/audio/speech',
    headers: { authorization },
    json: { model: 'gpt-4o-mini-tts', input: 'Hello', voice: 'alloy' },
  },
  refusals: [
    [
      'a text that is too long',
      refusal(400, { message: 'string_too_long: at most 4096 characters', type: 'invalid_request_error' }),
      { refused: 'invalid_request', message: /4096/ },
    ],
  ],
});

const guard = openGuard();
let upstream: Imitation;
let provider: Provider;

beforeAll(async () => {
  upstream = await startOpenai(() => 0);
  provider = openai.open(configOf('openai', `${upstream.url}/v1`), { guard, prober });
});
afterAll(async () => {
  await upstream.stop();
  await provider.close?.();
});

async function make(run: Pick<RunRequest, 'kind' | 'model' | 'input'> & Partial<RunRequest>) {
  const state = await provider.start(runOf(run), never);
  if (state.phase !== 'done') throw new Error(`the run is ${state.phase}`);
  return { ...state, request: lastRequest() };
}

const lastRequest = () => {
  const request = upstream.requestsFor('submit').at(-1);
  if (!request) throw new Error('nothing was asked for');
  return request;
};

describe('images of openai', () => {
  it('have the requested number and their tokens', async () => {
    const { files, units, upstream_cost } = await make({
      ...painting,
      input: { ...painting.input, n: 3 },
      options: { token_prices: { text_input: '5', image_output: '40.00' } },
    });
    expect(files).toHaveLength(3);
    expect(units).toEqual({ input_token: '10', output_token: '816' });
    expect(upstream_cost).toEqual({ amount: '0.03269', currency: 'USD' }); // 10 × 5 + 816 × 40, by the million
  });

  it('have an unknown cost when a kind of token has no price', async () => {
    const { units, upstream_cost } = await make({ ...painting, options: { token_prices: { text_input: '5' } } });
    expect([units, upstream_cost]).toEqual([{ input_token: '10', output_token: '272' }, undefined]);
  });

  it('of DALL·E are in the response, or links when the route says so', async () => {
    const dalle = { ...painting, model: 'dall-e-3' };
    const inline = await make(dalle);
    expect(inline.request.json['response_format']).toBe('b64_json');
    expect(inline.files).toEqual([{ bytes: await sampleFile('image') }]);
    const linked = await make({ ...dalle, options: { response_format: 'url' } });
    expect(linked.files).toEqual([{ url: `${upstream.url}/made/1.png` }]);
    expect(await Promise.all(linked.files.map(bytesOf))).toEqual([await sampleFile('image')]);
  });

  it('are requested without fields that change the form of the response', async () => {
    const input = {
      ...painting.input,
      stream: true,
      partial_images: 2,
      response_format: 'url',
      user: null,
      style: 'x',
    };
    const { request } = await make({ ...painting, input });
    expect(request.json).toEqual({ model: 'gpt-image-1', ...painting.input, style: 'x' });
  });

  it('that another server returns as data URLs become files', async () => {
    const bytes = await sampleFile('image');
    upstream.instead('submit', { json: { data: [{ url: writeDataUrl({ content_type: 'image/png', bytes }) }] } });
    expect((await make(painting)).files).toEqual([{ bytes }]);
  });
});

describe('edits of openai', () => {
  it('send one image, the mask and the fields as a form', async () => {
    const bytes = await sampleFile('image');
    const image = writeDataUrl({ content_type: 'image/png', bytes });
    const input = { prompt: 'Snow', image, mask: image, n: 2, input_fidelity: 'high' };
    const { request, files, units } = await make({ ...painting, input });
    expect(request.path).toBe('/v1/images/edits');
    expect(textsOf(request)).toEqual({ model: 'gpt-image-1', prompt: 'Snow', n: '2', input_fidelity: 'high' });
    const sent = partsOf(request).filter(({ filename }) => filename !== undefined);
    expect(sent).toEqual([
      { name: 'image', filename: 'image.png', type: 'image/png', bytes },
      { name: 'mask', filename: 'image.png', type: 'image/png', bytes },
    ]);
    expect([files.length, units]).toEqual([2, { input_token: '210', output_token: '544' }]);
  });

  it('send several images under one name', async () => {
    const image = writeDataUrl({ content_type: 'image/webp', bytes: Buffer.from('x') });
    const { request } = await make({ ...painting, input: { prompt: 'Both', image: [image, image] } });
    const names = partsOf(request).map(({ name, filename }) => [name, filename]);
    expect(names.filter(([, filename]) => filename !== undefined)).toEqual([
      ['image[]', 'image.webp'],
      ['image[]', 'image.webp'],
    ]);
  });

  it("of something that is not a file are the caller's mistake and are not sent", async () => {
    const before = upstream.requests.length;
    const run = runOf({ ...painting, input: { prompt: 'x', image: 'https://example.com/a.png' } });
    await expectOutcome(provider.start(run, never), { refused: 'invalid_request', message: /image holds no file/ });
    expect(upstream.requests).toHaveLength(before);
  });
});

describe('speech of openai', () => {
  const probed = async ({ files }: RunState & { phase: 'done' }) => {
    const [file] = files;
    return file && probeMedia(await bytesOf(file));
  };

  it('counts the characters of its text', async () => {
    const { units, files } = await make({ ...speaking, input: { input: 'Zażółć 🦊', voice: 'alloy' } });
    expect([units, files.length]).toEqual([{ character: '8' }, 1]);
  });

  it('without a container gets one', async () => {
    const state = await make({ ...speaking, input: { ...speaking.input, response_format: 'pcm' } });
    expect(state.request.json['response_format']).toBe('pcm');
    expect(await probed(state)).toMatchObject({ ok: true, probe: { content_type: 'audio/wav', duration: 1 } });
  });

  it('reports its tokens as a stream', async () => {
    const options = {
      stream_format: 'sse',
      token_prices: { text_input: '0.60', audio_output: '12' },
      cost_currency: 'EUR',
    };
    const state = await make({ ...speaking, input: { ...speaking.input, response_format: 'wav' }, options });
    expect(state.request.json['stream_format']).toBe('sse');
    expect(state.units).toEqual({ character: '5', input_token: '14', output_token: '101' });
    expect(state.upstream_cost).toEqual({ amount: '0.0012204', currency: 'EUR' });
    expect(await probed(state)).toMatchObject({ ok: true, probe: { content_type: 'audio/wav', duration: 1 } });
  });

  it('that ends too early as a stream is no result', async () => {
    upstream.instead('submit', { text: 'data: {"type":"speech.audio.delta","audio":"AAAA"}\n\n' });
    const run = runOf({ ...speaking, options: { stream_format: 'sse' } });
    await expectOutcome(provider.start(run, never), 'unknown');
  });
});

describe('transcripts of openai', () => {
  const file = writeDataUrl({ content_type: 'audio/mpeg', bytes: wav(0.1) });
  const listen = (response_format?: string, model = 'gpt-4o-transcribe') =>
    make({ kind: 'audio', model, input: { file, language: 'en', ...(response_format && { response_format }) } });

  it('are requested by a form and are text unless another format is requested', async () => {
    const { request, files, units } = await listen();
    expect(request).toMatchObject({ path: '/v1/audio/transcriptions', headers: { authorization } });
    expect(textsOf(request)).toEqual({ model: 'gpt-4o-transcribe', language: 'en', response_format: 'json' });
    const sent = partsOf(request).find(({ name }) => name === 'file');
    expect(sent).toEqual({ name: 'file', filename: 'audio.mp3', type: 'audio/mpeg', bytes: wav(0.1) });
    expect(files).toEqual([{ text: transcript, content_type: 'text/plain' }]);
    expect(units).toEqual({ input_token: '30', output_token: '9', second: '0.1' });
  });

  it.each([
    ['json', 'application/json', /^\{"text":"The quick brown fox."/],
    ['verbose_json', 'application/json', /"segments"/],
    ['srt', 'application/x-subrip', /^1\n00:00:00,000 -->/],
    ['vtt', 'text/vtt', /^WEBVTT/],
  ])('in the format %s have the type %s', async (format, content_type, text) => {
    const { request, files } = await listen(format, 'whisper-1');
    expect(textsOf(request)['response_format']).toBe(format);
    expect(files).toEqual([{ content_type, text: expect.stringMatching(text) }]);
  });

  it('report the billed seconds, or those of the file', async () => {
    expect((await listen('json', 'whisper-1')).units).toEqual({ second: '2' });
    expect((await listen('verbose_json', 'whisper-1')).units).toEqual({ second: '1.5' });
    expect((await listen('srt', 'whisper-1')).units).toEqual({ second: '0.1' });
  });

  it('send lists as an official client does', async () => {
    const input = { file, response_format: 'verbose_json', timestamp_granularities: ['word', 'segment'] };
    const { request } = await make({ kind: 'audio', model: 'whisper-1', input });
    const sent = partsOf(request).filter(({ name }) => name === 'timestamp_granularities[]');
    expect(sent.map(({ bytes }) => bytes.toString())).toEqual(['word', 'segment']);
  });

  it("of an empty input are the caller's mistake", async () => {
    const run = runOf({ kind: 'audio', model: 'whisper-1', input: {}, options: { operation: 'transcription' } });
    await expectOutcome(provider.start(run, never), { refused: 'invalid_request', message: /file holds no file/ });
  });
});

describe('a media route of openai', () => {
  it('reports invalid options', () => {
    expect(
      openai.checkOptions({ operation: 'speech', token_prices: { text_input: '5' }, cost_currency: 'USD' }),
    ).toEqual([]);
    const wrong = { operation: 'sing', stream_format: 1, token_prices: { words: '1' }, cost_currency: 'dollars', x: 1 };
    expect(
      openai
        .checkOptions(wrong)
        .map(({ field }) => field)
        .toSorted(),
    ).toEqual(['cost_currency', 'operation', 'stream_format', 'token_prices', 'x'].toSorted());
  });

  it('has nothing to poll', async () => {
    await expect(provider.poll(runOf(painting), {}, never)).rejects.toThrow('over when its start has answered');
  });
});
