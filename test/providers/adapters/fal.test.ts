import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openGuard } from '../../../src/net/guard.ts';
import { fal } from '../../../src/providers/adapters/fal/adapter.ts';
import type { Provider, RunRequest } from '../../../src/providers/provider.ts';
import { conformance, runOf, runToEnd } from '../conformance.ts';
import { startFal, submitted } from '../imitations/fal.ts';
import type { Imitation, Reply } from '../imitations/imitation.ts';
import { configOf, never, secret } from '../upstreams.ts';
import { prober } from '../../helpers/prober.ts';

const input = { prompt: 'A quiet bay', image_size: { width: 64, height: 64 } };
const id = '80e732af-660e-45cd-bd63-000000000000';
const completed: Reply[] = [{ json: { status: 'COMPLETED', request_id: id } }];
const ended = (
  status: number,
  error_type: string,
  more: Record<string, string> = {},
): { poll: Reply[]; result: Reply[] } => ({
  poll: completed,
  result: [
    {
      status,
      headers: { 'x-fal-error-type': error_type, ...more },
      json: { detail: `words of ${secret}`, error_type },
    },
  ],
});
const complained = (status: number, type: string, msg: string): { poll: Reply[]; result: Reply[] } => ({
  poll: completed,
  result: [{ status, json: { detail: [{ loc: ['body', 'prompt'], msg, type, input: 'x'.repeat(100_000) }] } }],
});

