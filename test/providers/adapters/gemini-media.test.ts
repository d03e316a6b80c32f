import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeDataUrl } from '../../../src/lib/data-url.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { gemini } from '../../../src/providers/adapters/gemini/adapter.ts';
import type { Json, Provider, RunRequest, RunState } from '../../../src/providers/provider.ts';
import { bytesOf, conformance, expectOutcome, runOf, type Conformance } from '../conformance.ts';
import { answerOf, done, drawn, operation, reason, refusal, retryIn, startGemini } from '../imitations/gemini.ts';
import { sampleFile, type Imitation } from '../imitations/imitation.ts';
import { configOf, never, secret } from '../upstreams.ts';
import { prober } from '../../helpers/prober.ts';

const key = { 'x-goog-api-key': secret };
const painting = { kind: 'image', model: 'gemini-2.5-flash-image', input: { prompt: 'A bay' } } as const;
const printing = {
  kind: 'image',
  model: 'imagen-4.0-generate-001',
  input: { prompt: 'A bay', sampleCount: 2 },
} as const;
const filming = {
  kind: 'video',
  model: 'veo-3.1-generate-preview',
  input: { prompt: 'A wave', aspectRatio: '16:9', durationSeconds: '8' },
} as const;

const quota = 'You exceeded your current quota, please check your plan and billing details.';

const refusals: Conformance['refusals'] = [
  [
    'a key that it does not know is a 400',
    refusal(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [reason('API_KEY_INVALID')]),
    { not_started: 'rejected_credentials' },
  ],
  [
    'a key that is too old is a 400',
    refusal(400, 'INVALID_ARGUMENT', 'API key expired. Please renew the API key.', [reason('API_KEY_INVALID')]),
    { not_started: 'rejected_credentials' },
  ],
  [
    'a place that it does not serve is a 400',
    refusal(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'),
    { not_started: 'rejected_credentials' },
  ],
  [
    'a quota that tells when to come again',
    refusal(429, 'RESOURCE_EXHAUSTED', `${quota} Please retry in 37.8s.`, [retryIn('37.8')]),
    { not_started: 'rate_limited', retry_after_ms: 37_800 },
  ],
  [
    'overloaded',
    refusal(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'),
    { not_started: 'unavailable' },
  ],
  [
    'a model that is gone',
    refusal(404, 'NOT_FOUND', 'models/x is not found for API version v1beta'),
    { not_started: 'unavailable' },
  ],
  [
    'a value that it does not take',
    refusal(400, 'INVALID_ARGUMENT', 'Invalid value at aspectRatio: "5:4".'),
    { refused: 'invalid_request', message: /aspectRatio/ },
  ],
  [
    'sensitive words',
    refusal(
      400,
      'INVALID_ARGUMENT',
      "The prompt contains sensitive words that violate Google's Responsible AI practices.",
    ),
    { refused: 'content_policy_violation' },
  ],
];

const common = { adapter: gemini, imitate: startGemini } as const;

conformance({
  ...common,
  name: 'gemini images',
  synchronous: true,
  run: painting,
  submit: {
    method: 'POST',
    path: '/v1beta/models/gemini-2.5-flash-image:generateContent',
    headers: { ...key, 'content-type': 'application/json' },
    json: {
      contents: [{ role: 'user', parts: [{ text: 'A bay' }] }],
      generationConfig: { responseModalities: ['IMAGE'] },
    },
  },
  refusals: [
    ...refusals,
    [
      'the prompt was found unfit, with status 200',
      {
        json: { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 9 } },
      },
      { refused: 'content_policy_violation' },
    ],
    ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION', 'PROHIBITED_CONTENT', 'SAFETY'].map(
      (why): Conformance['refusals'][number] => [
        why,
        answerOf([{ finishReason: why, finishMessage: 'Unable to show the generated image.' }]),
        { phase: 'failed', type: 'content_policy_violation', message: /Unable to show/ },
      ],
    ),
    [
      'words instead of a picture',
      answerOf([{ content: { parts: [{ text: 'Which bay?' }] }, finishReason: 'STOP' }]),
      { phase: 'failed', type: 'invalid_request', message: /without an image/ },
    ],
    ['no picture', answerOf([{ finishReason: 'NO_IMAGE' }]), { phase: 'failed', type: 'invalid_request' }],
    [
      'an end that nobody has documented',
      answerOf([{ finishReason: 'IMAGE_SOLAR_FLARE' }]),
      { phase: 'failed', type: 'upstream_error' },
    ],
    ['nothing at all', { json: {} }, 'unknown'],
  ],
});

