import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openGuard } from '../../../src/net/guard.ts';
import { minimax } from '../../../src/providers/adapters/minimax/adapter.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { conformance, expectOutcome, runOf, runToEnd } from '../conformance.ts';
import type { Imitation, Reply } from '../imitations/imitation.ts';
import { startMinimax } from '../imitations/minimax.ts';
import { configOf, never, secret } from '../upstreams.ts';
import { prober } from '../../helpers/prober.ts';

const headers = { authorization: `Bearer ${secret}` };
const base = (status_code: number, status_msg: string) => ({ base_resp: { status_code, status_msg } });
const coded = (status_code: number, status_msg: string): Reply => ({
  json: { task_id: '', ...base(status_code, status_msg) },
});
const first = (status: string, more: object = base(0, 'success')): { poll: Reply[] } => ({
  poll: [{ json: { task_id: '1', status, ...more } }],
});
const second = (status: string, more: object = {}): { poll: Reply[] } => ({
  poll: [{ json: { task: { id: '1', status, ...more } } }],
});

const video_run = {
  kind: 'video',
  model: 'MiniMax-Hailuo-2.3',
  input: { prompt: 'A bay', duration: 6, resolution: '768P' },
} as const;
const second_video_run = {
  kind: 'video',
  model: 'MiniMax-H3',
  input: { prompt: 'A bay', duration: 5, ratio: '16:9', resolution: '2K' },
} as const;
const speech = {
  kind: 'audio',
  model: 'speech-2.8-hd',
  input: { text: 'Good morning', voice_setting: { voice_id: 'English_Graceful_Lady', speed: 1 } },
} as const;

