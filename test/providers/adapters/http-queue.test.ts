import { afterEach, describe, expect, it } from 'vitest';
import { readCatalogFile } from '../../../src/catalog/file.ts';
import { mapInput } from '../../../src/catalog/input.ts';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { showProblem } from '../../../src/catalog/problem.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { adapterFacts } from '../../../src/providers/facts.ts';
import { http_queue } from '../../../src/providers/adapters/http-queue/adapter.ts';
import { adapters } from '../../../src/providers/index.ts';
import type { RunRequest } from '../../../src/providers/provider.ts';
import { readDocument } from '../../docs/document.ts';
import { conformance, expectOutcome, runOf, runToEnd } from '../conformance.ts';
import { startImitation, type Imitation, type Reply } from '../imitations/imitation.ts';
import { startJobs, startPredictions } from '../imitations/queues.ts';
import { configOf, never, secret } from '../upstreams.ts';
import { prober } from '../../helpers/prober.ts';

const facts = { ...adapterFacts(adapters), secret: () => secret };
const examples = readDocument('docs/http-queue.md').blocks.filter(({ language }) => language === 'yaml');

/** The route of an example in the documentation, and a run on it. */
function runByExample(index: number, input: JsonObject): RunRequest {
  const reading = readCatalogFile(examples[index]?.text ?? '', 'http-queue.md', facts);
  const [model] = reading.ok ? (reading.content.models ?? []) : [];
  const [route] = model?.routes ?? [];
  if (!model || !route || (model.kind !== 'video' && model.kind !== 'image')) throw new Error('the example is no film');
  const mapped = mapInput(route.input === undefined ? {} : { input: route.input }, input);
  const { options = {}, output = {}, upstream_model = '' } = route;
  return runOf({ kind: model.kind, model: upstream_model, input: mapped, options, output });
}

const video_run = runByExample(0, { prompt: 'A quiet bay', duration: 5 });
const envelope = (data: JsonObject, code = 200): Reply => ({ json: { code, message: 'success', data } });
const state = (status: string, more: JsonObject = {}) => ({ poll: [envelope({ id: 'r0', status, ...more })] });

conformance({
  name: 'http-queue',
  adapter: http_queue,
  imitate: startPredictions,
  base_path: '/api/v3',
  run: video_run,
  submit: {
    method: 'POST',
    path: '/api/v3/acme/film-2',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', accept: 'application/json' },
    json: { prompt: 'A quiet bay', duration: 5, size: '1280*720' },
  },
  pace: { per_minute: 600 },
  refusals: [
    [
      'a code that is like a status',
      { json: { code: 402, message: 'Insufficient credits' } },
      { not_started: 'rejected_credentials' },
    ],
    ['a code of its own', { json: { code: 7001, message: 'queue full' } }, { not_started: 'unavailable' }],
    [
      'words that are listed',
      { json: { code: 1000, message: 'The prompt was flagged by a filter' } },
      { refused: 'content_policy_violation', message: /^The prompt was flagged by a filter$/ },
    ],
    [
      'words of the caller’s mistake',
      { status: 400, json: { code: 400, message: 'prompt is too long' } },
      { refused: 'invalid_request', message: /^prompt is too long$/ },
    ],
  ],
  polls: [
    ['waiting', state('created'), { phase: 'waiting' }],
    ['running, in capitals', state('PROCESSING'), { phase: 'running' }],
    [
      'failed',
      state('failed', { error: 'node 17 is down' }),
      { phase: 'failed', type: 'upstream_error', message: /^The model provider/ },
    ],
    [
      'failed and flagged',
      state('failed', { error: 'Sensitive content found' }),
      { phase: 'failed', type: 'content_policy_violation', message: /^Sensitive content found$/ },
    ],
    ['no state at all', { poll: [envelope({ id: 'r0' })] }, 'unknown'],
    ['unknown for a moment', { poll: [{ status: 404, json: {} }] }, { phase: 'waiting' }],
    ['the question is refused, by a 200', { poll: [envelope({}, 500)] }, 'unknown'],
  ],
  unknown_word: envelope({ id: 'r0', status: 'thawing' }),
  cancel: { method: 'DELETE', path: /^\/api\/v3\/predictions\/r0$/ },
  cancels: [
    ['while it waits', envelope({}), 'stopped'],
    ['refused', envelope({}, 409), 'billed'],
    ['too late', { status: 409, json: {} }, 'billed'],
  ],
  foreign_output: (url) => ({ poll: [envelope({ id: 'r0', status: 'completed', outputs: [url] })] }),
});

const image_run = runByExample(1, { prompt: 'A quiet bay' });
const job = (code: number, msg: string, data: JsonObject | null = null) => ({ json: { code, msg, data } });
const fail = (failCode: string, failMsg: string) => ({
  poll: [job(200, 'success', { state: 'fail', failCode, failMsg })],
});

