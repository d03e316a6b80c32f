import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openGuard } from '../../../src/net/guard.ts';
import { gemini } from '../../../src/providers/adapters/gemini/adapter.ts';
import { prober } from '../../helpers/prober.ts';
import { conformance, expectOutcome, runOf, runToEnd } from '../conformance.ts';
import { operation, refusal } from '../imitations/gemini.ts';
import { sampleFile, type Imitation } from '../imitations/imitation.ts';
import { startVertex, vertexDone, vertex_place } from '../imitations/vertex.ts';
import { configOf, never, secret } from '../upstreams.ts';

/** Veo and Imagen on Vertex AI, whose operations are asked for in another way than those of the Gemini API. */

const filming = {
  kind: 'video',
  model: 'veo-3.1-generate-001',
  input: { prompt: 'A wave', aspectRatio: '16:9', durationSeconds: '8' },
} as const;
const refusals = [
  [
    'a quota that tells when to come again',
    refusal(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded. Please retry in 37.8s.', [
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '37.8s' },
    ]),
    { not_started: 'rate_limited', retry_after_ms: 37_800 },
  ],
  [
    'a model that the project has not',
    refusal(404, 'NOT_FOUND', 'Publisher Model `veo-9` was not found.'),
    { not_started: 'unavailable' },
  ],
] satisfies Parameters<typeof conformance>[0]['refusals'];

conformance({
  name: 'videos of Vertex AI',
  adapter: gemini,
  imitate: startVertex,
  base_path: vertex_place,
  run: filming,
  submit: {
    method: 'POST',
    path: `${vertex_place}/models/veo-3.1-generate-001:predictLongRunning`,
    headers: { 'x-goog-api-key': secret },
    json: { instances: [{ prompt: 'A wave' }], parameters: { aspectRatio: '16:9', durationSeconds: 8 } },
  },
  refusals,
  polls: [
    [
      'found unfit: done, and no film',
      { poll: [vertexDone('x', [], { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ['The sound was unfit.'] })] },
      { phase: 'failed', type: 'content_policy_violation', message: /sound was unfit/ },
    ],
    [
      'an error of its own',
      { poll: [operation('x', { error: { code: 13, message: 'Internal error' } })] },
      { phase: 'failed', type: 'upstream_error' },
    ],
    [
      'a video that was put into a bucket',
      { poll: [vertexDone('x', [], { videos: [{ gcsUri: 'gs://films/1.mp4', mimeType: 'video/mp4' }] })] },
      { phase: 'failed', type: 'upstream_error' },
    ],
    ['unknown for a moment', { poll: [{ status: 404, json: {} }] }, { phase: 'waiting' }],
  ],
  unknown_word: { json: { name: 'x', metadata: { state: 'DREAMING' } } },
  pace: { per_minute: 300 },
});

conformance({
  name: 'images of Vertex AI',
  adapter: gemini,
  imitate: startVertex,
  base_path: vertex_place,
  synchronous: true,
  run: { kind: 'image', model: 'imagen-4.0-generate-001', input: { prompt: 'A bay' } },
  submit: {
    method: 'POST',
    path: `${vertex_place}/models/imagen-4.0-generate-001:predict`,
    headers: { 'x-goog-api-key': secret },
    json: { instances: [{ prompt: 'A bay' }], parameters: { includeRaiReason: true } },
  },
  refusals,
});

describe('media of Vertex AI', () => {
  let upstream: Imitation;
  beforeAll(async () => {
    upstream = await startVertex();
  });
  afterAll(() => upstream.stop());

  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const service_account = JSON.stringify({
    client_email: 'a@b',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  });
  const opened = () => {
    const credentials = { kind: 'google', service_account, scope: 'cloud' } as const;
    const { api_key: _, ...config } = configOf('gemini', upstream.url + vertex_place, { credentials });
    return gemini.open(config, { guard: openGuard(), prober });
  };

  it('is made with tokens of a service account, from the submit to the file', async () => {
    const provider = opened();
    const state = await runToEnd(provider, runOf(filming));
    expect(state).toEqual({ phase: 'done', files: [{ bytes: await sampleFile('video') }] });
    const calls = [...upstream.requestsFor('submit'), ...upstream.requestsFor('poll')];
    expect(calls).toHaveLength(3);
    for (const { headers } of calls) expect(headers.authorization).toMatch(/^Bearer [\w-]+\.[\w-]+\.[\w-]+$/);
    expect(upstream.requestsFor('poll').at(-1)).toMatchObject({
      path: `${vertex_place}/models/veo-3.1-generate-001:fetchPredictOperation`,
      json: {
        operationName: `${vertex_place.slice('/v1/'.length)}/models/veo-3.1-generate-001/operations/1`,
      },
    });
    expect(upstream.requestsFor('other')).toEqual([]);
    await provider.close?.();
  });

  it('that an operation of another model names is no run of this one', async () => {
    const provider = opened();
    const state = await provider.start(runOf(filming), never);
    if (!('ref' in state)) throw new Error(`the run is ${state.phase}`);
    const other = runOf({ ...filming, model: 'veo-2.0-generate-001' });
    await expectOutcome(provider.poll(other, state.ref, never), { phase: 'waiting' }); // unknown, for a while
    await provider.close?.();
  });

  it('that lies in a bucket says so to the operator alone', async () => {
    const provider = opened();
    const state = await provider.start(runOf(filming), never);
    if (!('ref' in state)) throw new Error(`the run is ${state.phase}`);
    upstream.instead('poll', vertexDone('x', [], { videos: [{ gcsUri: 'gs://films/1.mp4' }] }));
    expect(await provider.poll(runOf(filming), state.ref, never)).toMatchObject({
      message: 'The model provider could not finish the run.',
      upstream_words: expect.stringContaining('leave storageUri out'),
    });
    await provider.close?.();
  });
});
