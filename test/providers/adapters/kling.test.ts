import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { kling } from '../../../src/providers/adapters/kling/adapter.ts';
import type { Provider, RunRequest } from '../../../src/providers/provider.ts';
import { conformance, expectOutcome, runOf, runToEnd } from '../conformance.ts';
import type { Imitation, Reply } from '../imitations/imitation.ts';
import { startKling } from '../imitations/kling.ts';
import { configOf, never, secret } from '../upstreams.ts';
import { prober } from '../../helpers/prober.ts';

const headers = { authorization: `Bearer ${secret}` };
const refused = (status: number, code: number, message: string): Reply => ({
  status,
  json: { code, message, request_id: 'a' },
});
const task = (task_status: string, more: object = {}): { poll: Reply[] } => ({
  poll: [{ json: { code: 0, message: 'SUCCEED', data: { task_id: '1', task_status, ...more } } }],
});
const newTask = (status: string, more: object = {}): { poll: Reply[] } => ({
  poll: [{ json: { code: 0, message: 'SUCCEED', data: [{ id: '1', status, ...more }] } }],
});

const video_run = { kind: 'video', model: 'kling-v2-6', input: { prompt: 'A bay', mode: 'pro', duration: 5 } } as const;
const new_video_run = {
  kind: 'video',
  model: 'kling-3.0-turbo',
  input: { prompt: 'A bay', settings: { resolution: '720p', duration: 5 } },
} as const;