conformance({
  name: 'http-queue, before a provider that says 200 and means no,',
  adapter: http_queue,
  imitate: startJobs,
  base_path: '/api/v1',
  run: { ...image_run, events_url: 'https://gateway.example/events/x' },
  submit: {
    method: 'POST',
    path: '/api/v1/jobs/createTask',
    headers: { authorization: `Bearer ${secret}` },
    json: {
      model: 'acme-picture-3',
      callBackUrl: 'https://gateway.example/events/x',
      input: { prompt: 'A quiet bay' },
    },
  },
  refusals: [
    ['no credit', job(402, 'Credits insufficient'), { not_started: 'rejected_credentials' }],
    [
      'too many',
      { ...job(429, 'slow down'), headers: { 'retry-after': '9' } },
      { not_started: 'rate_limited', retry_after_ms: 9_000 },
    ],
    ['maintenance', job(455, 'Service is under maintenance'), { not_started: 'unavailable' }],
    [
      'the input',
      job(422, 'prompt must not be empty'),
      { refused: 'invalid_request', message: /^prompt must not be empty$/ },
    ],
    ['the content', job(422, 'Content policy: no.'), { refused: 'content_policy_violation' }],
    ['an error without a list', job(500, 'oops'), { not_started: 'unavailable' }],
  ],
  polls: [
    ['queued', { poll: [job(200, 'success', { state: 'queuing' })] }, { phase: 'waiting' }],
    ['failed', fail('501', 'generation failed'), { phase: 'failed', type: 'upstream_error' }],
    [
      'failed for its input',
      fail('422', 'the picture is too dark'),
      { phase: 'failed', type: 'invalid_request', message: /too dark/ },
    ],
    [
      'done, in a text that is no JSON',
      { poll: [job(200, 'success', { state: 'success', resultJson: '{"resultUrls":' })] },
      { phase: 'done' },
    ],
  ],
  unknown_word: job(200, 'success', { state: 'thinking' }),
  cancels: [['there is none', {}, 'billed']],
});

