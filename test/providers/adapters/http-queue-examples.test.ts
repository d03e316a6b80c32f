import { describe, expect, it } from 'vitest';
import { readCatalogFile } from '../../../src/catalog/file.ts';
import { mapInput } from '../../../src/catalog/input.ts';
import { isMediaKind, type Credentials, type JsonObject } from '../../../src/catalog/model.ts';
import { resolveTexts } from '../../../src/catalog/provider-secrets.ts';
import { writeDataUrl } from '../../../src/lib/data-url.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { http_queue } from '../../../src/providers/adapters/http-queue/adapter.ts';
import { adapterFacts } from '../../../src/providers/facts.ts';
import { adapters } from '../../../src/providers/index.ts';
import { prober } from '../../helpers/prober.ts';
import { readDocument } from '../../docs/document.ts';
import { wav } from '../../storage/samples.ts';
import { bytesOf, conformance, runOf, runToEnd, type Conformance } from '../conformance.ts';
import { startStudio, startVoices } from '../imitations/forms.ts';
import { sampleFile } from '../imitations/imitation.ts';
import { hunyuanJob, startHunyuan, tencentError } from '../imitations/tencent.ts';
import { configOf, secret } from '../upstreams.ts';

/** The third and the fourth example of docs/http-queue.md, against providers that do what the page says of them. */

const facts = { ...adapterFacts(adapters), secret: () => secret };
const examples = readDocument('docs/http-queue.md').blocks.filter(({ language }) => language === 'yaml');

/** The route of an example with an input, and its provider's credentials. */
function exampleOf(
  index: number,
  input: JsonObject,
  blocks = examples,
): { run: Conformance['run']; credentials: Credentials | undefined } {
  const reading = readCatalogFile(blocks[index]?.text ?? '', 'http-queue.md', facts);
  const content = reading.ok ? reading.content : undefined;
  const [model] = content?.models ?? [];
  const [route] = model?.routes ?? [];
  const [provider] = Object.values(content?.providers ?? {});
  if (!model || !route || !provider || !isMediaKind(model.kind)) throw new Error('the example is no medium');
  const { options = {}, output = {}, upstream_model = '' } = route;
  const mapped = mapInput(route.input === undefined ? {} : { input: route.input }, input);
  const run = { kind: model.kind, model: upstream_model, input: mapped, options, output };
  return { run, credentials: resolveTexts(provider, () => secret)?.credentials };
}

const tencent_example = readDocument('docs/providers.md').blocks.filter(({ text }) => text.includes('hunyuan-image'));

const image = writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });
const sample = writeDataUrl({ content_type: 'audio/wav', bytes: wav(1) });
const studio = exampleOf(2, { prompt: 'A quiet bay', image, tags: ['a', 'b'] });
const voices = exampleOf(3, { text: 'Hello', sample, region: 'us' });

conformance({
  name: 'http-queue, before a provider that takes a form and answers with the image,',
  adapter: http_queue,
  imitate: startStudio,
  run: studio.run,
  synchronous: true,
  submit: {
    method: 'POST',
    path: '/v2/edit-3/edit',
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': expect.stringMatching(/^multipart\/form-data; boundary=medley-\w{30}$/),
    },
  },
  refusals: [
    [
      'the result was filtered',
      { json: { finish_reason: 'CONTENT_FILTERED', image: 'AAAA' } },
      { refused: 'content_policy_violation' },
    ],
    [
      'a field is wrong',
      { status: 400, json: { errors: ['prompt: too long'] } },
      { refused: 'invalid_request', message: /^prompt: too long$/ },
    ],
  ],
});

const credentials = voices.credentials;
if (credentials?.kind !== 'hmac') throw new Error('the example is signed');

conformance({
  name: 'http-queue, before a provider that takes files first and looks at signatures,',
  adapter: http_queue,
  imitate: (now) => startVoices(secret, now),
  base_path: '/v1',
  config: { credentials, secrets: [secret] },
  run: voices.run,
  submit: {
    method: 'POST',
    path: '/v1/regions/us/speech',
    headers: { 'x-key': secret, 'content-type': 'application/json' },
    json: { model: 'clone-2', text: 'Hello', sample: 'file-2' },
  },
  refusals: [
    [
      'a time to wait in the body',
      { status: 429, json: { retry_in_seconds: 4 } },
      { not_started: 'rate_limited', retry_after_ms: 4_000 },
    ],
  ],
  polls: [
    ['queued', { poll: [{ json: { state: 'queued' } }] }, { phase: 'waiting' }],
    [
      'failed',
      { poll: [{ json: { state: 'error', reason: 'too noisy' } }] },
      { phase: 'failed', type: 'upstream_error' },
    ],
    ['gone, by a word', { poll: [{ json: { state: 'gone' } }] }, { phase: 'waiting' }],
  ],
  unknown_word: { json: { state: 'humming' } },
  pace: { per_minute: 600 },
  cancel: { method: 'DELETE', path: /^\/v1\/regions\/us\/speech\/s0$/ },
  cancels: [
    ['it is told to stop', { json: {} }, 'stopped'],
    ['it is too late', { status: 409, json: {} }, 'billed'],
  ],
});