conformance({
  ...common,
  name: 'gemini predictions',
  synchronous: true,
  run: printing,
  submit: {
    method: 'POST',
    path: '/v1beta/models/imagen-4.0-generate-001:predict',
    headers: key,
    json: { instances: [{ prompt: 'A bay' }], parameters: { sampleCount: 2, includeRaiReason: true } },
  },
  refusals: [
    ...refusals,
    [
      'all pictures were found unfit',
      { json: { predictions: [{ raiFilteredReason: 'Unable to show generated images.' }] } },
      { phase: 'failed', type: 'content_policy_violation', message: /Unable to show/ },
    ],
    ['and that without a word', { json: {} }, { phase: 'failed', type: 'content_policy_violation' }],
  ],
});

conformance({
  ...common,
  name: 'gemini films',
  run: filming,
  submit: {
    method: 'POST',
    path: '/v1beta/models/veo-3.1-generate-preview:predictLongRunning',
    headers: key,
    json: { instances: [{ prompt: 'A wave' }], parameters: { aspectRatio: '16:9', durationSeconds: 8 } },
  },
  refusals: [
    ...refusals,
    ['an operation without a name', { json: { done: false } }, 'unknown'],
    ['an operation that leads elsewhere', { json: { name: 'operations/../../x' } }, 'unknown'],
  ],
  polls: [
    [
      'found unfit: done, and no film',
      {
        poll: [
          operation('x', done([], { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ['The sound was unfit.'] })),
        ],
      },
      { phase: 'failed', type: 'content_policy_violation', message: /sound was unfit/ },
    ],
    [
      'found unfit, told a step higher',
      { poll: [{ json: { done: true, response: { raiMediaFilteredCount: 2 } } }] },
      { phase: 'failed', type: 'content_policy_violation' },
    ],
    [
      'an error of its own',
      { poll: [operation('x', { error: { code: 13, message: 'Internal error at 10.0.0.1' } })] },
      { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish/ },
    ],
    [
      'an error of the input',
      { poll: [operation('x', { error: { code: 3, message: 'The image has no face.' } })] },
      { phase: 'failed', type: 'invalid_request', message: /no face/ },
    ],
    [
      'an error of its rules',
      { poll: [operation('x', { error: { code: 3, message: "It violates Vertex AI's usage guidelines." } })] },
      { phase: 'failed', type: 'content_policy_violation' },
    ],
    ['unknown for a moment', { poll: [{ status: 404, json: {} }] }, { phase: 'waiting' }],
    ['forbidden for a moment', { poll: [{ status: 403, json: {} }] }, { phase: 'waiting' }],
  ],
  unknown_word: { json: { name: 'x', metadata: { state: 'DREAMING' } } },
  pace: { per_minute: 300 },
  foreign_output: (url) => ({ poll: [operation('x', done([url]))] }),
});

const guard = openGuard();
let upstream: Imitation;
let provider: Provider;

beforeAll(async () => {
  upstream = await startGemini(() => 0);
  provider = gemini.open(configOf('gemini', upstream.url), { guard, prober });
});
afterAll(async () => {
  await upstream.stop();
  await provider.close?.();
});

