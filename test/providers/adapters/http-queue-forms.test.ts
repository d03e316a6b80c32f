import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { writeDataUrl } from '../../../src/lib/data-url.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { http_queue } from '../../../src/providers/adapters/http-queue/adapter.ts';
import { mediaForm, NotStarted, type InputFile, type RunRequest } from '../../../src/providers/provider.ts';
import { prober } from '../../helpers/prober.ts';
import { expectOutcome, runOf, runToEnd } from '../conformance.ts';
import { startImitation, type ReceivedRequest, type Imitation, type Reply } from '../imitations/imitation.ts';
import { partsOf, textsOf } from '../imitations/multipart.ts';
import { configOf, never, secret } from '../upstreams.ts';

/** Bodies, templates and links of a provider without code, against a server that keeps what it was sent. */

let imitation: Imitation;
afterEach(() => imitation.stop());

/** Answers the requests in the order of `replies`. */
async function imitate(...replies: ((url: string, request: ReceivedRequest) => Reply)[]): Promise<void> {
  imitation = await startImitation({
    roleOf: ({ method }) => (method === 'POST' ? 'submit' : 'poll'),
    answer: (request, { url }) => replies.shift()?.(url, request) ?? 'cut',
  });
}

const provider = (more: object = {}) =>
  http_queue.open(configOf('http-queue', `${imitation.url}/v1`, more), { guard: openGuard(), prober });

const run = (options: JsonObject, input: JsonObject, more: Partial<RunRequest> = {}) =>
  runOf({ kind: 'image', model: 'acme/painter', input, options, output: { files: '$.files' }, ...more });

const start = (options: JsonObject, input: JsonObject, more: Partial<RunRequest> = {}) =>
  provider().start(run(options, input, more), never);

/** The request that came first. */
function onlyRequest(): ReceivedRequest {
  const [request] = imitation.requests;
  if (!request) throw new Error('nothing was asked');
  return request;
}

const finished = (): Reply => ({ json: { files: ['https://files.example/a.png'] } });
const [first, second] = [Buffer.from('first file'), Buffer.from('second file')];
const dataUrl = (bytes: Buffer, content_type = 'image/png') => writeDataUrl({ content_type, bytes });

/** A file that comes in pieces, as from the disk. */
const streamed = (bytes: Buffer, content_type = 'audio/mpeg'): InputFile => ({
  content_type,
  size_bytes: bytes.length,
  open: async () => Readable.from([bytes.subarray(0, 3), bytes.subarray(3)]),
});

