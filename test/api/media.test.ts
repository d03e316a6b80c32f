import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setAccountStatus } from '../../src/accounts/accounts.ts';
import { newId } from '../../src/lib/ids.ts';
import { writeDataUrl } from '../../src/lib/data-url.ts';
import { removeFiles } from '../../src/tasks/files.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel, required_audio } from '../helpers/catalog.ts';
import { testClock } from '../helpers/clock.ts';
import { makeMediaTaker, type MediaTaker } from '../helpers/media-taker.ts';
import { mp4, sampleImage, wav } from '../storage/samples.ts';

const yaml = `
version: 1
${limits({ generate_per_minute: 60, failed_per_24h: 1 })}
files: { file_mb_max: 1 }
providers: { takes: { adapter: takes }, writes: { adapter: writes } }
models:
  - id: test/film
    kind: video
    input_schema:
      type: object
      required: [prompt]
      properties:
        prompt: { type: string, maxLength: 20 }
        first_image: { type: string, x-media: image }
        aspect_ratio: { enum: ["16:9"] }
        resolution: { enum: [480p, 720p] }
    price: [{ unit: request, amount: "0.05" }]
    routes: [{ provider: takes, upstream_model: a }]${mediaModel({
      id: 'test/writes',
      kind: 'audio',
      schema: required_audio,
      price: ['{ unit: minute, amount: "0.60" }'],
      more: ['output_types: [text]', 'estimate: { second: $media.audio.duration }'],
      routes: ['{ provider: writes, upstream_model: a }'],
    })}
`;

const clock = testClock();
let service: TestApp;
let client: Client;
let takes: MediaTaker;
let writes: MediaTaker;
let video_bytes: Buffer;

beforeAll(async () => {
  video_bytes = await mp4(64, 48, 10);
  takes = makeMediaTaker('data', { bytes: video_bytes });
  writes = makeMediaTaker('data', { text: 'word '.repeat(20_000), content_type: 'text/plain' });
  service = await startTestApp({ yaml, clock, adapters: { takes: takes.adapter, writes: writes.adapter } });
});
afterAll(() => service?.stop());
beforeEach(async () => {
  client = await service.client();
});
afterEach(() => expectExactBooks(service.app));

const image = (prompt: string, more: object = {}) => ({ model: 'sandbox/image', prompt, size: '32x16', ...more });
const generate = (body: object, headers: Record<string, string> = {}, query = '') =>
  client.call('POST', `/v1/images/generations${query}`, body, headers);

type Part = string | { bytes: Buffer; name?: string };

async function send(path: string, parts: [string, Part][], headers: Record<string, string> = {}, key = client.key) {
  const body = new FormData();
  for (const [name, part] of parts) {
    if (typeof part === 'string') body.append(name, part);
    else body.append(name, new Blob([new Uint8Array(part.bytes)]), part.name ?? 'a.bin');
  }
  const response = await fetch(service.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, ...headers },
    body,
  });
  const text = await response.text();
  const is_json = response.headers.get('content-type')?.startsWith('application/json');
  return { status: response.status, headers: response.headers, text, json: is_json ? JSON.parse(text) : {} };
}

const spent = async () => (await client.call('GET', '/v1/key')).json.spent.exact;
const tasks = async () => (await client.call('GET', '/v1/tasks')).json.data;

