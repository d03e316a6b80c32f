import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openGuard } from '../../src/lib/guard.ts';
import { fal } from '../../src/providers/fal.ts';
import type { Provider, RunRequest } from '../../src/providers/provider.ts';
import { conformance, runOf, runToEnd } from './conformance.ts';
import { startFal, submitted } from './imitations/fal.ts';
import type { Imitation, Reply } from './imitations/imitation.ts';
import { configOf, never, secret } from './upstreams.ts';

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
    {
      why: 'the balance is used up',
      reply: {
        status: 403,
        json: { detail: 'User is locked. Reason: Exhausted balance. Top up your balance at fal.ai/dashboard/billing.' },
      },
      expect: { not_started: 'rejected_credentials' },
    },
    {
      why: 'a field is wrong',
      reply: {
        status: 422,
        json: { detail: [{ loc: ['body', 'image_size'], msg: 'Field required', type: 'missing' }] },
      },
      expect: { refused: 'invalid_request', message: /^image_size: Field required$/ },
    },
    {
      why: 'flagged',
      reply: {
        status: 422,
        json: {
          detail: [
            { loc: ['body', 'prompt'], msg: 'The content could not be processed.', type: 'content_policy_violation' },
          ],
        },
      },
      expect: { refused: 'content_policy_violation', message: /could not be processed/ },
    },
  ],
  polls: [
    {
      why: 'in the queue',
      replies: { poll: [{ status: 202, json: { status: 'IN_QUEUE', queue_position: 1 } }] },
      expect: { phase: 'waiting' },
    },
    {
      why: 'at work',
      replies: { poll: [{ status: 202, json: { status: 'in_progress' } }] },
      expect: { phase: 'running' },
    },
    {
      why: 'unknown for a moment',
      replies: { poll: [{ status: 404, json: { detail: 'Not found' } }] },
      expect: { phase: 'waiting' },
    },
    {
      why: 'completed, and yet not',
      replies: { poll: completed, result: [{ status: 400, json: { detail: 'Request is still in progress' } }] },
      expect: { phase: 'running' },
    },
    {
      why: 'the queue gave up when we wanted it',
      replies: ended(504, 'request_timeout', { 'x-fal-request-timeout-type': 'user' }),
      expect: { not_started: 'timeout' },
    },
    { why: 'no runner came up', replies: ended(504, 'startup_timeout'), expect: { not_started: 'unavailable' } },
    {
      why: 'no runner was found',
      replies: ended(503, 'runner_scheduling_failure'),
      expect: { not_started: 'unavailable' },
    },
    {
      why: 'the runner was not reached',
      replies: ended(503, 'runner_connection_refused'),
      expect: { not_started: 'unavailable' },
    },
    { why: 'nor in time', replies: ended(503, 'runner_connection_timeout'), expect: { not_started: 'unavailable' } },
    { why: 'it took too long', replies: ended(504, 'request_timeout'), expect: { phase: 'failed', type: 'timeout' } },
    {
      why: 'the runner was lost at work',
      replies: ended(503, 'runner_disconnected'),
      expect: { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    },
    {
      why: 'the runner failed',
      replies: ended(500, 'runner_server_error'),
      expect: { phase: 'failed', type: 'upstream_error' },
    },
    {
      why: 'completed, and flagged',
      replies: complained(422, 'content_policy_violation', 'The content was flagged.'),
      expect: { phase: 'failed', type: 'content_policy_violation', message: /^prompt: The content was flagged\.$/ },
    },
    {
      why: 'completed, and the caller’s mistake',
      replies: complained(422, 'image_too_small', 'The image is too small.'),
      expect: { phase: 'failed', type: 'invalid_request', message: /^prompt: The image is too small\.$/ },
    },
    {
      why: 'completed, and the model’s own trouble',
      replies: complained(422, 'downstream_service_error', 'gpu-17 said no'),
      expect: { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    },
    {
      why: 'completed, and too slow',
      replies: complained(504, 'generation_timeout', 'late'),
      expect: { phase: 'failed', type: 'timeout' },
    },
    {
      why: 'the result is in the way of a proxy',
      replies: { poll: completed, result: [{ status: 502, text: '<h1>Bad gateway</h1>' }] },
      expect: 'unknown',
    },
    {
      why: 'the result may not be asked for now',
      replies: { poll: completed, result: [{ status: 429, json: { detail: 'slow down' } }] },
      expect: 'unknown',
    },
    {
      why: 'the result is a page',
      replies: { poll: completed, result: [{ text: '<h1>Welcome</h1>' }] },
      expect: 'unknown',
    },
    {
      why: 'all pictures are black',
      replies: {
        poll: completed,
        result: [{ json: { images: [{ url: 'https://v3.fal.media/a.png' }], has_nsfw_concepts: [true] } }],
      },
      expect: { phase: 'failed', type: 'content_policy_violation' },
    },
  ],
  unknown_word: { status: 202, json: { status: 'IN_PREPARATION' } },
  cancel: { method: 'PUT', path: /^\/fal-ai\/flux\/requests\/[0-9a-f-]{36}\/cancel$/ },
  cancels: [
    { why: 'removed from the queue', reply: { json: { status: 'OK' } }, expect: 'stopped' },
    {
      why: 'the runner was told',
      reply: { status: 202, json: { status: 'CANCELLATION_REQUESTED' } },
      expect: 'billed',
    },
    { why: 'too late', reply: { status: 400, json: { status: 'ALREADY_COMPLETED' } }, expect: 'billed' },
    { why: 'unknown', reply: { status: 404, json: { status: 'NOT_FOUND' } }, expect: 'billed' },
  ],
  foreign_links: (url) => ({ json: submitted(url, '/fal-ai/flux/dev', id) }),
  foreign_output: (url) => ({ poll: completed, result: [{ json: { video: { url } } }] }),
});