describe('a form with files', () => {
  const options = { submit: { path: '/images', body_as: 'multipart' } };

  it('has a part for each field, a file with its type and a name, and its length is announced', async () => {
    await imitate(finished);
    const input = { prompt: 'A "bay"\nat night – łódź', n: 2, tiled: false, gone: null, style: { a: 1 } };
    await start(
      options,
      { ...input, image: dataUrl(first), sound: 'file_1' },
      { files: new Map([['file_1', streamed(second)]]) },
    );
    const [request] = imitation.requests;
    expect(request?.headers['content-length']).toBe(String(request?.body.length));
    expect(request?.headers.authorization).toBe(`Bearer ${secret}`);
    expect(textsOf(onlyRequest())).toEqual({ prompt: input.prompt, n: '2', tiled: 'false', style: '{"a":1}' });
    expect(partsOf(onlyRequest()).filter(({ filename }) => filename !== undefined)).toEqual([
      { name: 'image', filename: 'image.png', type: 'image/png', bytes: first },
      { name: 'sound', filename: 'audio.mp3', type: 'audio/mpeg', bytes: second },
    ]);
  });

  it.each([
    [
      'repeat',
      [
        ['tag', 'a'],
        ['tag', 'b'],
        ['image', first],
        ['image', second],
      ],
    ],
    [
      'brackets',
      [
        ['tag[]', 'a'],
        ['tag[]', 'b'],
        ['image[]', first],
        ['image[]', second],
      ],
    ],
  ] as const)('writes lists as its option says: %s', async (lists, expected) => {
    await imitate(finished);
    const input = { tag: ['a', 'b'], image: [dataUrl(first), dataUrl(second)] };
    await start({ submit: { ...options.submit, lists } }, input);
    const parts = partsOf(onlyRequest()).map(({ name, bytes }) => [name, bytes.toString()]);
    expect(parts).toEqual(expected.map(([name, value]) => [name, value.toString()]));
  });

  it('cannot be left by a name or a value', async () => {
    await imitate(finished);
    const value = 'x\r\n--medley-0\r\ncontent-disposition: form-data; name="admin"\r\n\r\n1\r\n--medley-0--';
    await start({ submit: { ...options.submit, body: { 'a"\r\nb': '$input.prompt' } } }, { prompt: value });
    expect(partsOf(onlyRequest())).toMatchObject([{ name: 'a%22%0D%0Ab', bytes: Buffer.from(value) }]);
  });

  it('starts nothing when a file of it cannot be read, or has become another', async () => {
    const broken = [
      { ...streamed(first), open: async () => Promise.reject(new Error('gone')) },
      { ...streamed(first), size_bytes: first.length + 1 },
      { ...streamed(first), size_bytes: first.length - 1 },
    ];
    for (const file of broken) {
      await imitate(finished);
      const error: unknown = await start(options, { image: 'file_1' }, { files: new Map([['file_1', file]]) }).catch(
        (e: unknown) => e,
      );
      expect(error).toBeInstanceOf(NotStarted);
      expect(error).toMatchObject({ reason: 'unavailable', simulated: true });
      await imitation.stop();
    }
    await imitate();
  });

  it('takes streams, or bytes where all of a request is signed, while JSON takes links, too', async () => {
    await imitate();
    const credentials = { kind: 'oauth', token_url: 'https://t.example', client_id: 'a', client_secret: 'b' } as const;
    expect(mediaForm(provider(), options)).toBe('stream');
    expect(mediaForm(provider(), { submit: { path: '/x', body_as: 'file', body: '$input.a' } })).toBe('stream');
    expect(mediaForm(provider({ api_key: undefined, credentials }), options)).toBe('data');
    expect(mediaForm(provider(), { submit: { path: '/x' } })).toBe('either');
  });
});

describe('other bodies', () => {
  it('are one file with its own type, beside fields in the address and in headers', async () => {
    await imitate(finished);
    const submit = {
      path: '/voices/$input.voice/speech',
      query: { language: '$input.language', seed: '$input.seed' },
      headers: { 'x-style': '$input.style' },
      body_as: 'file',
      body: '$input.audio',
    };
    const input = { voice: 'Ada B', language: 'pl&x=1', style: 'calm', audio: 'file_1' };
    await start({ submit }, input, { files: new Map([['file_1', streamed(first)]]) });
    const [request] = imitation.requests;
    expect(request).toMatchObject({ path: '/v1/voices/Ada%20B/speech', query: { language: 'pl&x=1' }, body: first });
    expect(request?.query).not.toHaveProperty('seed');
    expect(request?.headers).toMatchObject({ 'content-type': 'audio/mpeg', 'content-length': '10', 'x-style': 'calm' });
  });

  it('refuse an input without the file, before anything is sent', async () => {
    await imitate();
    const submit = { path: '/speech', body_as: 'file', body: '$input.audio' };
    for (const input of [{ audio: 'not a file' }, { audio: 7 }])
      await expectOutcome(start({ submit }, input), { refused: 'invalid_request', message: /no file/ });
    expect(imitation.requests).toEqual([]);
  });

  it('are a form of texts', async () => {
    await imitate(finished);
    const body = { text: '$input.prompt', tag: '$input.tags', none: '$input.none', note: 'by $model & co' };
    await start({ submit: { path: '/x', body_as: 'form', body } }, { prompt: 'a&b=ł', tags: ['1', '2'] });
    const [request] = imitation.requests;
    expect(request?.headers['content-type']).toBe('application/x-www-form-urlencoded');
    expect([...new URLSearchParams(request?.body.toString())]).toEqual([
      ['text', 'a&b=ł'],
      ['tag', '1'],
      ['tag', '2'],
      ['note', 'by acme/painter & co'],
    ]);
  });

  it('fill in fields within a text, and read no template in a value', async () => {
    await imitate(finished);
    const body = {
      text: '$input.prompt --ar $input.ratio',
      plain: '$input.prompt',
      odd: '$input.odd name',
      half: '$input.prompt $input.gone',
    };
    await start({ submit: { path: '/x', body } }, { prompt: '$model $$ $input.ratio', ratio: '16:9', 'odd name': [1] });
    expect(imitation.requests[0]?.json).toEqual({
      text: '$model $$ $input.ratio --ar 16:9',
      plain: '$model $$ $input.ratio',
      odd: [1],
    });
  });
});

