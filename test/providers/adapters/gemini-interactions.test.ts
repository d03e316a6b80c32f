import { GoogleGenAI } from '@google/genai';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { gemini_interactions } from '../../../src/providers/adapters/gemini-interactions/adapter.ts';
import type { Json, Provider } from '../../../src/providers/provider.ts';
import { prober } from '../../helpers/prober.ts';
import { bytesOf, conformance, runOf, runToEnd, type Conformance } from '../conformance.ts';
import { refusal as frontRefusal, retryIn } from '../imitations/gemini.ts';
import {
  completed,
  interaction,
  refusal,
  startGeminiInteractions,
  usageOf,
} from '../imitations/gemini-interactions.ts';
import { sampleFile, type Imitation, type Reply } from '../imitations/imitation.ts';
import { configOf, never, secret } from '../upstreams.ts';

const key = { 'x-goog-api-key': secret };
const filming = {
  kind: 'video',
  model: 'gemini-omni-1.2-flash',
  input: { prompt: 'A wave', aspect_ratio: '16:9', resolution: '720p', duration: 5 },
} as const;
const speaking = {
  kind: 'audio',
  model: 'gemini-3.8-flash-tts',
  input: { text: 'Good morning.', voice: 'Kore', style: 'warm', mime_type: 'audio/wav' },
} as const;
const singing = { kind: 'audio', model: 'lyria-3.5', input: { prompt: 'A slow waltz' } } as const;

const pollAnswer = (status: string, more: object = {}): { poll: Reply[] } => ({
  poll: [interaction('a', status, more)],
});
const words = (text: string) =>
  completed([{ type: 'text', text }], {
    total_input_tokens: 9,
    total_output_tokens: 9,
    output_tokens_by_modality: [{ modality: 'TEXT', tokens: 9 }],
  });
const unfit = { phase: 'failed', type: 'content_policy_violation' } as const;