conformance({
  name: 'kling',
  adapter: kling,
  imitate: startKling,
  run: video_run,
  submit: {
    method: 'POST',
    path: '/v1/videos/text2video',
    headers,
    json: {
      model_name: 'kling-v2-6',
      prompt: 'A bay',
      mode: 'pro',
      duration: '5',
      external_task_id: 'task_1-kling-v2-6',
    },
  },
  pace: { per_minute: 1_800 },
  refusals: [
    [
      'a parameter is wrong',
      refused(400, 1201, 'cfg_scale value must be in [0,1]'),
      { refused: 'invalid_request', message: /^cfg_scale/ },
    ],
    ['the content', refused(400, 1301, 'Prompt is not allowed'), { refused: 'content_policy_violation' }],
    ['a code with status 200', refused(200, 1301, 'Prompt is not allowed'), { refused: 'content_policy_violation' }],
    ['the key', refused(401, 1004, 'Authorization has expired'), { not_started: 'rejected_credentials' }],
    [
      'debts, which are told like a rate',
      refused(429, 1101, 'Account in arrears'),
      { not_started: 'rejected_credentials' },
    ],
    ['an empty pack', refused(429, 1102, 'Resource pack depleted'), { not_started: 'rejected_credentials' }],
    ['a model that is not ours', refused(403, 1103, 'Unauthorized'), { not_started: 'rejected_credentials' }],
    [
      'an empty pack with status 200',
      refused(200, 1102, 'Resource pack depleted'),
      { not_started: 'rejected_credentials' },
    ],
    ['too often', refused(429, 1302, 'Rate limit'), { not_started: 'rate_limited' }],
    ['too many at once', refused(429, 1303, 'parallel task over resource pack limit'), { not_started: 'rate_limited' }],
    ['too many at once, with status 200', refused(200, 1303, 'parallel task'), { not_started: 'rate_limited' }],
    ['their own trouble, with status 200', refused(200, 5000, 'Internal'), { not_started: 'unavailable' }],
  ],
  polls: [
    ['in the queue', task('submitted'), { phase: 'waiting' }],
    [
      'flagged',
      task('failed', { task_status_msg: 'Failure to pass the risk control system' }),
      { phase: 'failed', type: 'content_policy_violation', message: /risk control/ },
    ],
    [
      'failed',
      task('failed', { task_status_msg: 'node kling-gpu-9 lost' }),
      { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    ],
    ['not known yet', { poll: [refused(404, 1203, 'Task not found')] }, { phase: 'waiting' }],
    ['a code of trouble', { poll: [refused(200, 5001, 'Maintenance')] }, 'unknown'],
    ['no status', { poll: [{ json: { code: 0, data: { task_id: '1' } } }] }, 'unknown'],
  ],
  unknown_word: { json: { code: 0, data: { task_id: '1', task_status: 'upscaling' } } },
  foreign_output: (url) => task('succeed', { task_result: { videos: [{ id: 'v', url }] } }),
});

conformance({
  name: 'kling (models in the path)',
  adapter: kling,
  imitate: startKling,
  run: new_video_run,
  submit: {
    method: 'POST',
    path: '/text-to-video/kling-3.0-turbo',
    headers,
    json: {
      prompt: 'A bay',
      settings: { resolution: '720p', duration: 5 },
      options: { external_task_id: 'task_1-kling-3.0-turbo' },
    },
  },
  pace: { per_minute: 1_800 },
  refusals: [],
  polls: [
    ['at work', newTask('processing'), { phase: 'running' }],
    [
      'flagged',
      newTask('failed', { message: 'Triggered the content risk control of the platform' }),
      { phase: 'failed', type: 'content_policy_violation' },
    ],
    ['an empty list', { poll: [{ json: { code: 0, data: [] } }] }, { phase: 'waiting' }],
    [
      'no list',
      newTask('processing').poll.map(() => ({
        poll: [{ json: { code: 0, data: { id: '1', status: 'processing' } } }],
      }))[0] ?? {},
      { phase: 'running' },
    ],
  ],
  unknown_word: { json: { code: 0, data: [{ id: '1', status: 'upscaling' }] } },
  foreign_output: (url) => newTask('succeeded', { outputs: [{ type: 'video', url }] }),
});

describe('kling', () => {
  let imitation: Imitation;
  let provider: Provider;
  beforeEach(async () => {
    imitation = await startKling();
    provider = open();
  });
  afterEach(async () => {
    await imitation.stop();
    await provider.close?.();
  });

  const open = (more: { api_key?: string } = {}) =>
    kling.open(configOf('kling', imitation.url, more), {
      guard: openGuard(),
      prober,
      rate_clock: { now: () => performance.now(), sleep: async () => undefined },
    });
  const submitted = async (run: Parameters<typeof runOf>[0]): Promise<[string, JsonObject]> => {
    await provider.start(runOf(run), never);
    const { path = '', json = {} } = imitation.requestsFor('submit').at(-1) ?? {};
    const body = Object.fromEntries(Object.entries(json).filter(([name]) => name !== 'external_task_id'));
    return [path, body];
  };
  const png = 'data:image/png;base64,iVBORw0KGgo=';

  it('signs a token for each call with a key of two parts', async () => {
    const pair = open({ api_key: 'AccessKey01:SecretKey01' });
    const run = runOf({ ...video_run, now_ms: 1_785_000_000_999 });
    const state = await pair.start(run, never);
    if (!('ref' in state)) throw new Error('the run is over');
    await pair.poll({ ...run, now_ms: 1_785_000_060_000 }, state.ref, never);
    const claims = imitation.requests.map((request) => {
      const [head = '', payload = '', signature] = (request.headers.authorization ?? '')
        .replace('Bearer ', '')
        .split('.');
      expect(signature).toBe(createHmac('sha256', 'SecretKey01').update(`${head}.${payload}`).digest('base64url'));
      expect(JSON.parse(Buffer.from(head, 'base64url').toString())).toEqual({ alg: 'HS256', typ: 'JWT' });
      return JSON.parse(Buffer.from(payload, 'base64url').toString()) as unknown;
    });
    expect(claims).toEqual([
      { iss: 'AccessKey01', exp: 1_785_001_800, nbf: 1_784_999_995 },
      { iss: 'AccessKey01', exp: 1_785_001_860, nbf: 1_785_000_055 },
    ]);
    await pair.close?.();
  });

  it("selects the path by the input, and sends the caller's files as links or bare base64", async () => {
    const frames = { prompt: 'A bay', image: png, image_tail: 'https://example.com/a.png' };
    expect(await submitted({ ...video_run, input: { ...frames, aspect_ratio: '16:9' } })).toEqual([
      '/v1/videos/image2video',
      { ...frames, image: 'iVBORw0KGgo=', model_name: 'kling-v2-6' },
    ]);
    const several = { prompt: 'A bay', image_list: [{ image: png }, {}] };
    expect(await submitted({ ...video_run, input: several })).toEqual([
      '/v1/videos/multi-image2video',
      { prompt: 'A bay', image_list: [{ image: 'iVBORw0KGgo=' }], model_name: 'kling-v2-6' },
    ]);
    const omni = { ...video_run, input: { aspect_ratio: '16:9' }, options: { endpoint: 'omni-video' } };
    expect(await submitted(omni)).toEqual([
      '/v1/videos/omni-video',
      { aspect_ratio: '16:9', model_name: 'kling-v2-6' },
    ]);
    const moved = { ...video_run, input: { video_url: 'https://example.com/a.mp4', character_orientation: 'image' } };
    expect((await submitted(moved))[0]).toBe('/v1/videos/motion-control');
  });

  it('makes images', async () => {
    const image_run = runOf({
      kind: 'image',
      model: 'kling-v3',
      input: { prompt: 'A bay', n: 1 },
      options: { credit_price: '0.0035' },
    });
    expect(await runToEnd(provider, image_run)).toEqual({
      phase: 'done',
      files: [{ url: `${imitation.url}/kcdn/image` }],
      upstream_cost: { amount: '0.00525', currency: 'USD' },
    });
    expect(imitation.requests[0]).toMatchObject({
      path: '/v1/images/generations',
      json: { model_name: 'kling-v3', n: 1 },
    });
  });

  it('sends frames with the prompt when the model is in the path, and makes video from text without frames', async () => {
    const input = {
      prompt: 'A bay',
      contents: [{ type: 'first_frame', url: 'https://example.com/a.png' }, { type: 'last_frame' }],
      settings: { duration: '10' },
      options: { watermark_info: { enabled: false } },
    };
    const options = { watermark_info: { enabled: false }, external_task_id: 'task_1-kling-3.0' };
    expect(await submitted({ ...new_video_run, model: 'kling-3.0', input })).toEqual([
      '/image-to-video/kling-3.0',
      {
        contents: [
          { type: 'prompt', text: 'A bay' },
          { type: 'first_frame', url: 'https://example.com/a.png' },
        ],
        settings: { duration: 10 },
        options,
      },
    ]);
    const alone = { contents: [{ type: 'prompt', text: 'A bay' }, { type: 'first_frame' }] };
    expect(await submitted({ ...new_video_run, model: 'kling-3.0', input: alone })).toEqual([
      '/text-to-video/kling-3.0',
      { prompt: 'A bay', options: { external_task_id: 'task_1-kling-3.0' } },
    ]);
    const omni = { contents: [{ type: 'base_video', url: 'https://example.com/a.mp4' }] };
    expect((await submitted({ ...new_video_run, model: 'kling-3.0-omni', input: omni }))[0]).toBe(
      '/omni-video/kling-3.0-omni',
    );
  });

  it('sends the callback address', async () => {
    const callback_url = 'https://medley.example/events/t';
    expect((await submitted({ ...video_run, events_url: callback_url }))[1]).toMatchObject({ callback_url });
    expect((await submitted({ ...new_video_run, events_url: callback_url }))[1]).toMatchObject({
      options: { callback_url },
    });
  });

  it('reports costs as money, or as units that the route prices', async () => {
    const priced = runOf({ ...new_video_run, options: { credit_price: '0.14' } });
    expect(await runToEnd(provider, priced)).toMatchObject({ upstream_cost: { amount: '0.56', currency: 'USD' } });
    expect(await runToEnd(provider, runOf(new_video_run))).not.toHaveProperty('upstream_cost');
    const state = await provider.start(runOf(new_video_run), never);
    if (!('ref' in state)) throw new Error('the run is over');
    const billing = [{ charge_type: 'cash', amount: '0.392', currency: 'CNY' }];
    imitation.instead(
      'poll',
      ...newTask('succeeded', { outputs: [{ type: 'video', url: 'https://x.example/a' }], billing }).poll,
    );
    const done = await provider.poll(runOf(new_video_run), state.ref, never);
    expect(done).toMatchObject({ upstream_cost: { amount: '0.392', currency: 'CNY' } });
  });

  const lost: [string, Reply][] = [
    ['cut', 'cut'],
    ['a page', { text: '<h1>Bad gateway</h1>' }],
    ['504', { status: 504, json: { code: 5002, message: 'Time-out' } }],
  ];
  describe.each([video_run, new_video_run])('kling with a lost submit of $model', (submitted_run) => {
    const run: RunRequest = runOf(submitted_run);
    const external_id = `task_1-${submitted_run.model}`;
    const answer: Reply =
      submitted_run === video_run
        ? { json: { code: 0, data: { task_id: '77', task_status: 'processing' } } }
        : { json: { code: 0, data: [{ id: '77', status: 'processing', external_id }] } };
    const none: Reply =
      submitted_run === video_run ? refused(404, 1203, 'Task not found') : { json: { code: 0, data: [] } };

    it.each(lost)('finds the run by our own name for it and continues it: %s', async (_, reply) => {
      imitation.instead('submit', reply);
      imitation.instead('poll', none, answer);
      const state = await provider.start(run, never);
      expect(state).toMatchObject({ phase: 'waiting', ref: { id: '77' } });
      expect(imitation.requestsFor('submit')).toHaveLength(1);
      const searches = imitation.requestsFor('poll').map(({ path, query }) => (path === '/tasks' ? query : path));
      const place =
        submitted_run === video_run ? `/v1/videos/text2video/${external_id}` : { external_task_ids: external_id };
      expect(searches).toEqual([place, place]);
    });

    it('leaves the outcome unknown when the run or the search fails, and does not submit again', async () => {
      for (const reply of [none, 'cut', { status: 500, text: '' }] satisfies Reply[]) {
        imitation.instead('submit', 'cut');
        imitation.instead('poll', reply, reply, reply);
        await expectOutcome(provider.start(run, never), 'unknown');
      }
      expect(imitation.requestsFor('submit')).toHaveLength(3);
      expect(imitation.requestsFor('poll')).toHaveLength(9);
    });
  });

  it('kling searches for no run after a refusal', async () => {
    imitation.instead('submit', refused(400, 1201, 'prompt is required'), refused(429, 1303, 'parallel task'));
    await expectOutcome(provider.start(runOf(video_run), never), { refused: 'invalid_request' });
    await expectOutcome(provider.start(runOf(video_run), never), { not_started: 'rate_limited' });
    expect(imitation.requestsFor('poll')).toEqual([]);
  });

  it('kling reports unknown options', () => {
    expect(kling.checkOptions({ endpoint: 'omni-video', credit_price: '0.14', cost_currency: 'USD' })).toEqual([]);
    expect(kling.checkOptions({})).toEqual([]);
    const fields = kling.checkOptions({ endpoint: '../x', credit_price: 1, mode: 'pro' }).map(({ field }) => field);
    expect(fields).toEqual(['mode', 'endpoint', 'credit_price']);
  });
});