describe('a field of the input in an address', () => {
  const options = { submit: { path: '/voices/$input.voice/x' } };

  it.each(['..', '.', '', 'a'.repeat(1_001), 'ł'.repeat(400)])(
    'is refused where it would lead elsewhere: %s',
    async (voice) => {
      await imitate();
      await expectOutcome(start(options, { voice }), { refused: 'invalid_request', message: /^input\.voice/ });
      expect(imitation.requests).toEqual([]);
    },
  );

  it.each([
    ['../../admin', '..%2F..%2Fadmin'],
    ['a/b?c=1#d', 'a%2Fb%3Fc%3D1%23d'],
    ['@evil.example', '%40evil.example'],
    ['\\\\evil.example', '%5C%5Cevil.example'],
    ['%2e%2e', '%252e%252e'],
    ['\ud800', '%EF%BF%BD'],
    ['a\r\nb', 'a%0D%0Ab'],
  ])('stays one part of the path: %j', async (voice, part) => {
    await imitate(finished);
    await start(options, { voice });
    expect(imitation.requests[0]?.path).toBe(`/v1/voices/${part}/x`);
  });

  it('that is missing starts nothing, also where only a later call needs it', async () => {
    await imitate();
    await expectOutcome(start(options, {}), { not_started: 'refused' });
    const status = { path: '/r/$input.region/$id', state: '$.s', done: ['d'], failed: ['f'] };
    const later = { submit: { path: '/x', id: '$.id' }, status };
    await expectOutcome(start(later, {}), { not_started: 'refused' });
    await expectOutcome(start(later, { region: '..' }), { refused: 'invalid_request' });
    await expectOutcome(start(later, { region: 'x'.repeat(5_000) }), { refused: 'invalid_request' });
    expect(imitation.requests).toEqual([]);
  });

  it.each(['a\r\nx-admin: 1', 'ł', '\0'])('is refused in a header that cannot hold it: %j', async (style) => {
    await imitate();
    const submit = { path: '/x', headers: { 'x-style': '$input.style' } };
    await expectOutcome(start({ submit }, { style }), { refused: 'invalid_request', message: /printable ASCII/ });
    expect(imitation.requests).toEqual([]);
  });
});