conformance({
  name: 'fal',
  adapter: fal,
  imitate: startFal,
  run: { kind: 'image', model: 'fal-ai/flux/dev', input, options: { priority: 'low' } },
  submit: {
    method: 'POST',
    path: '/fal-ai/flux/dev',
    headers: { authorization: `Key ${secret}`, 'x-fal-request-timeout': '60', 'x-fal-queue-priority': 'low' },
    json: input,
  },
  pace: { per_minute: 3_000 },
  refusals: [
    [
      'the balance is used up',
      {
        status: 403,
        json: { detail: 'User is locked. Reason: Exhausted balance. Top up your balance at fal.ai/dashboard/billing.' },
      },
      { not_started: 'rejected_credentials' },
    ],
    [
      'a field is wrong',
      {
        status: 422,
        json: { detail: [{ loc: ['body', 'image_size'], msg: 'Field required', type: 'missing' }] },
      },
      { refused: 'invalid_request', message: /^image_size: Field required$/ },
    ],
    [
      'flagged',
      {
        status: 422,
        json: {
          detail: [
            { loc: ['body', 'prompt'], msg: 'The content could not be processed.', type: 'content_policy_violation' },
          ],
        },
      },
      { refused: 'content_policy_violation', message: /could not be processed/ },
    ],
  ],
  polls: [
    [
      'in the queue',
      { poll: [{ status: 202, json: { status: 'IN_QUEUE', queue_position: 1 } }] },
      { phase: 'waiting' },
    ],
    ['at work', { poll: [{ status: 202, json: { status: 'in_progress' } }] }, { phase: 'running' }],
    ['unknown for a moment', { poll: [{ status: 404, json: { detail: 'Not found' } }] }, { phase: 'waiting' }],
    [
      'completed, and yet not',
      { poll: completed, result: [{ status: 400, json: { detail: 'Request is still in progress' } }] },
      { phase: 'running' },
    ],
    [
      'the queue gave up when we wanted it',
      ended(504, 'request_timeout', { 'x-fal-request-timeout-type': 'user' }),
      { not_started: 'timeout' },
    ],
    ['no runner came up', ended(504, 'startup_timeout'), { not_started: 'unavailable' }],
    ['no runner was found', ended(503, 'runner_scheduling_failure'), { not_started: 'unavailable' }],
    ['the runner was not reached', ended(503, 'runner_connection_refused'), { not_started: 'unavailable' }],
    ['nor in time', ended(503, 'runner_connection_timeout'), { not_started: 'unavailable' }],
    ['it took too long', ended(504, 'request_timeout'), { phase: 'failed', type: 'timeout' }],
    [
      'the runner was lost at work',
      ended(503, 'runner_disconnected'),
      { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    ],
    ['the runner failed', ended(500, 'runner_server_error'), { phase: 'failed', type: 'upstream_error' }],
    [
      'completed, and flagged',
      complained(422, 'content_policy_violation', 'The content was flagged.'),
      { phase: 'failed', type: 'content_policy_violation', message: /^prompt: The content was flagged\.$/ },
    ],
    [
      'completed, and the caller’s mistake',
      complained(422, 'image_too_small', 'The image is too small.'),
      { phase: 'failed', type: 'invalid_request', message: /^prompt: The image is too small\.$/ },
    ],
    [
      'completed, and the model’s own trouble',
      complained(422, 'downstream_service_error', 'gpu-17 said no'),
      { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    ],
    ['completed, and too slow', complained(504, 'generation_timeout', 'late'), { phase: 'failed', type: 'timeout' }],
    [
      'the result is in the way of a proxy',
      { poll: completed, result: [{ status: 502, text: '<h1>Bad gateway</h1>' }] },
      'unknown',
    ],
    [
      'the result may not be asked for now',
      { poll: completed, result: [{ status: 429, json: { detail: 'slow down' } }] },
      'unknown',
    ],
    ['the result is a page', { poll: completed, result: [{ text: '<h1>Welcome</h1>' }] }, 'unknown'],
    [
      'all pictures are black',
      {
        poll: completed,
        result: [{ json: { images: [{ url: 'https://v3.fal.media/a.png' }], has_nsfw_concepts: [true] } }],
      },
      { phase: 'failed', type: 'content_policy_violation' },
    ],
  ],
  unknown_word: { status: 202, json: { status: 'IN_PREPARATION' } },
  cancel: { method: 'PUT', path: /^\/fal-ai\/flux\/requests\/[0-9a-f-]{36}\/cancel$/ },
  cancels: [
    ['removed from the queue', { json: { status: 'OK' } }, 'stopped'],
    ['the runner was told', { status: 202, json: { status: 'CANCELLATION_REQUESTED' } }, 'billed'],
    ['too late', { status: 400, json: { status: 'ALREADY_COMPLETED' } }, 'billed'],
    ['unknown', { status: 404, json: { status: 'NOT_FOUND' } }, 'billed'],
  ],
  foreign_links: (url) => ({ json: submitted(url, '/fal-ai/flux/dev', id) }),
  foreign_output: (url) => ({ poll: completed, result: [{ json: { video: { url } } }] }),
});

describe('fal', () => {
  let imitation: Imitation;
  let provider: Provider;
  beforeAll(async () => {
    imitation = await startFal();
    provider = fal.open(configOf('fal', imitation.url), { guard: openGuard(), prober });
  });
  afterAll(async () => {
    await imitation.stop();
    await provider.close?.();
  });
  const run = (more: Partial<RunRequest> = {}) => runOf({ kind: 'image', model: 'fal-ai/flux/dev', input, ...more });

  it('sends the callback address and the time limit', async () => {
    await provider.start(run({ events_url: 'https://gateway.example/events/x', start_limit_ms: 90_500 }), never);
    const request = imitation.requestsFor('submit').at(-1);
    expect(request?.query).toEqual({ fal_webhook: 'https://gateway.example/events/x' });
    expect(request?.headers['x-fal-request-timeout']).toBe('91');
  });

  it('tells no runner to stop: it is charged, and its result is the caller’s', async () => {
    const state = await provider.start(run(), never);
    if (!('ref' in state)) throw new Error('the run is over');
    imitation.instead('poll', { status: 202, json: { status: 'IN_PROGRESS' } });
    expect(await provider.cancel?.(run(), state.ref, never)).toBe('billed');
    expect(imitation.requestsFor('cancel')).toEqual([]);
  });

  it.each([
    ['workflows/acme/tale', '/workflows/acme/tale'],
    ['comfy/acme/graph/fast', '/comfy/acme/graph'],
    ['fal-ai/flux/dev', '/fal-ai/flux'],
  ])('finds the run of %s without a link below %s', async (model, app) => {
    imitation.instead('submit', { json: { request_id: id } });
    const one = run({ model });
    const state = await provider.start(one, never);
    if (!('ref' in state)) throw new Error('the run is over');
    await provider.poll(one, state.ref, never);
    expect(imitation.requestsFor('poll').at(-1)?.path).toBe(`${app}/requests/${id}/status`);
  });

  const [a, b] = ['https://v3.fal.media/files/a.bin', 'https://v3.fal.media/files/b.bin'];
  it.each([
    ['pictures', {}, { images: [{ url: a }, { url: b }], seed: 7 }, [{ url: a }, { url: b }]],
    [
      'what is left of flagged ones',
      {},
      { images: [{ url: a }, { url: b }], has_nsfw_concepts: [true, false] },
      [{ url: b }],
    ],
    ['a film', { kind: 'video' as const }, { video: { url: a, content_type: 'video/mp4' } }, [{ url: a }]],
    [
      'a film, without its first picture',
      { kind: 'video' as const },
      { thumbnail: { url: b, content_type: 'image/png' }, video: { url: a, content_type: 'video/mp4' } },
      [{ url: a }],
    ],
    [
      'a film of an unusual type',
      { kind: 'video' as const },
      { video: { url: a, content_type: 'application/octet-stream' } },
      [{ url: a }],
    ],
    [
      'what the route says',
      { output: { files: '$.second.url' } },
      { first: { url: a }, second: { url: b } },
      [{ url: b }],
    ],
    [
      'a text',
      { kind: 'audio' as const },
      { text: 'A quiet bay', chunks: [] },
      [{ text: 'A quiet bay', content_type: 'text/plain' }],
    ],
    [
      'a data URL',
      {},
      { image: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
      [{ bytes: Buffer.from('iVBORw0KGgo=', 'base64') }],
    ],
    ['nothing', {}, { seed: 7 }, []],
  ])('reads %s as its output', async (_, more, json, files) => {
    imitation.instead('result', { json });
    expect(await runToEnd(provider, run(more))).toMatchObject({ phase: 'done', files });
  });

  it('reports the cost of the billed units if the route has their price', async () => {
    const reply = { headers: { 'x-fal-billable-units': '1.5' }, json: { image: { url: a } } };
    imitation.instead('result', reply, reply);
    expect(await runToEnd(provider, run({ options: { credit_price: '0.025' } }))).toMatchObject({
      upstream_cost: { amount: '0.0375', currency: 'USD' },
    });
    expect(await runToEnd(provider, run())).not.toHaveProperty('upstream_cost');
  });

  it('reports no cost for its own faults and nothing for others', async () => {
    const answer = { detail: [{ loc: ['body'], msg: 'oops', type: 'generation_timeout' }] };
    imitation.instead('result', { status: 504, json: answer }, { status: 422, json: answer });
    expect(await runToEnd(provider, run())).toMatchObject({
      phase: 'failed',
      upstream_cost: { amount: '0', currency: 'USD' },
    });
    expect(await runToEnd(provider, run())).not.toHaveProperty('upstream_cost');
  });

  it.each([
    [{ priority: 'high' }, [{ field: 'priority', message: 'must be one of: normal, low' }]],
    [{ credit_price: 1 }, [{ field: 'credit_price', message: 'must be a decimal in quotes, such as "0.01"' }]],
    [{ priority: 'low', credit_price: '0.1' }, []],
  ])('validates the options %j', (options, problems) => {
    expect(fal.checkOptions(options)).toEqual(problems);
  });
});
