import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openGuard } from '../../../src/net/guard.ts';
import { runway } from '../../../src/providers/adapters/runway/adapter.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { conformance, expectOutcome, runOf, runToEnd } from '../conformance.ts';
import type { Imitation, Reply } from '../imitations/imitation.ts';
import { startRunway } from '../imitations/runway.ts';
import { configOf, never, secret } from '../upstreams.ts';
import { prober } from '../../helpers/prober.ts';

const video_run = {
  kind: 'video',
  model: 'gen4.5',
  input: { promptText: 'A bay', ratio: '1280:720', duration: 5 },
} as const;

const task = (status: string, more: object = {}): { poll: Reply[] } => ({
  poll: [{ json: { id: 'a', createdAt: '2026-08-01T12:00:00.000Z', status, ...more } }],
});
const failed = (failureCode: string | undefined, failure: string) => task('FAILED', { failureCode, failure });

conformance({
  name: 'runway',
  adapter: runway,
  imitate: startRunway,
  run: video_run,
  submit: {
    method: 'POST',
    path: '/v1/text_to_video',
    headers: { authorization: `Bearer ${secret}`, 'x-runway-version': '2024-11-06' },
    json: { model: 'gen4.5', promptText: 'A bay', ratio: '1280:720', duration: 5 },
  },
  pace: { per_minute: 1_200 },
  refusals: [
    [
      'a field is wrong',
      {
        status: 400,
        json: {
          error: 'Validation of body failed',
          issues: [{ code: 'too_big', maximum: 10, path: ['duration'], message: 'Number must be at most 10' }],
          docUrl: 'https://docs.dev.runwayml.com/api',
        },
      },
      { refused: 'invalid_request', message: /^duration: Number must be at most 10$/ },
    ],
    [
      'something else is wrong',
      { status: 400, json: { error: 'The asset at promptImage could not be fetched.' } },
      { refused: 'invalid_request', message: /^The asset at promptImage/ },
    ],
    [
      'too few credits, told like a wrong input',
      { status: 400, json: { error: 'You do not have enough credits to run this task.' } },
      { not_started: 'rejected_credentials' },
    ],
    [
      'the limit of the day',
      { status: 429, json: { error: 'You have reached the daily limit of your tier.' } },
      { not_started: 'rate_limited' },
    ],
  ],
  polls: [
    ['more at once than allowed', task('THROTTLED'), { phase: 'waiting' }],
    ['small letters', task('running', { progress: 0.1 }), { phase: 'running' }],
    [
      'the input was flagged',
      failed('SAFETY.INPUT.TEXT', 'Your input did not pass moderation.'),
      { phase: 'failed', type: 'content_policy_violation', message: /^Your input did not pass moderation\.$/ },
    ],
    [
      'the host of the model flagged it',
      failed('INPUT_PREPROCESSING.SAFETY.THIRD_PARTY', ''),
      { phase: 'failed', type: 'content_policy_violation', message: /unfit/ },
    ],
    [
      'the result was flagged',
      failed('SAFETY.OUTPUT.VIDEO', ''),
      { phase: 'failed', type: 'content_policy_violation' },
    ],
    [
      'the image is no good',
      failed('ASSET.INVALID', 'The image is too narrow.'),
      { phase: 'failed', type: 'invalid_request', message: /too narrow/ },
    ],
    [
      'a bad result',
      failed('INTERNAL.BAD_OUTPUT.CODE01', 'An internal error at gen4-worker-3.'),
      { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    ],
    ['no code', failed(undefined, 'An unexpected error occurred.'), { phase: 'failed', type: 'upstream_error' }],
    [
      'the input could not be prepared: it never started',
      failed('INPUT_PREPROCESSING.INTERNAL', ''),
      { not_started: 'unavailable' },
    ],
    ['cancelled', task('CANCELLED'), { phase: 'failed', type: 'upstream_error' }],
    ['not known yet', { poll: [{ status: 404, json: { error: 'Not found' } }] }, { phase: 'waiting' }],
  ],
  unknown_word: { json: { id: 'a', status: 'REHEARSING' } },
  cancels: [
    ['while it is pending', { status: 204 }, 'stopped'],
    ['refused', { status: 404, json: { error: 'Not found' } }, 'billed'],
  ],
  cancel: { method: 'DELETE', path: /^\/v1\/tasks\/17f20503-/ },
  foreign_output: (url) => task('SUCCEEDED', { output: [url] }),
});

describe('runway', () => {
  let imitation: Imitation;
  let provider: Provider;
  beforeEach(async () => {
    imitation = await startRunway();
    provider = runway.open(configOf('runway', imitation.url), { guard: openGuard(), prober });
  });
  afterEach(async () => {
    await imitation.stop();
    await provider.close?.();
  });

  const paths: [string, Parameters<typeof runOf>[0]][] = [
    ['/v1/image_to_video', { ...video_run, input: { promptImage: 'https://example.com/a.png' } }],
    ['/v1/video_to_video', { ...video_run, model: 'aleph2', input: { videoUri: 'https://example.com/a.mp4' } }],
    [
      '/v1/character_performance',
      { ...video_run, model: 'act_two', input: { character: { type: 'image', uri: 'https://example.com/a.png' } } },
    ],
    ['/v1/text_to_image', { kind: 'image', model: 'gen4_image', input: { promptText: 'A bay' } }],
    ['/v1/text_to_speech', { kind: 'audio', model: 'eleven_multilingual_v2', input: { promptText: 'Good morning' } }],
    [
      '/v1/sound_effect',
      { kind: 'audio', model: 'seed_audio', input: { promptText: 'Rain' }, options: { endpoint: 'sound_effect' } },
    ],
  ];
  it.each(paths)('selects by its input the path %s', async (path, run) => {
    await provider.start(runOf(run), never);
    expect(imitation.requests[0]).toMatchObject({ role: 'submit', path, json: { ...run.input, model: run.model } });
  });

  it('leaves out an absent frame and makes video from text then', async () => {
    const both = [{ uri: 'data:image/png;base64,iVBORw0KGgo=', position: 'first' }, { position: 'last' }];
    await provider.start(runOf({ ...video_run, input: { promptText: 'A bay', promptImage: both } }), never);
    await provider.start(
      runOf({ ...video_run, input: { promptText: 'A bay', promptImage: [{ position: 'first' }] } }),
      never,
    );
    expect(imitation.requests.map(({ path, json }) => [path, json])).toEqual([
      ['/v1/image_to_video', { model: 'gen4.5', promptText: 'A bay', promptImage: [both[0]] }],
      ['/v1/text_to_video', { model: 'gen4.5', promptText: 'A bay' }],
    ]);
  });

  it('is polled every five seconds at most, and each of its credits costs a cent', async () => {
    const run = runOf(video_run);
    expect(await provider.start(run, never)).toMatchObject({ phase: 'waiting', poll_after_ms: 5_000 });
    expect(await runToEnd(provider, run)).toMatchObject({
      phase: 'done',
      upstream_cost: { amount: '0.6', currency: 'USD' },
    });
  });

  it('has started when it was seen running, whatever it reports at the end', async () => {
    const run = runOf(video_run);
    const state = await provider.start(run, never);
    if (!('ref' in state)) throw new Error('the run is over');
    imitation.instead('poll', ...task('RUNNING').poll, ...failed('INPUT_PREPROCESSING.INTERNAL', '').poll);
    const running = await provider.poll(run, state.ref, never);
    if (!('ref' in running)) throw new Error('the run is over');
    await expectOutcome(provider.poll(run, running.ref, never), { phase: 'failed', type: 'upstream_error' });
  });

  it('deletes no running run, because it is billed all the same', async () => {
    const run = runOf(video_run);
    const state = await provider.start(run, never);
    if (!('ref' in state)) throw new Error('the run is over');
    imitation.instead('poll', ...task('RUNNING').poll);
    expect(await provider.cancel?.(run, state.ref, never)).toBe('billed');
    expect(imitation.requestsFor('cancel')).toEqual([]);
  });

  it.each(['FAILED', 'CANCELLED'])('keeps the credits that a run costs though it is %s', async (status) => {
    const run = runOf(video_run);
    const state = await provider.start(run, never);
    if (!('ref' in state)) throw new Error('the run is over');
    imitation.instead('poll', { json: { id: 'a', status, failureCode: 'INTERNAL', cost: { credits: 25 } } });
    const upstream_cost = { amount: '0.25', currency: 'USD' };
    expect(await provider.poll(run, state.ref, never)).toMatchObject({ phase: 'failed', upstream_cost });
  });

  it('reports unknown options', () => {
    expect(runway.checkOptions({ endpoint: 'video_upscale', credit_price: '0.012' })).toEqual([]);
    expect(runway.checkOptions({ endpoint: '../admin', colour: 1 }).map(({ field }) => field)).toEqual([
      'endpoint',
      'colour',
    ]);
  });
});