describe('a run', () => {
  const status = { path: '/runs/$input.region/$id/$saved.token', state: '$.state', done: ['done'], failed: ['failed'] };
  const submit = { path: '/runs', id: '$.id', state: '$.state', save: { token: '$.auth.token', n: '$.n' } };
  const options = {
    submit,
    status,
    result: { path: '/results/$id', query: { n: '$saved.n' } },
    cancel: { method: 'DELETE', path: '/runs/$input.region/$id' },
  };

  it('is asked for with fields of its input and values of the answer to its submit', async () => {
    await imitate(
      () => ({ json: { id: 'r/1', state: 'new', auth: { token: 't?1' }, n: 7 } }),
      () => ({ json: { state: 'busy' } }),
      () => ({ json: { state: 'done' } }),
      finished,
      () => ({ json: {} }),
    );
    const request = run(options, { region: 'eu', prompt: 'long' });
    const first_state = await provider().start(request, never);
    if (!('ref' in first_state)) throw new Error('it is over');
    expect(first_state.ref).toEqual({
      id: 'r/1',
      started_at_ms: request.now_ms,
      saved: { token: 't?1', n: 7 },
      inputs: { region: 'eu' },
    });
    const { input: _, ...context } = request;
    const second_state = await provider().poll(context, first_state.ref, never);
    if (!('ref' in second_state)) throw new Error('it is over');
    expect(await provider().poll(context, second_state.ref, never)).toMatchObject({ phase: 'done' });
    await provider().cancel?.({ ...context, is_given_up: true }, second_state.ref, never);
    expect(imitation.requests.map(({ method, path, query }) => `${method} ${path} ${JSON.stringify(query)}`)).toEqual([
      'POST /v1/runs {}',
      'GET /v1/runs/eu/r%2F1/t%3F1 {}',
      'GET /v1/runs/eu/r%2F1/t%3F1 {}',
      'GET /v1/results/r%2F1 {"n":"7"}',
      'DELETE /v1/runs/eu/r%2F1 {}',
    ]);
  });

  it('that is finished at once is not polled, and one that failed at once has failed', async () => {
    const answers: Reply[] = [
      { json: { id: 'a', state: 'done', files: ['https://files.example/a.png'] } },
      { json: { id: 'a', state: 'failed', why: 'flagged' } },
      { json: { id: 'a', state: 'queued' } },
      { json: { state: 'queued' } },
    ];
    await imitate(...answers.map((answer) => () => answer));
    const at_once = {
      submit: { path: '/runs', id: '$.id', state: '$.state' },
      status: { path: '/runs/$id', state: '$.state', done: ['done'], failed: ['failed'], message: '$.why' },
      errors: { moderation: ['flagged'] },
    };
    expect(await start(at_once, {})).toMatchObject({ phase: 'done', files: [{ url: 'https://files.example/a.png' }] });
    await expectOutcome(start(at_once, {}), { phase: 'failed', type: 'content_policy_violation' });
    await expectOutcome(start(at_once, {}), { phase: 'waiting' });
    await expectOutcome(start(at_once, {}), 'unknown');
  });

  it('goes on by the status of HTTP, and ends with the bytes of its file and a cost in a header', async () => {
    await imitate(
      () => ({ json: { id: 'a' } }),
      () => ({ status: 202, json: { id: 'a', note: 'in progress' }, headers: { 'retry-after': '40' } }),
      () => ({ bytes: first, headers: { 'content-type': 'image/png', 'x-credits': '4.5' } }),
    );
    const by_http = {
      submit: { path: '/runs', id: '$.id' },
      status: { path: '/results/$id', state: '$http_status', running: [202], done: [200] },
      cost: { credits: '$headers.X-Credits' },
      credit_price: '0.01',
    };
    const request = run(by_http, {});
    const started = await provider().start(request, never);
    if (!('ref' in started)) throw new Error('it is over');
    const running = await provider().poll(request, started.ref, never);
    expect(running).toMatchObject({ phase: 'running', poll_after_ms: 40_000 });
    if (!('ref' in running)) throw new Error('it is over');
    expect(await provider().poll(request, running.ref, never)).toEqual({
      phase: 'done',
      files: [{ bytes: first }],
      upstream_cost: { amount: '0.045', currency: 'USD' },
    });
  });

  it('that nobody knows is lost after two minutes, by a word of its state or of an error', async () => {
    const words: Reply[] = [
      { json: { state: 'UNKNOWN' } },
      { status: 400, json: { state: '', error: { code: 'NoSuchRun' } } },
    ];
    for (const word of words) {
      await imitate(
        () => ({ json: { id: 'a' } }),
        () => word,
        () => word,
      );
      const named = {
        submit: { path: '/runs', id: '$.id' },
        status: { path: '/runs/$id', state: '$.state', done: ['done'], failed: ['failed'], unknown: ['unknown'] },
        errors: { code: '$.error.code', unknown: ['nosuchrun'] },
      };
      const request = run(named, {});
      const started = await provider().start(request, never);
      if (!('ref' in started)) throw new Error('it is over');
      const missing = await provider().poll(request, started.ref, never);
      expect(missing).toMatchObject({ phase: 'waiting', ref: { missing_since_ms: request.now_ms } });
      if (!('ref' in missing)) throw new Error('it is over');
      const late = { ...request, now_ms: request.now_ms + 120_000 };
      expect(await provider().poll(late, missing.ref, never)).toMatchObject({
        phase: 'failed',
        type: 'upstream_error',
      });
      await imitation.stop();
    }
    await imitate();
  });
});