const refusals: Conformance['refusals'] = [
  [
    'a key that it does not know is a 400',
    { status: 400, json: [{ error: { code: 400, message: 'API key not valid. Please pass a valid API key.' } }] },
    { not_started: 'rejected_credentials' },
  ],
  [
    'no credit',
    refusal(402, 'payment_required', 'Prepay credits are used up.'),
    { not_started: 'rejected_credentials' },
  ],
  [
    'a quota whose details tell when to come again',
    frontRefusal(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.', [retryIn('37.8')]),
    { not_started: 'rate_limited', retry_after_ms: 37_800 },
  ],
  ['full', refusal(429, 'too_many_requests', 'Too many requests.'), { not_started: 'rate_limited' }],
  ['overloaded', refusal(503, 'unavailable', 'The model is overloaded.'), { not_started: 'unavailable' }],
  [
    'a model that is gone',
    refusal(404, 'not_found', 'models/veo-3.1 is not found for API version v1beta'),
    { not_started: 'unavailable' },
  ],
  [
    'a value that it does not take',
    refusal(400, 'invalid_request', 'Invalid value at response_format.duration: 5.'),
    { refused: 'invalid_request', message: /duration/ },
  ],
  [
    'a prompt that is blocked',
    refusal(400, 'invalid_request', 'The request was blocked for safety reasons.'),
    { refused: 'content_policy_violation' },
  ],
];

conformance({
  name: 'gemini-interactions video',
  adapter: gemini_interactions,
  imitate: startGeminiInteractions,
  run: filming,
  submit: {
    method: 'POST',
    path: '/v1beta/interactions',
    headers: { ...key, 'content-type': 'application/json' },
    json: {
      model: 'gemini-omni-1.2-flash',
      input: 'A wave',
      background: true,
      response_format: { type: 'video', delivery: 'uri', aspect_ratio: '16:9', resolution: '720p', duration: '5s' },
    },
  },
  refusals,
  polls: [
    ['in the queue', pollAnswer('queued'), { phase: 'waiting' }],
    ['at work', pollAnswer('in_progress'), { phase: 'running' }],
    [
      'failed',
      pollAnswer('failed', { errors: [{ code: 'https://errors.example/internal', message: 'worker 7 died' }] }),
      { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    ],
    ['failed without a word', pollAnswer('failed'), { phase: 'failed', type: 'upstream_error' }],
    ['failed: the prompt was unfit', pollAnswer('failed', { errors: [{ code: 'safety', message: 'Unfit.' }] }), unfit],
    ['failed: the output was unfit', pollAnswer('failed', { finish_reason: 'PROHIBITED_CONTENT' }), unfit],
    [
      'a step failed: the input is wrong',
      pollAnswer('failed', {
        steps: [{ type: 'model_output', error: { code: 3, message: 'The image is too small.' } }],
      }),
      { phase: 'failed', type: 'invalid_request', message: /too small/ },
    ],
    [
      'words that refuse in place of a video',
      pollAnswer('completed', words('This violates our safety policy.')),
      unfit,
    ],
    [
      'words in place of a video',
      pollAnswer('completed', words('Which wave do you mean?')),
      { phase: 'failed', type: 'invalid_request', message: /^The model answered without a video/ },
    ],
    ['cut off', pollAnswer('incomplete'), { phase: 'failed', type: 'upstream_error' }],
    ['out of its budget', pollAnswer('budget_exceeded'), { phase: 'failed', type: 'upstream_error' }],
    ['wants a tool', pollAnswer('requires_action'), { phase: 'failed', type: 'upstream_error' }],
    ['wants to be asked again', pollAnswer('requires_continuation'), { phase: 'failed', type: 'upstream_error' }],
    ['cancelled by somebody else', pollAnswer('cancelled'), { phase: 'failed', type: 'upstream_error' }],
    ['not known yet', { poll: [refusal(400, 'invalid_request', 'Invalid interaction name: a')] }, { phase: 'waiting' }],
    ['not found yet', { poll: [refusal(404, 'not_found', 'not found')] }, { phase: 'waiting' }],
    ['refused, though it may be at work', { poll: [refusal(400, 'invalid_request', 'API key expired.')] }, 'unknown'],
    ['forbidden, though it may be at work', { poll: [refusal(403, 'permission_denied', 'No.')] }, 'unknown'],
    ['no status', { poll: [{ json: { id: 'a' } }] }, 'unknown'],
  ],
  unknown_word: interaction('a', 'rehearsing'),
  cancels: [
    ['while it is queued', interaction('a', 'cancelled'), 'stopped'],
    ['it began in between', interaction('a', 'cancelled', { usage: usageOf('video', 9, 400) }), 'billed'],
    ['it goes on', interaction('a', 'in_progress'), 'billed'],
    ['refused', refusal(400, 'invalid_request', 'The interaction is not running.'), 'billed'],
  ],
  cancel: { method: 'POST', path: /^\/v1beta\/interactions\/v1_Chd0\/cancel$/ },
  pace: { per_minute: 300 },
  foreign_output: (url) => pollAnswer('completed', completed([{ type: 'video', uri: url }])),
});

conformance({
  name: 'gemini-interactions speech',
  adapter: gemini_interactions,
  imitate: startGeminiInteractions,
  synchronous: true,
  run: speaking,
  submit: {
    method: 'POST',
    path: '/v1beta/interactions',
    headers: key,
    json: {
      model: 'gemini-3.8-flash-tts',
      input: [
        {
          type: 'user_input',
          content: [{ type: 'text', text: 'Good morning.', annotations: [{ type: 'speech_metadata', style: 'warm' }] }],
        },
      ],
      store: false,
      response_format: { type: 'audio', mime_type: 'audio/wav' },
      generation_config: { speech_config: [{ voice: 'Kore' }] },
    },
  },
  refusals: [
    ...refusals,
    ['failed within its answer', interaction('a', 'failed', { finish_reason: 'SAFETY' }), unfit],
    [
      'words in place of speech',
      interaction('a', 'completed', words('Hello')),
      { phase: 'failed', type: 'invalid_request', message: /^The model answered without audio/ },
    ],
    ['nothing at all', { json: {} }, 'unknown'],
  ],
});

describe('gemini-interactions', () => {
  let imitation: Imitation;
  let provider: Provider;
  const open = (base_path = '') =>
    gemini_interactions.open(configOf('gemini-interactions', imitation.url + base_path), {
      guard: openGuard(),
      prober,
    });
  beforeEach(async () => {
    imitation = await startGeminiInteractions();
    provider = open();
  });
  afterEach(async () => {
    await imitation.stop();
    await provider.close?.();
  });
  const bodyOf = async (run: Parameters<typeof runOf>[0], by = provider): Promise<JsonObject | undefined> => {
    await by.start(runOf(run), never);
    return imitation.requestsFor('submit').at(-1)?.json;
  };

  it('sends what the official client sends, whose reading of the imitation is the same', async () => {
    const client = new GoogleGenAI({ apiKey: secret, httpOptions: { baseUrl: imitation.url } });
    const { prompt, aspect_ratio, resolution } = filming.input;
    const { id } = await client.interactions.create({
      model: filming.model,
      input: prompt,
      background: true,
      response_format: { type: 'video', delivery: 'uri', aspect_ratio, resolution, duration: '5s' },
    });
    await provider.start(runOf(filming), never);
    const [theirs, ours] = imitation.requestsFor('submit');
    expect(ours).toMatchObject({ method: 'POST', path: theirs?.path, json: theirs?.json });
    expect(theirs?.headers).toMatchObject(key);
    expect((await client.interactions.get(id)).status).toBe('queued');
    expect((await client.interactions.cancel(id)).status).toBe('cancelled');
    const speech = await client.interactions.create({
      model: speaking.model,
      input: [
        {
          type: 'user_input',
          content: [{ type: 'text', text: 'Good morning.', annotations: [{ type: 'speech_metadata', style: 'warm' }] }],
        },
      ],
      store: false,
      response_format: { type: 'audio', mime_type: 'audio/wav' },
      generation_config: { speech_config: [{ voice: 'Kore' }] },
    });
    expect(speech.output_audio?.mime_type).toBe('audio/wav');
    await provider.start(runOf(speaking), never);
    const [, , theirs_spoken, ours_spoken] = imitation.requestsFor('submit');
    expect(ours_spoken?.json).toEqual(theirs_spoken?.json);
    expect(imitation.requestsFor('other')).toEqual([]);
  });

  it('gives files before the words about them, and the task of a video', async () => {
    const image = ['data:image/png;base64,AAAA', 'data:image/jpeg;base64,BBBB'];
    const input = { prompt: 'It moves', image, video: null, task: 'image_to_video', seed: 7, resolution: null };
    expect(await bodyOf({ ...filming, input })).toEqual({
      model: 'gemini-omni-1.2-flash',
      input: [
        { type: 'image', data: 'AAAA', mime_type: 'image/png' },
        { type: 'image', data: 'BBBB', mime_type: 'image/jpeg' },
        { type: 'text', text: 'It moves' },
      ],
      background: true,
      response_format: { type: 'video', delivery: 'uri' },
      generation_config: { seed: 7, video_config: { task: 'image_to_video' } },
    });
  });

  it('gives each turn of a dialogue to its speaker, and each speaker a voice', async () => {
    const turns = [
      { text: 'Hi.', speaker: 'Ann' },
      { text: 'Hello.', speaker: 'Ben', style: 'tired' },
    ];
    const voices = [
      { speaker: 'Ann', voice: 'Kore' },
      { speaker: 'Ben', voice: 'Puck', language: 'en-GB' },
    ];
    const body = await bodyOf({ ...speaking, input: { turns, voices } });
    expect(body?.['input']).toEqual([
      {
        type: 'user_input',
        content: [
          { type: 'text', text: 'Hi.', annotations: [{ type: 'speech_metadata', speaker: 'Ann' }] },
          { type: 'text', text: 'Hello.', annotations: [{ type: 'speech_metadata', speaker: 'Ben', style: 'tired' }] },
        ],
      },
    ]);
    expect(body?.['generation_config']).toEqual({ speech_config: voices });
  });

  it('makes music in one answer, or in the background where a route says so', async () => {
    const at_once = await provider.start(runOf(singing), never);
    expect(at_once.phase).toBe('done');
    expect(imitation.requests.map(({ role }) => role)).toEqual(['submit']);
    const run = runOf({ ...singing, options: { background: true, delivery: 'inline', webhooks: true } });
    const events_url = 'https://medley.example/events/t';
    expect(await provider.start({ ...run, events_url }, never)).toMatchObject({ phase: 'waiting' });
    expect(imitation.requests.at(-1)?.json).toEqual({
      model: 'lyria-3.5',
      input: 'A slow waltz',
      background: true,
      response_format: { type: 'audio', delivery: 'inline' },
      webhook_config: { uris: [events_url] },
    });
    expect((await runToEnd(provider, run)).phase).toBe('done');
  });

  it('counts tokens and their cost, also of an answer that has only words', async () => {
    const token_prices = { text_input: '1.50', text_output: '9.00', video_output: '12.00' };
    const run = runOf({ ...filming, options: { token_prices } });
    const done = await runToEnd(provider, run);
    // 20 of text, 10 of thoughts, 5,792 for a second of 720p
    expect(done).toMatchObject({
      units: { input_token: '20', output_token: '5802' },
      upstream_cost: { amount: '0.069624', currency: 'USD' },
    });
    imitation.instead('poll', interaction('a', 'completed', words('Which wave?')));
    const first = await provider.start(run, never);
    const ref: Json = 'ref' in first ? first.ref : null;
    expect(await provider.poll(run, ref, never)).toMatchObject({
      phase: 'failed',
      upstream_words: 'Which wave?',
      upstream_cost: { amount: '0.0000945', currency: 'USD' },
    });
  });

  it('downloads a linked video with the key, as a file and not as its description', async () => {
    const state = await runToEnd(provider, runOf(filming));
    const [file] = state.phase === 'done' ? state.files : [];
    if (!file) throw new Error(`the run is ${JSON.stringify(state)}`);
    const origin = imitation.url;
    expect(file).toEqual({
      url: `${origin}/v1beta/files/f1:download?alt=media`,
      credentials: { origin, headers: key },
    });
    expect((await bytesOf(file)).equals(await sampleFile('video'))).toBe(true);
  });

  it('has no result where the video lies in a bucket or the answer has none', async () => {
    for (const content of [[{ type: 'video', uri: 'gs://bucket/a.mp4' }], []]) {
      imitation.instead('poll', interaction('a', 'completed', completed(content)));
      expect(await runToEnd(provider, runOf(filming))).toMatchObject({ phase: 'done', files: [] });
    }
  });

  it('reads a result that stands beside the steps', async () => {
    const data = Buffer.from('sound').toString('base64');
    imitation.instead('submit', interaction('a', 'completed', { output_audio: { type: 'audio', data } }));
    const state = await provider.start(runOf(singing), never);
    expect(state).toEqual({ phase: 'done', files: [{ bytes: Buffer.from('sound') }] });
  });

  it('tells nobody to stop a run that is at work', async () => {
    const first = await provider.start(runOf(filming), never);
    const ref: Json = 'ref' in first ? first.ref : null;
    for (const reply of [interaction('a', 'in_progress'), refusal(404, 'not_found', 'gone')]) {
      imitation.instead('poll', reply);
      expect(await provider.cancel?.(runOf(filming), ref, never)).toBe('billed');
    }
    expect(imitation.requestsFor('cancel')).toEqual([]);
  });

  it('speaks to Vertex AI, whose links lead into buckets: videos come inline', async () => {
    const vertex = open('/v1beta1/projects/p/locations/global');
    expect(await bodyOf(filming, vertex)).toMatchObject({ response_format: { delivery: 'inline' } });
    const path = '/v1beta1/projects/p/locations/global/interactions';
    expect(imitation.requestsFor('submit').map((request) => request.path)).toEqual([path]);
    const state = await runToEnd(vertex, runOf(filming));
    expect(state).toMatchObject({ phase: 'done', files: [{ bytes: await sampleFile('video') }] });
    await vertex.close?.();
  });

  it('names wrong options', () => {
    const fieldsOf = (options: JsonObject) => gemini_interactions.checkOptions(options).map(({ field }) => field);
    expect(fieldsOf({ background: false, delivery: 'inline', webhooks: true, cost_currency: 'EUR' })).toEqual([]);
    expect(
      fieldsOf({ background: 'yes', delivery: 'post', token_prices: { video: '1' }, speed: 1 }).toSorted(),
    ).toEqual(['background', 'delivery', 'speed', 'token_prices']);
  });
});