const hunyuan = exampleOf(0, { prompt: 'A quiet bay' }, tencent_example);

conformance({
  name: 'http-queue, before Hunyuan at Tencent Cloud, which signs requests and answers 200,',
  adapter: http_queue,
  imitate: (now) => startHunyuan(secret, now),
  config: { ...(hunyuan.credentials && { credentials: hunyuan.credentials }), secrets: [secret] },
  run: hunyuan.run,
  submit: {
    method: 'POST',
    path: '/',
    headers: { 'x-tc-action': 'SubmitTextToImageJob', 'x-tc-region': 'ap-guangzhou' },
    json: { Prompt: 'A quiet bay', LogoAdd: 0 },
  },
  refusals: [
    [
      'a wrong key',
      tencentError('AuthFailure.SecretIdNotFound', 'no such key'),
      { not_started: 'rejected_credentials' },
    ],
    ['no credit', tencentError('ResourceUnavailable.LowBalance', 'balance'), { not_started: 'rejected_credentials' }],
    ['one job too many', tencentError('RequestLimitExceeded.JobNumExceed', 'jobs'), { not_started: 'rate_limited' }],
    [
      'an illegal text',
      tencentError('OperationDenied.TextIllegalDetected', 'text'),
      { refused: 'content_policy_violation' },
    ],
    [
      'a wrong field',
      tencentError('InvalidParameterValue', 'Seed is wrong'),
      { refused: 'invalid_request', message: /^Seed is wrong$/ },
    ],
    ['something else', tencentError('InternalError', 'oops'), { not_started: 'unavailable' }],
  ],
  polls: [
    ['waits', { poll: [hunyuanJob('1')] }, { phase: 'waiting' }],
    [
      'failed',
      { poll: [hunyuanJob('4', { JobErrorCode: 'ServerError', JobErrorMsg: 'x' })] },
      { phase: 'failed', type: 'upstream_error' },
    ],
    [
      'moderated',
      { poll: [hunyuanJob('4', { JobErrorCode: 'OperationDenied.ImageIllegalDetected', JobErrorMsg: 'no' })] },
      { phase: 'failed', type: 'content_policy_violation' },
    ],
    ['unknown for a moment', { poll: [tencentError('FailedOperation.JobNotExist', 'gone')] }, { phase: 'waiting' }],
    ['too many questions', { poll: [tencentError('RequestLimitExceeded', 'slow down')] }, 'unknown'],
  ],
  unknown_word: hunyuanJob('3'),
  pace: { per_minute: 600 },
  cancels: [['there is none', {}, 'billed']],
});

describe('the examples of http-queue', () => {
  it('report the credits of an image', async () => {
    const imitation = await startStudio();
    const provider = http_queue.open(configOf('http-queue', imitation.url), { guard: openGuard(), prober });
    expect(await runToEnd(provider, runOf(studio.run))).toMatchObject({
      upstream_cost: { amount: '0.03', currency: 'USD' },
    });
    await imitation.stop();
  });

  it('hand over a file once, and fetch one by its name', async () => {
    const imitation = await startVoices(secret);
    const config = configOf('http-queue', `${imitation.url}/v1`, { credentials, secrets: [secret] });
    const provider = http_queue.open(config, { guard: openGuard(), prober });
    const end = await runToEnd(provider, runOf(voices.run));
    if (end.phase !== 'done' || !end.files[0]) throw new Error(`it is ${end.phase}`);
    expect(end.files).toEqual([{ url: `${imitation.url}/v1/files/out/1/s0%20final.wav?as=wav` }]);
    expect(await bytesOf(end.files[0])).toEqual(await sampleFile('audio'));
    expect(imitation.requestsFor('upload')).toHaveLength(1);
    await imitation.stop();
  });
});