describe('fal', () => {
  let imitation: Imitation;
  let provider: Provider;
  beforeAll(async () => {
    imitation = await startFal();
    provider = fal.open(configOf('fal', imitation.url), { guard: openGuard() });
  });
  afterAll(async () => {
    await imitation.stop();
    await provider.close?.();
  });
  const run = (more: Partial<RunRequest> = {}) => runOf({ kind: 'image', model: 'fal-ai/flux/dev', input, ...more });

  it('tells where events may go, and when to give up waiting', async () => {
    await provider.start(run({ events_url: 'https://gateway.example/events/x', start_limit_ms: 90_500 }), never);
    const asked = imitation.askedFor('submit').at(-1);
    expect(asked?.query).toEqual({ fal_webhook: 'https://gateway.example/events/x' });
    expect(asked?.headers['x-fal-request-timeout']).toBe('91');
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
  ])('takes %s for its output', async (_, more, json, files) => {
    imitation.instead('result', { json });
    expect(await runToEnd(provider, run(more))).toMatchObject({ phase: 'done', files });
  });

  it('tells what the billed units cost, if the route says what one costs', async () => {
    const reply = { headers: { 'x-fal-billable-units': '1.5' }, json: { image: { url: a } } };
    imitation.instead('result', reply, reply);
    expect(await runToEnd(provider, run({ options: { credit_price: '0.025' } }))).toMatchObject({
      upstream_cost: { amount: '0.0375', currency: 'USD' },
    });
    expect(await runToEnd(provider, run())).not.toHaveProperty('upstream_cost');
  });

  it('says that its own faults cost nothing, and says nothing of others', async () => {
    const complaint = { detail: [{ loc: ['body'], msg: 'oops', type: 'generation_timeout' }] };
    imitation.instead('result', { status: 504, json: complaint }, { status: 422, json: complaint });
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
  ])('looks at the options %j', (options, problems) => {
    expect(fal.checkOptions(options)).toEqual(problems);
  });
});