type RunOptions = Pick<RunRequest, 'kind' | 'model' | 'input'> & Partial<RunRequest>;

const start = (run: RunOptions) => provider.start(runOf(run), never);
const lastJson = () => upstream.requestsFor('submit').at(-1)?.json;

async function make(run: RunOptions): Promise<RunState & { phase: 'done' }> {
  const state = await start(run);
  if (state.phase !== 'done') throw new Error(`the run is ${state.phase}`);
  return state;
}

describe('images of the Gemini family', () => {
  it("are made from the caller's images in a form, with the settings of the route", async () => {
    const image = writeDataUrl({ content_type: 'image/webp', bytes: Buffer.from('picture') });
    const input = {
      prompt: 'Snow',
      image: [image, image],
      aspectRatio: '16:9',
      imageSize: '2K',
      seed: 7,
      personGeneration: null,
    };
    const safety_settings = [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_ONLY_HIGH' }];
    await make({ ...painting, input, options: { safety_settings, tools: [{ google_search: {} }] } });
    const part = { inlineData: { mimeType: 'image/webp', data: Buffer.from('picture').toString('base64') } };
    expect(lastJson()).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Snow' }, part, part] }],
      generationConfig: {
        seed: 7,
        responseModalities: ['IMAGE'],
        imageConfig: { aspectRatio: '16:9', imageSize: '2K' },
      },
      safetySettings: safety_settings,
      tools: [{ google_search: {} }],
    });
  });

  it('have their tokens and the cost of these', async () => {
    const prices = { text_input: '0.30', image_input: '0.30', image_output: '30', text_output: '2.50' };
    const { units, upstream_cost } = await make({ ...painting, options: { token_prices: prices } });
    expect(units).toEqual({ input_token: '270', output_token: '1330' });
    expect(upstream_cost).toEqual({ amount: '0.038881', currency: 'USD' }); // 270 × 0.30 + 1,290 × 30 + 40 × 2.50
  });

  it('leave out the drafts of a thinking model', async () => {
    const [draft, bytes] = [Buffer.from('draft').toString('base64'), await sampleFile('image')];
    const parts = [drawn(draft, { thought: true }), { text: 'Here.' }, drawn(bytes.toString('base64'))];
    upstream.instead('submit', answerOf([{ content: { parts }, finishReason: 'STOP' }]));
    expect((await make(painting)).files).toEqual([{ bytes }]);
  });
});

describe('images of predictions', () => {
  it('leave out those that were blocked', async () => {
    const bytes = await sampleFile('image');
    const predictions = [
      { raiFilteredReason: 'No.' },
      { bytesBase64Encoded: bytes.toString('base64'), mimeType: 'image/png' },
    ];
    upstream.instead('submit', { json: { predictions } });
    expect((await make(printing)).files).toEqual([{ bytes }]);
  });
});