describe('an answer', () => {
  it('that has its reason beside the bytes of a file is refused by it', async () => {
    const headers = { 'content-type': 'image/png', 'finish-reason': 'CONTENT_FILTERED' };
    await imitate(() => ({ bytes: first, headers }));
    const errors = { code: '$headers.finish-reason', ok: ['success'], moderation: ['content_filtered'] };
    await expectOutcome(start({ submit: { path: '/x' }, errors }, {}), { refused: 'content_policy_violation' });
  });

  it('with a reason for each file is refused only if all files are', async () => {
    const errors = { code: '$.data[*].safe', ok: [true], moderation: [false] };
    const answer = (...safe: boolean[]): Reply => ({
      json: { data: safe.map((is_safe, at) => ({ safe: is_safe, url: is_safe ? `https://f.example/${at}` : null })) },
    });
    await imitate(
      () => answer(false, true),
      () => answer(false, false),
    );
    const output = { files: '$.data[*].url' };
    expect(await start({ submit: { path: '/x' }, errors }, {}, { output })).toMatchObject({
      files: [{ url: 'https://f.example/1' }],
    });
    await expectOutcome(start({ submit: { path: '/x' }, errors }, {}, { output }), {
      refused: 'content_policy_violation',
    });
  });

  it('may say in its body how long to wait', async () => {
    await imitate(() => ({ status: 429, json: { retry_in: 12.5 } }));
    const errors = { retry_after: '$.retry_in' };
    await expectOutcome(start({ submit: { path: '/x' }, errors }, {}), {
      not_started: 'rate_limited',
      retry_after_ms: 12_500,
    });
  });
});

describe('a link that is made from an answer', () => {
  const options = {
    submit: { path: '/runs', id: '$.id', save: { space: '$.space' } },
    status: { path: '/runs/$id', state: '$.state', done: ['done'], failed: ['failed'] },
  };
  const linksOf = async (output: JsonObject, answer: JsonObject, more: object = {}) => {
    await imitate(
      () => ({ json: { id: 'r 1', space: 's' } }),
      () => ({ json: { state: 'done', ...answer } }),
    );
    const end = await runToEnd(provider(more), run(options, {}, { output }));
    return 'files' in end ? end.files : end;
  };

  it('is below the address of the provider, with the key where that is wanted', async () => {
    const output = { files: '$.ids[*]', link: '/files/$id/$file/content', key: true };
    const files = await linksOf(output, { ids: ['f?1', 2] });
    const credentials = { origin: imitation.url, headers: { authorization: `Bearer ${secret}` } };
    expect(files).toEqual([
      { url: `${imitation.url}/v1/files/r%201/f%3F1/content`, credentials },
      { url: `${imitation.url}/v1/files/r%201/2/content`, credentials },
    ]);
  });

  it('wants the headers and the query of the provider, too', async () => {
    const output = { files: '$.ids[*]', link: '/files/$file', key: true };
    const more = { headers: { 'x-tenant': 'a' }, query: { 'api-version': '1' } };
    const files = await linksOf(output, { ids: ['f'] }, more);
    const headers = { authorization: `Bearer ${secret}`, 'x-tenant': 'a' };
    const url = `${imitation.url}/v1/files/f?api-version=1`;
    expect(files).toEqual([{ url, credentials: { origin: imitation.url, headers } }]);
  });

  it('is made of several members, at a host that no answer can change', async () => {
    const output = { files: '$.images[*]', link: 'https://$saved.space.example/view?name=$file.name' };
    await imitate();
    await expectOutcome(start(options, {}, { output }), { not_started: 'refused' });
    await imitation.stop();
    const link = 'https://cdn.example/$saved.space/$file.folder/$file.name?type=$file.type';
    const images = [
      { name: 'a b.png', folder: 'x/y', type: 'out&put' },
      { name: 'b.png', folder: '../..', type: 'output' },
      { name: 'c.png', type: 'output' },
      { name: '@evil.example/c.png', folder: 'z', type: 't' },
    ];
    expect(await linksOf({ files: '$.images[*]', link }, { images })).toEqual([
      { url: 'https://cdn.example/s/x/y/a%20b.png?type=out%26put' },
      { url: 'https://cdn.example/s/z/%40evil.example/c.png?type=t' },
    ]);
  });
});