describe('a media call', () => {
  it('that does not finish in time gets a 504 that names its task and says not to retry, and the task goes on', async () => {
    clock.stop(clock.now()); // so long does the task run
    const answer = await generate(image('x [[delay 2s]]'), {}, '?wait=1');
    const task_id = answer.headers.get('x-task-id') ?? '';
    expect(answer).toMatchObject({ status: 504, json: { error: { type: 'timeout', param: null, code: null } } });
    expect(answer.json.error.message).toContain(`GET /v1/tasks/${task_id}`);
    expect(answer.headers.get('x-should-retry')).toBe('false');
    clock.run(Date.now() + 2_000);
    await expect
      .poll(async () => (await client.call('GET', `/v1/tasks/${task_id}`)).json.status, { timeout: 120_000 })
      .toBe('succeeded');
    expect(await spent()).toBe('0.010000');
  });

  it('whose connection is dropped does not cancel its task', async () => {
    clock.stop(clock.now()); // so long does the task run
    const gone = new AbortController();
    const call = fetch(`${service.url}/v1/images/generations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(image('x [[delay 2s]]')),
      signal: gone.signal,
    });
    await expect
      .poll(async () => (await tasks()).map(({ status }) => status), { timeout: 120_000 })
      .toEqual(['running']);
    gone.abort();
    await expect(call).rejects.toThrow('aborted');
    clock.run(Date.now() + 2_000);
    await expect.poll(async () => (await tasks())[0]?.status).toBe('succeeded');
  });

  it('takes whole seconds as wait, which is checked before a task exists', async () => {
    const answer = await generate(image('x'), {}, '?wait=soon');
    expect(answer).toMatchObject({ status: 400, json: { error: { param: 'wait' } } });
    expect(await tasks()).toEqual([]);
  });
});

describe('Idempotency-Key', () => {
  it('returns the same task for the same body and 422 for another one', async () => {
    const headers = { 'idempotency-key': newId('req') };
    const [first, second] = [await generate(image('x'), headers), await generate(image('x'), headers)];
    expect(first.headers.get('idempotency-replayed')).toBe('false');
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expect(second.headers.get('x-task-id')).toBe(first.headers.get('x-task-id'));
    expect(second.headers.get('x-cost-amount')).toBe('0.010000');
    expect(second.status).toBe(200);
    expect(await generate(image('y'), headers)).toMatchObject({ status: 422 });
    expect(await spent()).toBe('0.010000');
  });

  it('includes the files of a form and the path', async () => {
    const headers = { 'idempotency-key': newId('req') };
    const [one, two] = [await sampleImage('png', 20, 20), await sampleImage('png', 20, 20)];
    const edit = (bytes: Buffer) => {
      const parts: [string, Part][] = [
        ['model', 'sandbox/edit'],
        ['prompt', 'x'],
        ['size', '32x16'],
        ['image', { bytes }],
      ];
      return send('/v1/images/edits', parts, headers);
    };
    const first = await edit(one);
    expect(first.status).toBe(200);
    expect((await edit(one)).headers.get('x-task-id')).toBe(first.headers.get('x-task-id'));
    expect((await edit(two)).status).toBe(422);
    expect((await generate(image('x'), headers)).status).toBe(422);
    expect(await spent()).toBe('0.010000');
  });
});

describe('a media call shares the limits of POST /v1/generate', () => {
  it('with its 60 requests a minute', async () => {
    const body = { model: 'nobody/none', input: {} };
    const paths = ['/v1/generate', '/v1/images/generations', '/v1/videos', '/v1/audio/speech'];
    const calls = Array.from({ length: 60 }, (_, index) => client.call('POST', paths[index % 4] ?? '', body));
    expect(new Set((await Promise.all(calls)).map(({ status }) => status))).toEqual(new Set([404]));
    for (const path of paths) {
      expect(await client.call('POST', path, body), path).toMatchObject({
        status: 429,
        json: { error: { type: 'rate_limit' } },
      });
    }
    expect((await client.call('GET', '/v1/videos')).status).toBe(200);
  });

  it('with the pause after failures, which a retry does not end', async () => {
    expect((await generate(image('x [[fail]]'))).status).toBe(502);
    const paused = await generate(image('x'));
    expect(paused).toMatchObject({ status: 429, json: { error: { type: 'rate_limit_error' } } });
    expect(paused.headers.get('x-should-retry')).toBe('false');
    expect(Number(paused.headers.get('retry-after'))).toBeGreaterThan(80_000);
  });

  it('with the limit of the key, the balance and the block of the account', async () => {
    client = await service.client({ limit: '0.005' });
    expect(await generate(image('x'))).toMatchObject({ status: 403, json: { error: { code: 'monthly_limit' } } });
    client = await service.client({ credit: '0.005' });
    expect(await generate(image('x'))).toMatchObject({
      status: 402,
      json: { error: { type: 'insufficient_balance' } },
    });
    client = await service.client();
    await setAccountStatus(service.app.db, client.account_id, 'blocked');
    expect(await generate(image('x'))).toMatchObject({ status: 403, json: { error: { code: 'account_blocked' } } });
  });
});

describe('a media call', () => {
  it.each([
    ['/v1/images/generations', { prompt: 'x' }, 400, 'model'],
    ['/v1/images/generations', { model: 7 }, 400, 'model'],
    ['/v1/images/generations', { model: 'sandbox/image' }, 400, 'prompt'],
    ['/v1/images/generations', image('x', { size: '32x9000' }), 400, 'size'],
    ['/v1/images/generations', image('x', { n: 'two' }), 400, 'n'],
    ['/v1/images/generations', image('x', { n: 9 }), 400, 'n'],
    ['/v1/images/generations', image('x', { response_format: 'png' }), 400, 'response_format'],
    ['/v1/images/generations', image('x', { metadata: { a: 1 } }), 400, 'metadata'],
    ['/v1/images/generations', image('x', { webhook_url: 'http://127.0.0.1/' }), 400, 'webhook_url'],
    ['/v1/images/generations', image('x', { model: 'sandbox/video' }), 404, 'model'],
    ['/v1/images/generations', image('x', { model: 'sandbox/embedding' }), 404, 'model'],
    ['/v1/images/edits', { model: 'sandbox/edit', prompt: 'x' }, 400, 'image'],
    ['/v1/images/edits', { model: 'sandbox/edit', prompt: 'x', images: [{ image_url: 'no link' }] }, 400, 'images'],
    ['/v1/images/edits', { model: 'sandbox/image', prompt: 'x', images: [{ file_id: 'f' }] }, 400, 'images'],
    ['/v1/audio/speech', { model: 'sandbox/audio' }, 400, 'input'],
    ['/v1/audio/speech', { model: 'sandbox/audio', input: 'x'.repeat(5_000) }, 400, 'input'],
    ['/v1/audio/speech', { model: 'sandbox/transcript', input: 'x' }, 404, 'model'],
    ['/v1/videos', { model: 'test/film', prompt: 'x'.repeat(30) }, 400, 'prompt'],
    ['/v1/videos', { model: 'test/film', prompt: 'x', size: '512x512' }, 400, 'size'],
    ['/v1/videos', { model: 'sandbox/video', prompt: 'x', seconds: '11' }, 400, 'seconds'],
    ['/v1/videos', { model: 'sandbox/image', prompt: 'x' }, 404, 'model'],
  ])('to %s with %j gets %i and names %s', async (path, body, status, param) => {
    const answer = await client.call('POST', path, body);
    expect(answer).toMatchObject({ status, json: { error: { param } } });
    expect(Object.keys(answer.json.error).toSorted()).toEqual(['code', 'message', 'param', 'request_id', 'type']);
    expect(answer.json.error.message).not.toContain('input.');
    expect(await tasks()).toEqual([]);
  });

  it('gets errors that use the name of its parameter', async () => {
    const { json } = await generate(image('x', { size: '32x9000' }));
    expect(json.error.message).toBe('size (height) must be at most 2048 (got 9000).');
  });

  it('gets 502 when no route starts', async () => {
    const answer = await generate(image('x', { model: 'sandbox/down' }));
    expect(answer).toMatchObject({ status: 502, json: { error: { type: 'upstream_error' } } });
    expect(answer.json.error.message).toContain(answer.headers.get('x-task-id'));
    expect(await spent()).toBe('0.000000');
  });

  it('gets 409 when its task is canceled meanwhile', async () => {
    const call = generate(image('x [[delay 60s]]'));
    await expect.poll(async () => (await tasks())[0]?.status).toBe('running');
    const [task] = await tasks();
    await expect.poll(async () => (await client.call('POST', `/v1/tasks/${task?.id}/cancel`)).status).toBe(200);
    expect(await call).toMatchObject({ status: 409, json: { error: { code: 'canceled' } } });
  });

  it('gets an error for a body that is neither JSON nor a form', async () => {
    const prompt: [string, Part][] = [['prompt', 'x']];
    expect(await send('/v1/images/generations', prompt)).toMatchObject({ status: 415 });
    expect(await client.call('POST', '/v1/audio/transcriptions', {})).toMatchObject({ status: 415 });
    const headers = { 'content-type': 'text/plain' };
    expect(await client.call('POST', '/v1/images/edits', 'x', headers)).toMatchObject({ status: 415 });
  });

  it('to another path of the family gets errors of the same form', async () => {
    for (const path of ['/v1/images/inpaintings', '/v1/audio/voices', '/v1/videos/a/b']) {
      const { status, json } = await client.call('POST', path, {});
      expect(status).toBe(404);
      expect(json.error).toHaveProperty('param', null);
    }
    expect(await client.call('PUT', '/v1/videos', {})).toMatchObject({ status: 405 });
  });
});

describe('a media file', () => {
  it('of a form must be of the type of its parameter, complete and not too large', async () => {
    const write = (bytes: Buffer) =>
      send('/v1/audio/transcriptions', [
        ['model', 'sandbox/transcript'],
        ['file', { bytes }],
      ]);
    expect(await write(await sampleImage('png', 8, 8))).toMatchObject({
      status: 400,
      json: { error: { param: 'file' } },
    });
    expect(await write(Buffer.from('no sound'))).toMatchObject({ status: 400, json: { error: { param: 'file' } } });
    expect(await write(wav(70))).toMatchObject({ status: 413 });
    expect(await send('/v1/audio/transcriptions', [['model', 'sandbox/transcript']])).toMatchObject({
      status: 400,
      json: { error: { param: 'file' } },
    });
    expect(await tasks()).toEqual([]);
  });

  it('in JSON may be a data URL, a link or an upload, and is deleted with its task', async () => {
    const bytes = await sampleImage('png', 20, 20);
    const uploaded = await send('/v1/files', [['file', { bytes, name: 'a.png' }]]);
    const image_url = writeDataUrl({ content_type: 'image/png', bytes });
    const body = { model: 'sandbox/edit', prompt: 'x', size: '32x16' };
    const bodies = [{ images: [{ image_url }] }, { images: [{ file_id: uploaded.json.id }] }, { image: image_url }];
    for (const more of bodies) {
      const answer = await client.call('POST', '/v1/images/edits', { ...body, ...more });
      expect(answer.status, answer.text.slice(0, 300)).toBe(200);
    }
    const files = () => service.app.db.query('select id from files where account_id = $1', [client.account_id]);
    await expect.poll(files).toEqual([{ id: uploaded.json.id }]);
  });

  it("with directives in its hint controls the sandbox's transcript", async () => {
    const write = (prompt: string) =>
      send('/v1/audio/transcriptions', [
        ['model', 'sandbox/transcript'],
        ['file', { bytes: wav(1) }],
        ['prompt', prompt],
      ]);
    expect((await write('[[delay 10ms]]')).json).toMatchObject({ text: 'A recording of 1 seconds.' });
    expect(await write('Hello [[moderate]]')).toMatchObject({
      status: 400,
      json: { error: { code: 'content_policy_violation' } },
    });
    expect(await spent()).toBe('0.000100');
  });

  it('with a transcript that is too long for its task gets the whole text', async () => {
    const parts: [string, Part][] = [
      ['model', 'test/writes'],
      ['file', { bytes: wav(6) }],
    ];
    const answer = await send('/v1/audio/transcriptions', parts);
    expect(answer.json.text).toHaveLength(100_000);
    expect(answer.headers.get('x-cost-amount')).toBe('0.060000');
    const text = await send('/v1/audio/transcriptions', [...parts, ['response_format', 'text']]);
    expect(text.text).toBe(answer.json.text);
    expect(text.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  });
});

describe('a video', () => {
  const create = (body: object) => client.call('POST', '/v1/videos', body);
  const finished = async (id: string) => {
    await expect
      .poll(async () => (await client.call('GET', `/v1/videos/${id}`)).json.status, { timeout: 120_000 })
      .toBe('completed');
    return id;
  };

  it('begins with an image from a form, a link or an upload', async () => {
    const bytes = await sampleImage('png', 20, 20);
    const link = writeDataUrl({ content_type: 'image/png', bytes });
    const fields: [string, Part][] = [
      ['model', 'test/film'],
      ['prompt', 'x'],
      ['size', '1280x720'],
    ];
    const begun = [
      await send('/v1/videos', [...fields, ['input_reference', { bytes }]]),
      await send('/v1/videos', [...fields, ['input_reference[image_url]', link]]),
      await create({ model: 'test/film', prompt: 'x', size: '1280x720', input_reference: { image_url: link } }),
    ];
    for (const { json } of begun) {
      expect(json).toMatchObject({ status: 'queued', prompt: 'x', size: '1280x720', seconds: '' });
      await finished(json.id);
      const run = takes.runs.find(({ task_id }) => task_id === json.id);
      expect(run?.input).toEqual({ prompt: 'x', aspect_ratio: '16:9', resolution: '720p', first_image: link });
    }
    expect(await spent()).toBe('0.150000');
  });

  it('carries metadata and a webhook like a task, and is measured when it is completed', async () => {
    const { json } = await create({ model: 'test/film', prompt: 'x', metadata: { a: 'b' } });
    await finished(json.id);
    expect((await client.call('GET', `/v1/tasks/${json.id}`)).json.metadata).toEqual({ a: 'b' });
    expect((await client.call('GET', `/v1/videos/${json.id}`)).json).toMatchObject({ size: '64x48', progress: 100 });
  });

  it('is downloaded in ranges, too, and only as a video', async () => {
    const id = await finished((await create({ model: 'test/film', prompt: 'x' })).json.id);
    const content = (headers: Record<string, string>, query = '') =>
      fetch(`${service.url}/v1/videos/${id}/content${query}`, { headers: { 'x-api-key': client.key, ...headers } });
    const part = await content({ range: 'bytes=4-7' });
    expect([part.status, await part.text()]).toEqual([206, 'ftyp']);
    expect(part.headers.get('cache-control')).toBe('no-store');
    expect(Buffer.from(await (await content({})).arrayBuffer()).equals(video_bytes)).toBe(true);
    expect((await content({}, '?variant=thumbnail')).status).toBe(400);
  });

  it('that is not completed has no content and cannot be deleted', async () => {
    const { id } = (await create({ model: 'sandbox/video', prompt: 'x [[delay 60s]]', seconds: '1' })).json;
    expect(await client.call('GET', `/v1/videos/${id}/content`)).toMatchObject({ status: 409 });
    expect(await client.call('DELETE', `/v1/videos/${id}`)).toMatchObject({ status: 409 });
    await expect
      .poll(async () => (await client.call('GET', `/v1/videos/${id}`)).json.status, { timeout: 120_000 })
      .toBe('in_progress');
    await expect.poll(async () => (await client.call('POST', `/v1/tasks/${id}/cancel`)).status).toBe(200);
    expect((await client.call('GET', `/v1/videos/${id}`)).json).toMatchObject({
      status: 'failed',
      error: { code: 'canceled' },
    });
    expect(await client.call('DELETE', `/v1/videos/${id}`)).toMatchObject({ status: 200, json: { id } });
    expect(await client.call('GET', `/v1/videos/${id}`)).toMatchObject({ status: 404 });
  });

  it('is visible to its account for as long as its file is stored', async () => {
    const id = await finished((await create({ model: 'test/film', prompt: 'x' })).json.id);
    const other = await service.client();
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/content'],
      ['DELETE', ''],
    ] as const) {
      expect(await other.call(method, `/v1/videos/${id}${path}`)).toMatchObject({
        status: 404,
        json: { error: { param: 'id' } },
      });
    }
    expect((await other.call('GET', '/v1/videos')).json.data).toEqual([]);
    const task_id = (await generate(image('x'))).headers.get('x-task-id');
    expect(await client.call('GET', `/v1/videos/${task_id}`)).toMatchObject({ status: 404 });
    expect((await client.call('GET', '/v1/videos')).json.data.map((video) => video.id)).toEqual([id]);
    await removeFiles(service.app, { account_id: client.account_id, id });
    expect(await client.call('GET', `/v1/videos/${id}`)).toMatchObject({ status: 404 });
  });

  it('is listed page by page', async () => {
    const ids: string[] = [];
    for (const prompt of ['a', 'b', 'c']) ids.push((await create({ model: 'test/film', prompt })).json.id);
    const page = async (query: string) => {
      const { json } = await client.call('GET', `/v1/videos?${query}`);
      return [json.data.map(({ id }) => ids.indexOf(id)), json.has_more, json.last_id];
    };
    expect(await page('limit=2')).toEqual([[2, 1], true, ids[1]]);
    expect(await page(`limit=2&after=${ids[1]}`)).toEqual([[0], false, ids[0]]);
    expect(await page(`order=asc&after=${ids[0]}`)).toEqual([[1, 2], false, ids[2]]);
    for (const query of ['limit=0', 'order=up', 'after=x']) {
      expect((await client.call('GET', `/v1/videos?${query}`)).status, query).toBe(400);
    }
    for (const id of ids) await finished(id);
  });
});