describe('http-queue', () => {
  let imitation: Imitation;
  afterEach(() => imitation.stop());
  const provider = (url: string) =>
    http_queue.open(configOf('http-queue', `${url}/v1`), { guard: openGuard(), prober });

  /** Answers the first request, and then the others, in the order of `replies`. */
  async function imitate(...replies: ((url: string) => Reply)[]): Promise<Imitation> {
    imitation = await startImitation({
      roleOf: ({ method }) => (method === 'POST' ? 'submit' : 'poll'),
      answer: (_, { url }) => replies.shift()?.(url) ?? 'cut',
    });
    return imitation;
  }
  const run = (options: JsonObject, output: JsonObject = {}) =>
    runOf({ kind: 'image', model: 'acme/painter', input: { prompt: 'A bay', n: 2 }, options, output });
  const status = { path: '/runs/$id', state: '$.state', done: ['done'], failed: ['failed'] };

  it('reads files, costs and counts from the fields that its options name', async () => {
    const { url } = await imitate(
      () => ({ json: { id: 17, price: 0.1 + 0.2 } }),
      () => ({ json: { state: 'done' } }),
      () => ({ json: { files: ['iVBORw0KGgo='], usage: { out: 12 } } }),
    );
    const options = {
      headers: { 'x-key': '$key' },
      submit: {
        path: '/runs',
        id: '$.id',
        body: { text: '$input.prompt', seed: '$input.seed', price: '$$5', model: 'm:$model' },
      },
      status,
      result: { path: '/runs/$id/files' },
      cost: { amount: '$.price' },
      cost_currency: 'EUR',
      units: { output_token: '$.usage.out' },
    };
    const end = await runToEnd(provider(url), run(options, { files: '$.files[*]', form: 'base64' }));
    expect(end).toEqual({
      phase: 'done',
      files: [{ bytes: Buffer.from('iVBORw0KGgo=', 'base64') }],
      units: { output_token: '12' },
      upstream_cost: { amount: '0.3', currency: 'EUR' },
    });
    expect(imitation.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /v1/runs',
      'GET /v1/runs/17',
      'GET /v1/runs/17/files',
    ]);
    expect(imitation.requests[0]?.json).toEqual({ text: 'A bay', price: '$5', model: 'm:acme/painter' });
    expect(imitation.requests.map(({ headers }) => [headers['x-key'], headers.authorization])).toEqual(
      imitation.requests.map(() => [secret, undefined]),
    );
  });

  it('keeps ids and models within their part of a path', async () => {
    const { url } = await imitate(
      () => ({ json: { id: '../../admin?x=1#y' } }),
      () => ({ json: { state: 'done' } }),
    );
    await runToEnd(provider(url), run({ submit: { path: '/$model', id: '$.id' }, status }, { files: '$.files' }));
    expect(imitation.requests.map(({ path }) => path)).toEqual([
      '/v1/acme/painter',
      '/v1/runs/..%2F..%2Fadmin%3Fx%3D1%23y',
    ]);
  });

  it('takes files from the submit when there is no status path, as links or as one file', async () => {
    const { url } = await imitate(
      (own) => ({ json: { image: `${own}/a.png` } }),
      () => ({ bytes: Buffer.from('png'), headers: { 'content-type': 'image/png' } }),
    );
    const options = { submit: { path: '/images' } };
    const start = () => provider(url).start(run(options, { files: '$.image', key: true }), never);
    const credentials = { origin: url, headers: { authorization: `Bearer ${secret}` } };
    expect(await start()).toEqual({ phase: 'done', files: [{ url: `${url}/a.png`, credentials }] });
    expect(await start()).toEqual({ phase: 'done', files: [{ bytes: Buffer.from('png') }] });
  });

  it('reports a run dropped before its start as not started, and whether a stopped one is unbilled by its options', async () => {
    const { url } = await imitate(
      () => ({ json: { id: 'a' } }),
      () => ({ json: { state: 'working' } }),
      () => ({ json: { state: 'evicted' } }),
      () => ({ json: {} }),
      () => ({ json: {} }),
    );
    const options = {
      submit: { path: '/runs', id: '$.id' },
      status: { ...status, dropped: ['evicted'] },
      cancel: { path: '/stop', method: 'PUT' },
    };
    const request = run(options, { files: '$.x' });
    const first = await provider(url).start(request, never);
    if (!('ref' in first)) throw new Error('it is over');
    const second = await provider(url).poll(request, first.ref, never);
    if (!('ref' in second)) throw new Error('it is over');
    await expectOutcome(provider(url).poll(request, first.ref, never), { not_started: 'unavailable' });
    expect(await provider(url).cancel?.(request, first.ref, never)).toBe('stopped');
    expect(await provider(url).cancel?.(request, second.ref, never)).toBe('billed');
  });

  it('does not stop a run at work that costs all the same, unless its task ends anyway', async () => {
    const { url } = await imitate(
      () => ({ json: { id: 'a' } }),
      () => ({ json: { state: 'working' } }),
      () => ({ json: {} }),
    );
    const cancel = { path: '/stop', method: 'PUT' };
    const request = run({ submit: { path: '/runs', id: '$.id' }, status, cancel }, { files: '$.x' });
    const first = await provider(url).start(request, never);
    if (!('ref' in first)) throw new Error('it is over');
    const second = await provider(url).poll(request, first.ref, never);
    if (!('ref' in second)) throw new Error('it is over');
    expect(await provider(url).cancel?.(request, second.ref, never)).toBe('billed');
    expect(imitation.requests.map(({ method }) => method)).not.toContain('PUT');
    expect(await provider(url).cancel?.({ ...request, is_given_up: true }, second.ref, never)).toBe('billed');
    expect(imitation.requests.map(({ method }) => method)).toContain('PUT');
  });

  it('starts nothing with invalid options', async () => {
    const { url } = await imitate();
    await expectOutcome(provider(url).start(run({}), never), { not_started: 'refused' });
    expect(imitation.requests).toEqual([]);
  });
});

