import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { luma } from '../../../src/providers/adapters/luma/adapter.ts';
import { conformance, runOf, runToEnd } from '../conformance.ts';
import type { Imitation, Reply } from '../imitations/imitation.ts';
import { startLuma } from '../imitations/luma.ts';
import { configOf, never, secret } from '../upstreams.ts';
import { prober } from '../../helpers/prober.ts';

const headers = { authorization: `Bearer ${secret}` };
const pollAnswer = (state: string, more: object = {}): { poll: Reply[] } => ({
  poll: [{ json: { id: 'a', state, ...more } }],
});
const failed = (failure_code: string | undefined, failure_reason: string) =>
  pollAnswer('failed', { failure_code, failure_reason });

conformance({
  name: 'luma',
  adapter: luma,
  imitate: startLuma,
  base_path: '/v1',
  run: {
    kind: 'video',
    model: 'ray-3.2',
    input: { prompt: 'A bay', aspect_ratio: '16:9', video: { resolution: '720p', duration: '5s' } },
  },
  submit: {
    method: 'POST',
    path: '/v1/generations',
    headers,
    json: {
      type: 'video',
      model: 'ray-3.2',
      prompt: 'A bay',
      aspect_ratio: '16:9',
      video: { resolution: '720p', duration: '5s' },
    },
  },
  pace: { per_minute: 1_200 },
  refusals: [
    [
      'fields that do not go together',
      { status: 422, json: { detail: 'loop is not supported with duration=10s', request_id: 'a' } },
      { refused: 'invalid_request', message: /^loop is not supported with duration=10s$/ },
    ],
    [
      'the prompt is flagged',
      { status: 400, json: { detail: 'The prompt was moderated.' } },
      { refused: 'content_policy_violation' },
    ],
    ['no balance', { status: 402, json: { detail: 'Insufficient balance' } }, { not_started: 'rejected_credentials' }],
    [
      'too many at once',
      { status: 429, headers: { 'retry-after': '12' }, json: { detail: 'Concurrent job limit reached' } },
      { not_started: 'rate_limited', retry_after_ms: 12_000 },
    ],
  ],
  polls: [
    ['in the queue', pollAnswer('queued'), { phase: 'waiting' }],
    [
      'flagged',
      failed('content_moderated', 'The prompt violates our content guidelines.'),
      { phase: 'failed', type: 'content_policy_violation', message: /content guidelines/ },
    ],
    [
      'an image that is too large',
      failed('image_too_large', 'start_frame exceeds 50 MB'),
      { phase: 'failed', type: 'invalid_request', message: /start_frame/ },
    ],
    [
      'a failure of the model',
      failed('generation_failed', 'worker ray-7 crashed'),
      { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    ],
    ['out of money on the way', failed('budget_exhausted', ''), { phase: 'failed', type: 'upstream_error' }],
    ['refused for its pace before the start', failed('rate_limited', ''), { not_started: 'rate_limited' }],
    ['not known yet', { poll: [{ status: 404, json: { detail: 'Generation not found' } }] }, { phase: 'waiting' }],
    ['no state', { poll: [{ json: { id: 'a' } }] }, 'unknown'],
  ],
  unknown_word: { json: { id: 'a', state: 'rendering' } },
  foreign_output: (url) => pollAnswer('completed', { output: [{ type: 'video', url }] }),
});

conformance({
  name: 'luma (Dream Machine)',
  adapter: luma,
  imitate: startLuma,
  base_path: '/dream-machine/v1',
  run: { kind: 'video', model: 'ray-2', input: { prompt: 'A bay', resolution: '720p', duration: '5s', loop: false } },
  submit: {
    method: 'POST',
    path: '/dream-machine/v1/generations/video',
    headers,
    json: { model: 'ray-2', prompt: 'A bay', resolution: '720p', duration: '5s', loop: false },
  },
  pace: { per_minute: 1_200 },
  refusals: [
    [
      'a field is wrong',
      {
        status: 422,
        json: { detail: [{ type: 'enum', loc: ['body', 'duration'], msg: "Input should be '5s' or '9s'" }] },
      },
      { refused: 'invalid_request', message: /^duration: Input should be/ },
    ],
    [
      'too few credits',
      { status: 400, json: { detail: 'Insufficient credits' } },
      { not_started: 'rejected_credentials' },
    ],
  ],
  polls: [
    ['at work', pollAnswer('dreaming'), { phase: 'running' }],
    [
      'flagged, which only the words tell',
      failed(undefined, '400: Generation blocked by content moderation'),
      { phase: 'failed', type: 'content_policy_violation' },
    ],
    ['failed', failed(undefined, '500: unknown'), { phase: 'failed', type: 'upstream_error' }],
  ],
  unknown_word: { json: { id: 'a', state: 'upscaling' } },
  foreign_output: (url) => pollAnswer('completed', { assets: { video: url } }),
});

describe('luma', () => {
  let imitation: Imitation;
  beforeEach(async () => {
    imitation = await startLuma();
  });
  afterEach(() => imitation.stop());

  const opened = (path: string) => luma.open(configOf('luma', imitation.url + path), { guard: openGuard(), prober });
  const bodyOf = async (path: string, run: Parameters<typeof runOf>[0]): Promise<JsonObject | undefined> => {
    const provider = opened(path);
    await provider.start(runOf(run), never);
    await provider.close?.();
    return imitation.requestsFor('submit').at(-1)?.json;
  };
  const png = 'data:image/png;base64,iVBORw0KGgo=';

  it('gets files as links or with their type in the request, and no absent fields', async () => {
    const input = {
      prompt: 'A bay',
      image_ref: [{ url: png }, { url: 'https://example.com/a.png', weight: 0.5 }, { weight: 0.5 }],
      video: { duration: '5s', start_frame: { url: png }, end_frame: {} },
    };
    expect(await bodyOf('/v1', { kind: 'video', model: 'ray-3.2', input })).toEqual({
      type: 'video',
      model: 'ray-3.2',
      prompt: 'A bay',
      image_ref: [
        { data: 'iVBORw0KGgo=', media_type: 'image/png' },
        { url: 'https://example.com/a.png', weight: 0.5 },
      ],
      video: { duration: '5s', start_frame: { data: 'iVBORw0KGgo=', media_type: 'image/png' } },
    });
    expect(opened('/v1').media).toBe('either');
  });

  it('edits images when there is a source, and their type may be specified', async () => {
    const image_model = { kind: 'image', model: 'uni-1' } as const;
    expect(await bodyOf('/v1', { ...image_model, input: { prompt: 'A bay' } })).toMatchObject({ type: 'image' });
    const source = { url: 'https://example.com/a.png' };
    expect(await bodyOf('/v1', { ...image_model, input: { prompt: 'Bluer', source } })).toMatchObject({
      type: 'image_edit',
      source,
    });
    const input = { prompt: 'Wider', type: 'video_reframe', source };
    expect(await bodyOf('/v1', { kind: 'video', model: 'ray-3.2', input })).toMatchObject({ type: 'video_reframe' });
  });

  it('gets only links for Dream Machine, and the callback address', async () => {
    const frame0 = { type: 'image', url: 'https://example.com/a.png' };
    const input = { prompt: 'A bay', keyframes: { frame0, frame1: { type: 'image' } } };
    const events_url = 'https://medley.example/events/t';
    expect(await bodyOf('/dream-machine/v1', { kind: 'video', model: 'ray-2', input, events_url })).toEqual({
      model: 'ray-2',
      prompt: 'A bay',
      keyframes: { frame0 },
      callback_url: events_url,
    });
    expect(opened('/dream-machine/v1').media).toBe('link');
  });

  it('makes images of both APIs', async () => {
    for (const [path, model] of [
      ['/v1', 'uni-1'],
      ['/dream-machine/v1', 'photon-1'],
    ] as const) {
      const provider = opened(path);
      const state = await runToEnd(provider, runOf({ kind: 'image', model, input: { prompt: 'A bay' } }));
      expect(state).toEqual({ phase: 'done', files: [{ url: `${imitation.url}/storage/image` }] });
      await provider.close?.();
    }
  });

  it('has no options', () => {
    expect(luma.checkOptions({})).toEqual([]);
    expect(luma.checkOptions({ speed: 1 }).map(({ field }) => field)).toEqual(['speed']);
  });
});
