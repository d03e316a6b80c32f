import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openGuard } from '../../../src/net/guard.ts';
import { bfl } from '../../../src/providers/adapters/bfl/adapter.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { bytesOf, conformance, expectOutcome, runOf, runToEnd } from '../conformance.ts';
import { startBfl } from '../imitations/bfl.ts';
import type { Imitation, Reply } from '../imitations/imitation.ts';
import { configOf, never, secret } from '../upstreams.ts';
import { prober } from '../../helpers/prober.ts';

const status = (word: string, more: object = {}): { poll: Reply[] } => ({
  poll: [{ json: { id: 'picture-1', status: word, result: null, progress: null, details: null, ...more } }],
});

conformance({
  name: 'bfl',
  adapter: bfl,
  imitate: startBfl,
  run: { kind: 'image', model: 'flux-2-pro', input: { prompt: 'A bay', width: 64, height: 64, output_format: 'png' } },
  submit: {
    method: 'POST',
    path: '/v1/flux-2-pro',
    headers: { 'x-key': secret },
    json: { prompt: 'A bay', width: 64, height: 64, output_format: 'png' },
  },
  pace: { per_minute: 3_000 },
  refusals: [
    [
      'a field is wrong',
      {
        status: 422,
        json: { detail: [{ loc: ['body', 'width'], msg: 'must be a multiple of 16', type: 'value_error' }] },
      },
      { refused: 'invalid_request', message: /^width: must be a multiple of 16$/ },
    ],
    [
      'no credits',
      { status: 402, json: { detail: 'Insufficient credits. Visit https://api.bfl.ai to add more.' } },
      { not_started: 'rejected_credentials' },
    ],
    [
      'too many at once',
      { status: 429, headers: { 'retry-after': '5' }, json: { detail: 'Too many active tasks' } },
      { not_started: 'rate_limited', retry_after_ms: 5_000 },
    ],
  ],
  polls: [
    [
      'the input was flagged before the work',
      status('Request Moderated', { details: { 'Moderation Reasons': ['Derivative Works Filter'] } }),
      { phase: 'failed', type: 'content_policy_violation', message: /Derivative Works Filter/ },
    ],
    [
      'the result was flagged',
      status('Content Moderated'),
      { phase: 'failed', type: 'content_policy_violation', message: /unfit/ },
    ],
    [
      'the work failed',
      status('Error', { details: { error: 'CUDA out of memory on gpu-17' } }),
      { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    ],
    [
      'an image that cannot be read',
      status('Error', { error: 'invalid_image', message: 'input_image could not be decoded' }),
      { phase: 'failed', type: 'invalid_request', message: /input_image/ },
    ],
    ['the word has another name', { poll: [{ json: { state: 'Pending' } }] }, { phase: 'running' }],
    ['not known yet', { poll: [{ status: 404, json: { status: 'Task not found' } }] }, { phase: 'waiting' }],
    ['no status', { poll: [{ json: { id: 'picture-1' } }] }, 'unknown'],
  ],
  unknown_word: { json: { id: 'picture-1', status: 'Upscaling', result: null } },
  foreign_links: (url) => ({ json: { id: 'picture-1', polling_url: `${url}/v1/get_result?id=picture-1` } }),
  foreign_output: (url) => ({ poll: [{ json: { id: 'picture-1', status: 'Ready', result: { sample: url } } }] }),
});

describe('bfl', () => {
  let imitation: Imitation;
  let provider: Provider;
  beforeEach(async () => {
    imitation = await startBfl();
    provider = bfl.open(configOf('bfl', `${imitation.url}/v1/`), { guard: openGuard(), prober });
  });
  afterEach(async () => {
    await imitation.stop();
    await provider.close?.();
  });
  const image_run = runOf({ kind: 'image', model: 'flux-2-pro', input: { prompt: 'A bay' } });

  it('sends videos to a path of their own and polls them more slowly', async () => {
    const video_run = runOf({
      kind: 'video',
      model: 'flux-3-video',
      input: { mode: 't2v', prompt: 'A bay', duration: 5 },
    });
    expect(await provider.start(video_run, never)).toMatchObject({ phase: 'waiting', poll_after_ms: 2_000 });
    expect(imitation.requests[0]).toMatchObject({ path: '/v1/flux-3-video', json: video_run.input });
    const state = await runToEnd(provider, video_run);
    if (state.phase !== 'done' || !state.files[0]) throw new Error('no film');
    expect((await bytesOf(state.files[0])).subarray(4, 8).toString()).toBe('ftyp');
  });

  it('takes the cost in credits from the submit, or else from the result', async () => {
    expect(await runToEnd(provider, image_run)).toMatchObject({ upstream_cost: { amount: '0.045', currency: 'USD' } });
    imitation.instead('poll', { json: { status: 'Ready', cost: 6.1, result: { sample: 'https://x.example/a' } } });
    const dearer = { ...image_run, options: { credit_price: '0.02', cost_currency: 'EUR' } };
    expect(await runToEnd(provider, dearer)).toMatchObject({ upstream_cost: { amount: '0.122', currency: 'EUR' } });
  });

  it("sends the caller's files as links, or as base64 without its prefix", async () => {
    const input = {
      prompt: 'data: the new oil',
      input_image: 'data:image/png;base64,iVBORw0KGgo=',
      input_image_2: 'https://example.com/a.png',
      keyframes: ['data:image/png;base64,iVBORw0KGgo=', { image: 'data:image/jpeg;base64,/9j/', second: 2 }],
    };
    await provider.start({ ...image_run, input }, never);
    expect(imitation.requests[0]?.json).toEqual({
      prompt: 'data: the new oil',
      input_image: 'iVBORw0KGgo=',
      input_image_2: 'https://example.com/a.png',
      keyframes: ['iVBORw0KGgo=', { image: '/9j/', second: 2 }],
    });
  });

  it('sends the callback address', async () => {
    await provider.start({ ...image_run, events_url: 'https://medley.example/events/t' }, never);
    expect(imitation.requests[0]?.json).toEqual({ prompt: 'A bay', webhook_url: 'https://medley.example/events/t' });
  });

  it('gives up a run that stays unknown for two minutes, and continues one that is found again', async () => {
    const state = await provider.start(image_run, never);
    if (!('ref' in state)) throw new Error('the run is over');
    imitation.instead('poll', { json: { status: 'Task not found' } }, { status: 404, json: {} });
    const missing = await provider.poll(image_run, state.ref, never);
    expect(missing).toMatchObject({ phase: 'waiting', ref: { missing_since_ms: image_run.now_ms } });
    if (!('ref' in missing)) throw new Error('the run is over');
    const later = { ...image_run, now_ms: image_run.now_ms + 120_000 };
    await expectOutcome(provider.poll(later, missing.ref, never), { phase: 'failed', type: 'upstream_error' });
    const lost_run = await provider.poll(later, missing.ref, never);
    expect(lost_run).toMatchObject({ phase: 'running', ref: { seen_running: true } });
    expect(lost_run).not.toHaveProperty('ref.missing_since_ms');
  });

  it('reports unknown options and invalid prices', () => {
    expect(bfl.checkOptions({ credit_price: '0.01', cost_currency: 'USD' })).toEqual([]);
    expect(bfl.checkOptions({ credit_price: 0.01, speed: 'high' }).map(({ field }) => field)).toEqual([
      'speed',
      'credit_price',
    ]);
  });
});
