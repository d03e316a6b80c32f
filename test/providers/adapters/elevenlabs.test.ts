import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeDataUrl } from '../../../src/lib/data-url.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { elevenlabs } from '../../../src/providers/adapters/elevenlabs/adapter.ts';
import type { Provider, RunRequest } from '../../../src/providers/provider.ts';
import { prober, probeMedia } from '../../helpers/prober.ts';
import { wav } from '../../storage/samples.ts';
import { bytesOf, conformance, expectOutcome, runOf, type Conformance } from '../conformance.ts';
import { refusal, startElevenlabs, transcript } from '../imitations/elevenlabs.ts';
import type { Imitation } from '../imitations/imitation.ts';
import { partsOf, textsOf } from '../imitations/multipart.ts';
import { configOf, never, secret } from '../upstreams.ts';

const key = { 'xi-api-key': secret };
const speaking = {
  kind: 'audio',
  model: 'eleven_multilingual_v2',
  input: { text: 'Hello 🦊', voice_id: '21m00Tcm4TlvDq8ikWAM' },
} as const;
const composing = { kind: 'audio', model: 'music_v2', input: { prompt: 'A march', duration: 3.5 } } as const;

const detail = (code: string, type: string, message: string) => ({ detail: { type, code, status: code, message } });

const refusals: Conformance['refusals'] = [
  [
    'a used up quota is a 401',
    refusal(401, 'quota_exceeded', 'This request exceeds your quota of 10000. You have 0 credits remaining.'),
    { not_started: 'rejected_credentials' },
  ],
  [
    'a used up quota in any other status',
    refusal(400, 'quota_exceeded', 'This request exceeds your quota.'),
    { not_started: 'rejected_credentials' },
  ],
  [
    'an unknown key is a 400, too',
    refusal(400, 'invalid_api_key', 'Invalid API key'),
    { not_started: 'rejected_credentials' },
  ],
  [
    'what our plan does not have',
    refusal(403, 'only_for_creator+', 'Professional voices are for the Creator tier.'),
    { not_started: 'rejected_credentials' },
  ],
  [
    'an account that looks odd',
    refusal(401, 'detected_unusual_activity', 'Unusual activity detected. Free Tier usage disabled.'),
    { not_started: 'rejected_credentials' },
  ],
  [
    'too many at once',
    refusal(429, 'too_many_concurrent_requests', 'Too many concurrent requests.'),
    { not_started: 'rate_limited', retry_after_ms: 2_000 },
  ],
  [
    'too many at once, in new words',
    { status: 429, json: detail('concurrent_limit_exceeded', 'rate_limit_error', 'Too many.') },
    { not_started: 'rate_limited', retry_after_ms: 2_000 },
  ],
  [
    'busy itself',
    refusal(429, 'system_busy', 'We are experiencing heavy traffic.'),
    { not_started: 'unavailable', retry_after_ms: 5_000 },
  ],
  [
    'a text that is too long',
    refusal(400, 'max_character_limit_exceeded', "This request's text has 10001 characters."),
    { refused: 'invalid_request', message: /10001 characters/ },
  ],
  [
    'a value that it does not take',
    { status: 422, json: { detail: [{ loc: ['body', 'speed'], msg: 'must be at most 1.2', type: 'x' }] } },
    { refused: 'invalid_request', message: /^speed: must be at most 1.2/ },
  ],
  [
    'content that it does not want',
    refusal(400, 'content_against_policy', 'The text violates our rules.'),
    { refused: 'content_policy_violation', message: /violates our rules/ },
  ],
  ['lost behind a gateway', { status: 524, text: 'A timeout occurred' }, 'unknown'],
];

const common = {
  adapter: elevenlabs,
  imitate: startElevenlabs,
  synchronous: true,
} as const;

conformance({
  ...common,
  name: 'elevenlabs speech',
  run: speaking,
  submit: {
    method: 'POST',
    path: '/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM',
    headers: { ...key, 'content-type': 'application/json' },
    json: { text: 'Hello 🦊', model_id: 'eleven_multilingual_v2' },
  },
  refusals: [
    ...refusals,
    [
      'a voice of the caller’s that is not there',
      refusal(404, 'voice_not_found', 'A voice with that voice_id was not found.'),
      { refused: 'invalid_request', message: /not found/ },
    ],
  ],
});