conformance({
  name: 'minimax',
  adapter: minimax,
  imitate: startMinimax,
  run: video_run,
  submit: {
    method: 'POST',
    path: '/v1/video_generation',
    headers,
    json: { model: 'MiniMax-Hailuo-2.3', prompt: 'A bay', duration: 6, resolution: '768P' },
  },
  pace: { per_minute: 600 },
  refusals: [
    [
      'a parameter is wrong, with status 200',
      coded(2013, 'invalid params, duration must be 6 or 10'),
      { refused: 'invalid_request', message: /duration must be 6 or 10/ },
    ],
    ['the input is sensitive', coded(1026, 'input new_sensitive'), { refused: 'content_policy_violation' }],
    ['too often', coded(1002, 'rate limit'), { not_started: 'rate_limited' }],
    ['too many connections', coded(1041, 'conn limit'), { not_started: 'rate_limited' }],
    ['the key', coded(2049, 'invalid api key'), { not_started: 'rejected_credentials' }],
    ['the balance', coded(1008, 'insufficient balance'), { not_started: 'rejected_credentials' }],
    ['its own trouble', coded(1033, 'mysql failed'), { not_started: 'unavailable' }],
    ['its own time', coded(1001, 'request timeout'), 'unknown'],
    ['a code that nobody knows', coded(9999, 'new'), { not_started: 'unavailable' }],
  ],
  polls: [
    ['in the queue', first('Queueing'), { phase: 'waiting' }],
    [
      'the result is sensitive',
      first('Fail', base(1027, 'output new_sensitive')),
      { phase: 'failed', type: 'content_policy_violation' },
    ],
    [
      'an image that is no good',
      first('Fail', base(2013, 'invalid params: first_frame_image is too small')),
      { phase: 'failed', type: 'invalid_request', message: /too small/ },
    ],
    [
      'failed',
      first('Fail', base(1000, 'node hailuo-4 lost')),
      { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    ],
    ['only a code, of the pace', { poll: [coded(1002, 'rate limit')] }, 'unknown'],
    [
      'only a code, of the content',
      { poll: [coded(1027, 'output new_sensitive')] },
      { phase: 'failed', type: 'content_policy_violation' },
    ],
    [
      'done, but where the file is cannot be had now',
      { ...first('Success', { file_id: '1', ...base(0, 'success') }), result: [coded(1002, 'rate limit')] },
      'unknown',
    ],
  ],
  unknown_word: { json: { task_id: '1', status: 'Upscaling', ...base(0, 'success') } },
  cancels: [['there is none', {}, 'billed']],
  foreign_output: (url) => ({
    ...first('Success', { file_id: '1', ...base(0, 'success') }),
    result: [{ json: { file: { file_id: 1, download_url: url }, ...base(0, 'success') } }],
  }),
});

const lost = (status: number, message: string) => ({
  status,
  json: { type: 'error', error: { type: 'server_error', message, http_code: String(status) } },
});

conformance({
  name: 'minimax (second API)',
  adapter: minimax,
  imitate: startMinimax,
  run: second_video_run,
  submit: {
    method: 'POST',
    path: '/v2/video_generation',
    headers,
    json: {
      model: 'MiniMax-H3',
      content: [{ type: 'text', text: 'A bay' }],
      duration: 5,
      ratio: '16:9',
      resolution: '2K',
    },
  },
  pace: { per_minute: 600 },
  refusals: [
    [
      'a parameter is wrong',
      {
        status: 400,
        json: {
          type: 'error',
          error: { type: 'bad_request_error', message: 'invalid params, ratio (2013)', http_code: '400' },
        },
      },
      { refused: 'invalid_request', message: /ratio/ },
    ],
    [
      'the input is sensitive',
      {
        status: 422,
        json: { type: 'error', error: { type: 'unprocessable_entity_error', message: 'input new_sensitive (1026)' } },
      },
      { refused: 'content_policy_violation' },
    ],
  ],
  polls: [
    ['in the queue', second('queued'), { phase: 'waiting' }],
    [
      'the result is sensitive',
      second('failed', { error: { code: '1027', message: 'output new_sensitive' } }),
      { phase: 'failed', type: 'content_policy_violation' },
    ],
    ['failed', second('failed', { error: { code: 1000, message: 'x' } }), { phase: 'failed', type: 'upstream_error' }],
    ['expired in the queue', second('expired'), { not_started: 'unavailable' }],
    ['cancelled', second('cancelled'), { phase: 'failed', type: 'upstream_error' }],
    ['not known yet', { poll: [{ status: 404, json: { type: 'error' } }] }, { phase: 'waiting' }],
    ['not known, as a fault of its own', { poll: [lost(500, 'record not found (1000)')] }, { phase: 'waiting' }],
    ['too old to be known', { poll: [lost(400, 'invalid params, invalid task_id (2013)')] }, { phase: 'waiting' }],
    ['a fault of its own', { poll: [lost(500, 'internal error (1000)')] }, 'unknown'],
    ['no status', { poll: [{ json: { task: {} } }] }, 'unknown'],
  ],
  unknown_word: { json: { task: { id: '1', status: 'upscaling' } } },
  cancels: [
    ['while it is queued', { json: {} }, 'stopped'],
    ['answered with nothing', { status: 204 }, 'stopped'],
    ['refused', { status: 400, json: { type: 'error', error: { message: 'running' } } }, 'billed'],
  ],
  cancel: { method: 'DELETE', path: /^\/v2\/video_generation\/1153341414652313\d\d$/ },
  foreign_output: (url) => second('succeeded', { content: { url } }),
});

conformance({
  name: 'minimax (speech)',
  adapter: minimax,
  imitate: startMinimax,
  run: speech,
  submit: {
    method: 'POST',
    path: '/v1/t2a_v2',
    headers,
    json: { model: 'speech-2.8-hd', ...speech.input, stream: false, output_format: 'hex' },
  },
  synchronous: true,
  refusals: [
    [
      'a voice that is not there',
      { json: base(20132, 'invalid samples or voice_id') },
      { refused: 'invalid_request', message: /voice_id/ },
    ],
    ['no sound', { json: { data: { status: 2 }, ...base(0, 'success') } }, 'unknown'],
    ['no hex', { json: { data: { audio: 'abc', status: 2 }, ...base(0, 'success') } }, 'unknown'],
  ],
  cancels: [],
});

describe('minimax', () => {
  let imitation: Imitation;
  let provider: Provider;
  beforeEach(async () => {
    imitation = await startMinimax();
    provider = minimax.open(configOf('minimax', `${imitation.url}/v1`), { guard: openGuard(), prober });
  });
  afterEach(async () => {
    await imitation.stop();
    await provider.close?.();
  });
  const png = 'data:image/png;base64,iVBORw0KGgo=';

  it('counts the characters of speech, which may come as a link', async () => {
    expect(await provider.start(runOf(speech), never)).toMatchObject({ phase: 'done', units: { character: '26' } });
    const url = 'https://files.elsewhere.example/a.mp3';
    imitation.instead('submit', { json: { data: { audio: url }, ...base(0, 'success') } });
    const run = runOf({ ...speech, input: { ...speech.input, output_format: 'url' } });
    expect(await provider.start(run, never)).toEqual({ phase: 'done', files: [{ url }] });
    expect(imitation.requests[1]?.json).toMatchObject({ output_format: 'url', stream: false });
  });

  it('gets frames as fields of the first API and as contents of the second, and no absent ones', async () => {
    const frames = { prompt: 'A bay', first_frame_image: png };
    await provider.start(runOf({ ...video_run, input: frames }), never);
    await provider.start(runOf({ ...second_video_run, input: frames }), never);
    const content = [
      { type: 'text', text: 'A bay' },
      { type: 'video_url', video_url: {}, role: 'reference_video' },
    ];
    await provider.start(runOf({ ...second_video_run, input: { content, duration: 5 } }), never);
    await provider.start(runOf({ ...video_run, options: { api: 'v2' } }), never);
    expect(imitation.requests.map(({ path, json }) => [path, json])).toEqual([
      ['/v1/video_generation', { ...frames, model: 'MiniMax-Hailuo-2.3' }],
      [
        '/v2/video_generation',
        {
          content: [
            { type: 'text', text: 'A bay' },
            { type: 'image_url', image_url: { url: png }, role: 'first_frame' },
          ],
          model: 'MiniMax-H3',
        },
      ],
      ['/v2/video_generation', { content: [{ type: 'text', text: 'A bay' }], duration: 5, model: 'MiniMax-H3' }],
      ['/v2/video_generation', expect.objectContaining({ content: [{ type: 'text', text: 'A bay' }] })],
    ]);
  });

  it('deletes no run in progress, and a run that was in progress has started whatever it reports', async () => {
    const run = runOf(second_video_run);
    const state = await provider.start(run, never);
    if (!('ref' in state)) throw new Error('the run is over');
    imitation.instead('poll', ...second('running').poll, ...second('running').poll, ...second('expired').poll);
    expect(await provider.cancel?.(run, state.ref, never)).toBe('billed');
    expect(imitation.requestsFor('cancel')).toEqual([]);
    const running = await provider.poll(run, state.ref, never);
    if (!('ref' in running)) throw new Error('the run is over');
    await expectOutcome(provider.poll(run, running.ref, never), { phase: 'failed', type: 'upstream_error' });
  });

  it('makes videos of both APIs', async () => {
    for (const run of [runOf(video_run), runOf(second_video_run)]) {
      const files = [{ url: `${imitation.url}/inference_output/output.mp4` }];
      expect(await runToEnd(provider, run)).toEqual({ phase: 'done', files });
    }
    expect(imitation.requestsFor('result').map(({ query }) => query)).toEqual([{ file_id: '205258526306433' }]);
  });

  it('reports unknown options', () => {
    expect(minimax.checkOptions({ api: 'v2' })).toEqual([]);
    expect(minimax.checkOptions({ api: 'v3', speed: 1 }).map(({ field }) => field)).toEqual(['api', 'speed']);
  });
});