describe('videos of the Gemini family', () => {
  const image = writeDataUrl({ content_type: 'image/png', bytes: Buffer.from('first') });
  const begin = async (run: RunOptions = filming): Promise<Json> => {
    const state = await start(run);
    if (!('ref' in state)) throw new Error(`the run is ${state.phase}`);
    return state.ref;
  };

  it('begin with an image, end with another, and follow reference images', async () => {
    const input = { image, lastFrame: image, referenceImages: [image], negativePrompt: 'rain', sampleCount: 1 };
    await begin({ ...filming, input });
    const sent = { bytesBase64Encoded: Buffer.from('first').toString('base64'), mimeType: 'image/png' };
    expect(lastJson()).toEqual({
      instances: [{ image: sent, lastFrame: sent, referenceImages: [{ image: sent, referenceType: 'asset' }] }],
      parameters: { negativePrompt: 'rain', sampleCount: 1 },
    });
  });

  it('call back when the route says so', async () => {
    const events_url = 'https://medley.example/events/1';
    await begin({ ...filming, events_url });
    expect(lastJson()).not.toHaveProperty('webhookConfig');
    await begin({ ...filming, events_url, options: { webhooks: true } });
    expect(lastJson()).toMatchObject({ webhookConfig: { uris: [events_url] } });
  });

  it('are fetched with the key, which only the upstream gets', async () => {
    const run = runOf(filming);
    let state = await provider.poll(run, await begin(), never);
    if (!('ref' in state)) throw new Error('the film is there too early');
    expect(state).toMatchObject({ phase: 'running', poll_after_ms: 10_000 });
    state = await provider.poll(run, state.ref, never);
    if (state.phase !== 'done') throw new Error(`the run is ${state.phase}`);
    const [file] = state.files;
    expect(file).toEqual({
      url: `${upstream.url}/v1beta/files/f1:download?alt=media`,
      credentials: { origin: upstream.url, headers: key },
    });
    expect(file && (await bytesOf(file))).toEqual(await sampleFile('video'));
  });

  it('that Google stores are fetched from there with the key', async () => {
    const uri = 'https://generativelanguage.googleapis.com/v1beta/files/f2:download?alt=media';
    upstream.instead('poll', operation('x', done([uri])));
    expect(await provider.poll(runOf(filming), await begin(), never)).toEqual({
      phase: 'done',
      files: [{ url: uri, credentials: { origin: 'https://generativelanguage.googleapis.com', headers: key } }],
    });
  });

  it('leave out those that were blocked', async () => {
    const uri = 'https://films.example/1.mp4';
    upstream.instead(
      'poll',
      operation('x', done([uri], { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ['No.'] })),
    );
    const state = await provider.poll(runOf(filming), await begin(), never);
    expect(state).toEqual({ phase: 'done', files: [{ url: uri }] });
  });

  it('that are forbidden or unknown for five minutes are lost, and one response in between restarts that time', async () => {
    const now_ms = 1_700_000_000_000;
    const ask = (ref: Json, after_ms: number) =>
      provider.poll(runOf({ ...filming, now_ms: now_ms + after_ms }), ref, never);
    const refuse = () => upstream.instead('poll', { status: 403, json: {} });
    let ref = await begin();
    const askAgain = async (after_ms: number) => {
      const state = await ask(ref, after_ms);
      if ('ref' in state) ref = state.ref;
      return state;
    };
    refuse();
    expect(await askAgain(10_000)).toMatchObject({ phase: 'waiting' });
    expect(await askAgain(250_000)).toMatchObject({ phase: 'running' });
    refuse();
    expect(await askAgain(311_000)).toMatchObject({ phase: 'running' });
    refuse();
    expect(await askAgain(610_999)).toMatchObject({ phase: 'running' });
    refuse();
    expect(await askAgain(611_000)).toMatchObject({ phase: 'failed', type: 'upstream_error' });
  });
});

describe('a media route of Gemini', () => {
  it('reports invalid options', () => {
    expect(gemini.checkOptions({ method: 'predict', safety_settings: [], webhooks: true })).toEqual([]);
    const wrong = { method: 'draw', safety_settings: {}, tools: 'all', webhooks: 'yes', x: 1 };
    expect(
      gemini
        .checkOptions(wrong)
        .map(({ field }) => field)
        .toSorted(),
    ).toEqual(['method', 'safety_settings', 'tools', 'webhooks', 'x'].toSorted());
  });

  it('says how a model is called whose name does not', async () => {
    await make({ kind: 'image', model: 'models/painter', input: { prompt: 'x' }, options: { method: 'predict' } });
    expect(upstream.requestsFor('submit').at(-1)?.path).toBe('/v1beta/models/painter:predict');
  });

  it('makes no audio', async () => {
    expect((['image', 'video', 'audio'] as const).map(gemini.serves)).toEqual([true, true, false]);
    await expectOutcome(start({ ...painting, input: { prompt: 'x', image: 'no file' } }), {
      refused: 'invalid_request',
    });
  });
});
