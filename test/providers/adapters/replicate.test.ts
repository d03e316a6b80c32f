import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import type { Provider, RunRequest } from '../../../src/providers/provider.ts';
import { replicate } from '../../../src/providers/adapters/replicate/adapter.ts';
import { conformance, runOf, runToEnd } from '../conformance.ts';
import type { Imitation } from '../imitations/imitation.ts';
import { prediction, startReplicate } from '../imitations/replicate.ts';
import { configOf, never, secret } from '../upstreams.ts';
import { prober } from '../../helpers/prober.ts';

const input = { prompt: 'A quiet bay' };
const id = `run${'0'.repeat(23)}`;
const predictionReply = (more: JsonObject) => ({ json: prediction('https://api.replicate.com', id, more) });
const failed = (error: string) => predictionReply({ status: 'failed', started_at: '2026-08-01T10:00:01Z', error });
const throttled = 'Request was throttled. Your rate limit resets in ~30s.';

conformance({
  name: 'replicate',
  adapter: replicate,
  imitate: startReplicate,
  base_path: '/v1',
  run: { kind: 'image', model: 'acme/painter', input },
  submit: {
    method: 'POST',
    path: '/v1/models/acme/painter/predictions',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'cancel-after': '900s' },
    json: { input },
  },
  pace: { per_minute: 3_000 },
  refusals: [
    [
      'a field is wrong',
      {
        status: 422,
        json: { title: 'Input validation failed', detail: '- input: prompt is required\n', status: 422 },
      },
      { refused: 'invalid_request', message: /^- input: prompt is required$/ },
    ],
    [
      'a version that is gone',
      {
        status: 422,
        json: {
          title: 'Invalid version or not permitted',
          detail: "The specified version does not exist (or perhaps you don't have permission to use it?)",
          status: 422,
        },
      },
      { not_started: 'unavailable' },
    ],
    [
      'the credit is used up',
      {
        status: 402,
        json: { title: 'Insufficient credit', detail: 'You have insufficient credit to run this model.', status: 402 },
      },
      { not_started: 'rejected_credentials' },
    ],
    [
      'throttled, as only the words tell',
      { status: 429, json: { detail: throttled, status: 429 } },
      { not_started: 'rate_limited', retry_after_ms: 30_000 },
    ],
  ],
  polls: [
    ['not started yet', { poll: [predictionReply({ status: 'starting' })] }, { phase: 'waiting' }],
    [
      'booting counts as started once it is',
      { poll: [predictionReply({ status: 'starting', started_at: 'now' })] },
      { phase: 'running' },
    ],
    ['in capitals', { poll: [predictionReply({ status: 'Processing' })] }, { phase: 'running' }],
    [
      'the deadline came before the start',
      { poll: [predictionReply({ status: 'aborted' })] },
      { not_started: 'timeout' },
    ],
    [
      'the deadline came later',
      { poll: [predictionReply({ status: 'canceled', started_at: '2026-08-01T10:00:01Z' })] },
      { phase: 'failed', type: 'timeout' },
    ],
    [
      'stopped by hand before its start',
      { poll: [predictionReply({ status: 'canceled' })] },
      { not_started: 'unavailable' },
    ],
    [
      'flagged',
      { poll: [failed('NSFW content detected. Try running it again, or try a different prompt.')] },
      { phase: 'failed', type: 'content_policy_violation', message: /NSFW content detected/ },
    ],
    [
      'flagged by a partner’s model',
      {
        poll: [failed('The input or output was flagged as sensitive. Please try again with different inputs. (E005)')],
      },
      { phase: 'failed', type: 'content_policy_violation', message: /flagged as sensitive/ },
    ],
    [
      'the caller’s own mistake',
      { poll: [failed('Invalid input: image is too small (E006)')] },
      { phase: 'failed', type: 'invalid_request', message: /image is too small/ },
    ],
    [
      'out of memory, in words that are nobody’s business',
      { poll: [failed('CUDA out of memory on gpu-host-17')] },
      { phase: 'failed', type: 'upstream_error', message: /^The model provider could not finish the run\.$/ },
    ],
    [
      'too late: the output was removed',
      { poll: [predictionReply({ status: 'succeeded', output: null, data_removed: true })] },
      { phase: 'failed', type: 'upstream_error' },
    ],
    ['unknown for a moment', { poll: [{ status: 404, json: { detail: 'not found' } }] }, { phase: 'waiting' }],
  ],
  unknown_word: predictionReply({ status: 'defrosting' }),
  cancel: { method: 'POST', path: /^\/v1\/predictions\/run0+\/cancel$/ },
  cancels: [
    ['before its start', predictionReply({ status: 'canceled' }), 'stopped'],
    ['already at work', predictionReply({ status: 'canceled', started_at: '2026-08-01T10:00:01Z' }), 'billed'],
    ['already over', predictionReply({ status: 'succeeded' }), 'billed'],
    ['unknown', { status: 404, json: { detail: 'not found' } }, 'billed'],
  ],
  foreign_links: (url) => ({ status: 201, json: prediction(url, id, { status: 'starting' }) }),
  foreign_output: (url) => ({ poll: [predictionReply({ status: 'succeeded', output: url })] }),
});