describe('the options of http-queue', () => {
  it.each(examples.map(({ line, text }) => [line, text] as const))(
    'in line %i of the documentation are valid',
    (_, text) => {
      expect(readCatalogFile(text, 'http-queue.md', facts)).toMatchObject({ ok: true, warnings: [] });
    },
  );

  const problemsWith = (options: string, output = '{ files: $.x }') => {
    const text = `version: 1
providers: { q: { adapter: http-queue, base_url: "https://q.example" } }
models:
  - id: a
    kind: image
    input_schema: { type: object, properties: { prompt: { type: string } } }
    price: [{ unit: image, amount: "0.01" }]
    routes: [{ provider: q, output: ${output}, options: ${options} }]
`;
    const reading = readCatalogFile(text, 'f', facts);
    const problems = reading.ok ? reading.warnings : reading.problems;
    return problems.map(
      (problem) => `${problem.severity} ${showProblem(problem).replace(/^f:\d+:\d+ models\[0\]\.routes\[0\]\./, '')}`,
    );
  };
  const submit = 'submit: { path: /runs, id: $.id }';
  const states = 'state: $.s, done: [done], failed: [failed]';
  const status = `status: { path: /runs/$id, ${states} }`;

  it.each<[string, string[]]>([
    [`{ ${submit}, ${status} }`, []],
    ['{ submit: { path: /images } }', []],
    ['{ submit: { path: /images }, errors: { code: $.c, ok: [] } }', []],
    ['{}', ['error options.submit: is required: how a run is started.']],
    ['{ submit: 7 }', ['error options.submit: must be a mapping.']],
    [`{ ${status} }`, ['error options.submit: is required: how a run is started.']],
    [`{ ${submit} }`, ['error options.status: is required: runs with an id are asked for their state.']],
    [`{ submit: { path: /runs }, ${status} }`, ['error options.submit.id: is required: a path such as $.data.id.']],
    [
      `{ submit: { path: runs, id: data.id, method: HEAD }, ${status} }`,
      [
        'error options.submit.method: must be one of: GET, POST, PUT, PATCH, DELETE.',
        'error options.submit.path: must begin with a slash, without ? and #: it continues the base_url of the provider.',
        'error options.submit.id: must be a path such as $.data.id, $.images[0].url or $.outputs[*].',
      ],
    ],
    [
      `{ submit: { path: /$id/$secret, id: $.id, headers: { x: "$key", y: "$nope" }, query: { k: $key } }, ${status} }`,
      [
        'error options.submit.path: has $id, which is none of $model, $task_id, $input.NAME; a dollar sign is written $$.',
        'error options.submit.query.k: has $key, which is none of $model, $task_id, $events_url, $input.NAME; a dollar sign is written $$.',
        'error options.submit.headers.y: has $nope, which is none of $model, $task_id, $events_url, $input.NAME, $key; a dollar sign is written $$.',
      ],
    ],
    [
      `{ submit: { path: /runs, id: $.id, body: { a: [{ b: $inputs }] } }, ${status} }`,
      [
        'error options.submit.body: has $inputs, which is none of $model, $task_id, $events_url, $input.NAME, $input; a dollar sign is written $$.',
      ],
    ],
    [
      `{ submit: { path: /runs, id: $.id, body: text }, ${status} }`,
      ['error options.submit.body: must be $input, or a mapping.'],
    ],
    [
      `{ ${submit}, status: { path: /runs, state: $.s, done: [ok], failed: [OK, no] } }`,
      ['error options.status.failed: has ok, which means something else already.'],
    ],
    [
      `{ ${submit}, status: { path: /runs } }`,
      [
        'error options.status.state: is required: a path such as $.data.id.',
        'error options.status.done: is required: a list of words.',
        'error options.status.failed: is required: a list of words.',
      ],
    ],
    [
      `{ ${submit}, ${status}, errors: { ok: [200] } }`,
      ['error options.errors.code: is required: ok is about what stands there.'],
    ],
    [
      `{ ${submit}, ${status}, errors: { moderation: [{}] } }`,
      ['error options.errors.moderation: must be a list of words or numbers.'],
    ],
    [
      `{ ${submit}, ${status}, cancel: { path: /x, unbilled: maybe } }`,
      ['error options.cancel.unbilled: must be one of: waiting, always, never.'],
    ],
    [
      `{ ${submit}, ${status}, poll: { min: 1m, max: 5s, per_minute: 0 } }`,
      [
        'error options.poll.min: must not be longer than max.',
        'error options.poll.per_minute: must be a whole number from 1 to 100000.',
      ],
    ],
    [
      `{ ${submit}, ${status}, poll: { min: 5 } }`,
      ['error options.poll.min: must be a duration such as 500ms, 10s or 2m.'],
    ],
    [
      `{ ${submit}, ${status}, credit_price: 0.1 }`,
      ['error options.credit_price: must be a decimal in quotes, such as "0.01".'],
    ],
    [
      `{ ${submit}, ${status}, stauts: {}, units: { seconds: $.n } }`,
      [
        'warning options.stauts: is unknown and has no effect. Did you mean "status"?',
        'warning options.units.seconds: is unknown and has no effect. Did you mean "second"?',
      ],
    ],
  ])('are checked: %s', (options, problems) => {
    expect(problemsWith(options).toSorted()).toEqual(problems.toSorted());
  });

  it.each<[string, string[]]>([
    ['{}', ['error output.files: is required: where the files are, such as $.data.outputs[*].']],
    ['{ files: [$.a, b] }', ['error output.files: must be a path such as $.data.outputs[*].url, or a list of them.']],
    [
      '{ files: $.a, form: gzip, key: 1 }',
      [
        'error output.form: must be one of: base64, hex; links and data URLs need none.',
        'error output.key: must be true or false.',
      ],
    ],
    ['{ file: $.a, files: $.a }', ['warning output.file: is unknown and has no effect. Did you mean "files"?']],
  ])('are checked in output: %s', (output, problems) => {
    expect(problemsWith(`{ ${submit}, ${status} }`, output).toSorted()).toEqual(problems);
  });
});