conformance({
  ...common,
  name: 'elevenlabs music',
  run: composing,
  submit: {
    method: 'POST',
    path: '/v1/music',
    headers: key,
    json: { prompt: 'A march', music_length_ms: 3_500, model_id: 'music_v2' },
  },
  refusals: [
    [
      'a prompt with somebody else’s song',
      refusal(400, 'bad_prompt', 'The prompt names a protected work.'),
      { refused: 'content_policy_violation' },
    ],
  ],
});

const guard = openGuard();
let upstream: Imitation;
let provider: Provider;

beforeAll(async () => {
  upstream = await startElevenlabs(() => 0);
  provider = elevenlabs.open(configOf('elevenlabs', upstream.url), { guard, prober });
});
afterAll(async () => {
  await upstream.stop();
  await provider.close?.();
});

async function make(run: Pick<RunRequest, 'kind' | 'model' | 'input'> & Partial<RunRequest>) {
  const state = await provider.start(runOf(run), never);
  if (state.phase !== 'done') throw new Error(`the run is ${state.phase}`);
  const request = upstream.requestsFor('submit').at(-1);
  const [file] = state.files;
  if (!request || !file) throw new Error('nothing was asked for, or nothing was made');
  return { ...state, request, file };
}

describe('speech of elevenlabs', () => {
  it('has the settings of its voice, its number of characters, and their cost', async () => {
    const input = {
      ...speaking.input,
      stability: 0.4,
      speed: 1.1,
      voice_settings: { style: 0.2 },
      seed: 7,
      language_code: null,
    };
    const { request, units, upstream_cost } = await make({ ...speaking, input, options: { credit_price: '0.00018' } });
    expect(request.json).toEqual({
      text: 'Hello 🦊',
      model_id: 'eleven_multilingual_v2',
      seed: 7,
      voice_settings: { style: 0.2, stability: 0.4, speed: 1.1 },
    });
    expect(units).toEqual({ character: '7' });
    expect(upstream_cost).toEqual({ amount: '0.00216', currency: 'USD' }); // 12 credits
  });

  it('has an unknown cost without a price of credits', async () => {
    expect((await make(speaking)).upstream_cost).toBeUndefined();
  });

  it.each([
    ['mp3_44100_128', 'audio/mpeg'],
    ['wav_24000', 'audio/wav'],
    ['pcm_16000', 'audio/wav'],
    ['ulaw_8000', 'audio/wav'],
    ['alaw_8000', 'audio/wav'],
  ])('in %s is delivered as %s', async (output_format, content_type) => {
    const { request, file } = await make({ ...speaking, input: { ...speaking.input, output_format } });
    expect(request.query).toEqual({ output_format });
    expect(await probeMedia(await bytesOf(file))).toMatchObject({ ok: true, probe: { content_type, type: 'audio' } });
  });

  it('has the voice and the format of the route, and is not logged when the route says so', async () => {
    const options = { voice_id: 'voice-1', output_format: 'mp3_22050_32', enable_logging: false };
    const { request } = await make({ ...speaking, input: { text: 'Hello' }, options });
    expect(request.path).toBe('/v1/text-to-speech/voice-1');
    expect(request.query).toEqual({ output_format: 'mp3_22050_32', enable_logging: 'false' });
  });

  it('with an unknown voice is the mistake of whoever named it', async () => {
    const run = { kind: 'audio', model: 'eleven_v3' } as const;
    const named = runOf({ ...run, input: { text: 'x', voice_id: 'nobody' } });
    await expectOutcome(provider.start(named, never), { refused: 'invalid_request', message: /not found/ });
    const configured = runOf({ ...run, input: { text: 'x' }, options: { voice_id: 'nobody' } });
    await expectOutcome(provider.start(configured, never), { not_started: 'unavailable' });
  });

  it('is never requested with an invalid voice id', async () => {
    const before = upstream.requests.length;
    for (const voice_id of ['../../v1/user', '', 'a b', 'x'.repeat(65), 7]) {
      const run = runOf({ ...speaking, input: { text: 'x', voice_id } });
      await expectOutcome(provider.start(run, never), { refused: 'invalid_request', message: /voice_id/ });
    }
    const run = runOf({ ...speaking, input: { text: 'x' } });
    await expectOutcome(provider.start(run, never), { not_started: 'unavailable' });
    expect(upstream.requests).toHaveLength(before);
  });
});