describe('files that are handed over before the submit', () => {
  const options = {
    upload: { path: '/upload', value: '$.upload_url' },
    submit: { path: '/transcript', body: { audio_url: '$input.audio', more: '$input.more' } },
  };
  const uploadAddress = (name: string): Reply => ({ json: { upload_url: `https://cdn.example/${name}` } });

  it('are sent once each, and what the provider gives for them is in the submit', async () => {
    await imitate(
      () => uploadAddress('1'),
      () => uploadAddress('2'),
      finished,
    );
    const input = { audio: 'file_1', more: [dataUrl(second), 'file_1', 'https://c.example/x', 3] };
    await start(options, input, { files: new Map([['file_1', streamed(first)]]) });
    expect(
      imitation.requests.map(({ path, headers, body }) => [path, headers['content-type'], body.toString()]),
    ).toEqual([
      ['/v1/upload', 'audio/mpeg', 'first file'],
      ['/v1/upload', 'image/png', 'second file'],
      ['/v1/transcript', 'application/json', expect.any(String)],
    ]);
    const [one, two] = ['https://cdn.example/1', 'https://cdn.example/2'];
    expect(imitation.requests[2]?.json).toEqual({ audio_url: one, more: [two, one, 'https://c.example/x', 3] });
  });

  it('may be fields of a form', async () => {
    await imitate(() => uploadAddress('1'), finished);
    const body = { file: '$file', purpose: '$model' };
    await start({ ...options, upload: { ...options.upload, body } }, { audio: dataUrl(first) });
    expect(partsOf(onlyRequest())).toMatchObject([
      { name: 'file', filename: 'image.png', bytes: first },
      { name: 'purpose', bytes: Buffer.from('acme/painter') },
    ]);
  });

  it.each<[string, Reply, Parameters<typeof expectOutcome>[1]]>([
    ['is too large', { status: 413, json: {} }, { refused: 'invalid_request' }],
    [
      'meets a full provider',
      { status: 429, headers: { 'retry-after': '3' }, json: {} },
      { not_started: 'rate_limited', retry_after_ms: 3_000 },
    ],
    ['meets a broken gateway', { status: 502, json: {} }, { not_started: 'unavailable' }],
    ['is lost', 'cut', { not_started: 'unavailable' }],
    ['is answered with a page', { text: '<h1>no</h1>' }, { not_started: 'unavailable' }],
    ['is answered with nothing', { json: {} }, { not_started: 'unavailable' }],
  ])('start nothing when one of them %s', async (_, reply, expected) => {
    await imitate(() => reply);
    await expectOutcome(start(options, { audio: dataUrl(first) }), expected);
    expect(imitation.requests).toHaveLength(1);
  });
});