describe('replicate', () => {
  let imitation: Imitation;
  let provider: Provider;
  beforeAll(async () => {
    imitation = await startReplicate();
    provider = replicate.open(configOf('replicate', `${imitation.url}/v1`), { guard: openGuard(), prober });
  });
  afterAll(async () => {
    await imitation.stop();
    await provider.close?.();
  });
  const run = (more: Partial<RunRequest> = {}) => runOf({ kind: 'image', model: 'acme/painter', input, ...more });
  const version = 'ab'.repeat(32);

  it('stops no run that works: it is charged, and its result is the caller’s', async () => {
    const state = await provider.start(run(), never);
    if (!('ref' in state)) throw new Error('the run is over');
    const working = { status: 'processing', started_at: '2026-08-01T10:00:01Z' };
    imitation.instead('poll', { json: prediction(imitation.url, id, working) });
    expect(await provider.cancel?.(run(), state.ref, never)).toBe('billed');
    expect(imitation.requestsFor('cancel')).toEqual([]);
  });

  it.each([
    ['acme/painter', {}, '/v1/models/acme/painter/predictions', undefined],
    [`acme/painter:${version}`, {}, '/v1/predictions', `acme/painter:${version}`],
    [version, {}, '/v1/predictions', version],
    ['acme/painter', { version: 'latest' }, '/v1/predictions', 'acme/painter'],
    ['deployments/acme/fast-painter', {}, '/v1/deployments/acme/fast-painter/predictions', undefined],
  ])('runs %s with %j by %s', async (model, options, path, named) => {
    await provider.start(run({ model, options }), never);
    const request = imitation.requestsFor('submit').at(-1);
    expect(request?.path).toBe(path);
    expect(request?.json['version']).toBe(named);
  });

  it("sends the callback address, and stops by itself at the route's time limit", async () => {
    await provider.start(run({ events_url: 'https://gateway.example/events/x', total_limit_ms: 1_500 }), never);
    const request = imitation.requestsFor('submit').at(-1);
    expect(request?.json).toMatchObject({
      webhook: 'https://gateway.example/events/x',
      webhook_events_filter: ['start', 'completed'],
    });
    expect(request?.headers['cancel-after']).toBe('5s');
  });

  const png = 'data:image/png;base64,iVBORw0KGgo=';
  const [a, b] = ['https://replicate.delivery/a.png', 'https://pbxt.replicate.delivery/b.png'];
  it.each([
    ['a link', a, {}, [{ url: a }]],
    ['a list', [a, b], {}, [{ url: a }, { url: b }]],
    ['an object', { image: a, masks: [b], seed: 7 }, {}, [{ url: a }, { url: b }]],
    ['an object of which only a part is wanted', { image: a, preview: b }, { files: '$.image' }, [{ url: a }]],
    ['the same twice', [a, a], {}, [{ url: a }]],
    ['a data URL', [png], {}, [{ bytes: Buffer.from('iVBORw0KGgo=', 'base64') }]],
    ['a text', 'A quiet bay', {}, [{ text: 'A quiet bay', content_type: 'text/plain' }]],
    ['a text in pieces', ['A ', 'quiet ', 'bay'], {}, [{ text: 'A quiet bay', content_type: 'text/plain' }]],
    ['nothing', null, {}, []],
  ])('reads %s as its output', async (_, output, where, files) => {
    imitation.instead('poll', { json: prediction(imitation.url, id, { status: 'succeeded', output }) });
    const state = await runToEnd(provider, run({ output: where }));
    expect(state).toMatchObject({ phase: 'done', files });
  });

  it("sends the key only for the provider's own files", async () => {
    const output = [a, 'https://evil-replicate.delivery/a.png', 'https://replicate.delivery.evil.example/a.png'];
    imitation.instead('poll', { json: prediction(imitation.url, id, { status: 'succeeded', output }) });
    const state = await runToEnd(provider, run());
    const origins = state.phase === 'done' ? state.files.map((file) => 'url' in file && file.credentials?.origin) : [];
    expect(origins).toEqual(['https://replicate.delivery', undefined, undefined]);
  });

  it('reports the counts of its metrics and the cost of its time', async () => {
    const metrics = { predict_time: 0.1 + 0.2, input_token_count: 12, output_token_count: 34 };
    imitation.instead('poll', { json: prediction(imitation.url, id, { status: 'succeeded', output: a, metrics }) });
    expect(await runToEnd(provider, run({ options: { second_price: '0.000975' } }))).toMatchObject({
      units: { input_token: '12', output_token: '34' },
      upstream_cost: { amount: '0.0002925', currency: 'USD' },
    });
  });

  it('reports the cost of the time of a stopped run', async () => {
    const canceled = { status: 'canceled', started_at: '2026-08-01T10:00:01Z', metrics: { predict_time: 4 } };
    imitation.instead('poll', { json: prediction(imitation.url, id, canceled) });
    expect(await runToEnd(provider, run({ options: { second_price: '0.001' } }))).toMatchObject({
      phase: 'failed',
      upstream_cost: { amount: '0.004', currency: 'USD' },
    });
  });

  it.each([
    [{ version: 'newest' }, [{ field: 'version', message: 'must be one of: latest' }]],
    [{ second_price: 0.1 }, [{ field: 'second_price', message: 'must be a decimal in quotes, such as "0.000975"' }]],
    [{ second_price: '0.1', version: 'latest' }, []],
  ])('validates the options %j', (options, problems) => {
    expect(replicate.checkOptions(options)).toEqual(problems);
  });
});