describe('effects and music of elevenlabs', () => {
  it('have their length in seconds', async () => {
    const effect = {
      kind: 'audio',
      model: 'eleven_text_to_sound_v2',
      input: { text: 'Rain', duration: 2.5, loop: true },
    } as const;
    const { request, units } = await make(effect);
    expect(request.path).toBe('/v1/sound-generation');
    expect(request.json).toEqual({
      text: 'Rain',
      duration_seconds: 2.5,
      loop: true,
      model_id: 'eleven_text_to_sound_v2',
    });
    expect(units).toBeUndefined();
  });

  it('become WAV from their samples', async () => {
    const { request, file } = await make({ ...composing, input: { prompt: 'A march', output_format: 'wav_44100' } });
    expect(request.query).toEqual({ output_format: 'pcm_44100' });
    const probed = await probeMedia(await bytesOf(file));
    expect(probed).toMatchObject({ ok: true, probe: { content_type: 'audio/wav', duration: 1 } });
  });

  it('may come from a model whose name says nothing', async () => {
    const { request } = await make({ ...composing, model: 'nightingale', options: { operation: 'music' } });
    expect(request.path).toBe('/v1/music');
  });
});

describe('transcripts of elevenlabs', () => {
  const file = writeDataUrl({ content_type: 'audio/wav', bytes: wav(0.1) });
  const listen = (more: object = {}) =>
    make({ kind: 'audio', model: 'scribe_v2', input: { file, diarize: true, keyterms: ['fox', 'dog'], ...more } });

  it('are requested by a form and report how many seconds were heard', async () => {
    const { request, file: transcript_file, units } = await listen();
    expect(request).toMatchObject({ path: '/v1/speech-to-text', headers: key });
    expect(textsOf(request)).toEqual({ model_id: 'scribe_v2', diarize: 'true', keyterms: 'dog' });
    const parts = partsOf(request);
    expect(parts.filter(({ name }) => name === 'keyterms')).toHaveLength(2);
    const sent = parts.find(({ name }) => name === 'file');
    expect(sent).toEqual({ name: 'file', filename: 'audio.wav', type: 'audio/wav', bytes: wav(0.1) });
    expect([transcript_file, units]).toEqual([{ text: transcript, content_type: 'text/plain' }, { second: '2.48' }]);
  });

  it.each([
    ['json', 'application/json', /"words"/],
    ['srt', 'application/x-subrip', /^1\n00:00:00,199 --> 00:00:02,479\n/],
    ['vtt', 'text/vtt', /^WEBVTT\n\n1\n00:00:00.199 --> 00:00:02.479\n/],
  ])('in the format %s have the type %s', async (format, content_type, text) => {
    expect((await listen({ format })).file).toEqual({ content_type, text: expect.stringMatching(text) });
  });

  it('of separate channels follow each other', async () => {
    upstream.instead('submit', { json: { transcripts: [{ text: 'Left.' }, { text: 'Right.' }] } });
    expect((await listen()).file).toEqual({ text: 'Left.\nRight.', content_type: 'text/plain' });
  });

  it('without the requested subtitles are no result', async () => {
    upstream.instead('submit', { json: { text: transcript } });
    const run = runOf({ kind: 'audio', model: 'scribe_v2', input: { file, format: 'srt' } });
    expect(await provider.start(run, never)).toEqual({ phase: 'done', files: [], units: { second: '0.1' } });
  });
});

describe('a route of elevenlabs', () => {
  it('reports invalid options', () => {
    expect(elevenlabs.checkOptions({ operation: 'music', voice_id: 'x', credit_price: '0.0001' })).toEqual([]);
    const wrong = { operation: 'sing', voice_id: 7, enable_logging: 'no', credit_price: 0.1, x: 1 };
    expect(
      elevenlabs
        .checkOptions(wrong)
        .map(({ field }) => field)
        .toSorted(),
    ).toEqual(['credit_price', 'enable_logging', 'operation', 'voice_id', 'x'].toSorted());
  });

  it('has nothing to poll and makes audio only', async () => {
    await expect(provider.poll(runOf(speaking), {}, never)).rejects.toThrow('over when its start has answered');
    expect((['chat', 'image', 'video', 'audio'] as const).map(elevenlabs.serves)).toEqual([false, false, false, true]);
  });
});
