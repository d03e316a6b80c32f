import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readDataUrl, writeDataUrl } from '../../src/lib/data-url.ts';
import { newId } from '../../src/lib/ids.ts';
import type { RunState } from '../../src/providers/provider.ts';
import { startWorker } from '../../src/worker.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { makeMediaTaker, type MediaTaker } from '../helpers/media-taker.ts';
import { sampleImage, wav } from '../storage/samples.ts';

const schema = `
    input_schema:
      type: object
      required: [prompt]
      properties:
        prompt: { type: string }
        image: { type: string, x-media: image }
        clips: { type: array, maxItems: 100, items: { type: string, x-media: audio } }`;

const model = (id: string, providers: string[], route = '') => `
  - id: test/${id}
    kind: image${schema}
    price: [{ unit: image, amount: "0.03" }]
    routes: [${providers.map((provider) => `{ provider: ${provider}, upstream_model: a${route} }`).join(', ')}]`;

const yaml = `
version: 1
${limits()}
files: { file_mb_max: 40 }
providers:
  data: { adapter: data }
  small: { adapter: data, max_active: 1 }
  link: { adapter: link, allow_private: true }
  far: { adapter: link }
  either: { adapter: either, allow_private: true }
models: ${model('data', ['data'])} ${model('link', ['link'])} ${model('far', ['far'])} ${model('either', ['either'])} ${model('small', ['small'])}
  ${model('failover', ['far', 'data'])} ${model('mapped', ['data'], ', input: { text: $input.prompt, refs: [{ uri: $input.image }], mode: x }')}
`;

type Names = 'data' | 'link' | 'either';

let png: Buffer;
let audio: Buffer;
let service: TestApp;
let client: Client;
let takers: Record<Names, MediaTaker>;
let site: { server: Server; url: string; requests: string[] };

beforeAll(async () => {
  [png, audio] = [await sampleImage('png', 40, 30), wav(2)];
  takers = {
    data: makeMediaTaker('data', { bytes: png }),
    link: makeMediaTaker('link', { bytes: png }),
    either: makeMediaTaker('either', { bytes: png }),
  };
  const adapters = Object.fromEntries(Object.entries(takers).map(([name, taker]) => [name, taker.adapter]));
  service = await startTestApp({ yaml, adapters, env: { MEDLEY_ALLOW_PRIVATE: '1' } });
  const requests: string[] = [];
  const twelve_mb = wav(750);
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    const body = {
      '/a.png': png,
      '/a.wav': audio,
      '/large.wav': wav(60),
      '/long.wav': twelve_mb,
      '/page': Buffer.from('<html>'),
    }[request.url ?? ''];
    response.writeHead(body ? 200 : 404, { 'content-type': 'text/html' }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  site = { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
});
afterAll(async () => {
  await service?.stop();
  site.server.close();
});
beforeEach(async () => {
  client = await service.client();
  for (const taker of Object.values(takers)) {
    taker.runs.length = 0;
    taker.answer = () => ({ phase: 'done', files: [{ bytes: png }] });
  }
  site.requests.length = 0;
});
afterEach(async () => {
  await service.app.db.query('delete from route_health');
  await expectExactBooks(service.app);
});

async function upload(bytes: Buffer, who = client): Promise<string> {
  const form = new FormData();
  form.set('file', new Blob([new Uint8Array(bytes)]), 'a');
  const headers = { authorization: `Bearer ${who.key}` };
  const response = await fetch(`${service.url}/v1/files`, { method: 'POST', headers, body: form });
  const body = (await response.json()) as { id: string }; // an upload that works
  return body.id;
}

async function generate(name: string, input: object) {
  const { status, json } = await client.call('POST', '/v1/generate?wait=120', { model: `test/${name}`, input });
  return { status, json };
}

async function keptInput(task_id: string): Promise<string> {
  const rows = await service.app.db.query<{ input: string }>('select input from tasks where id = $1', [task_id]);
  return rows[0]?.input ?? '';
}

async function inputFiles(account_id: string): Promise<unknown[]> {
  return service.app.db.query('select id from files where account_id = $1 and task_id is not null', [account_id]);
}

const dataUrl = (bytes: Buffer, content_type = 'image/png') => writeDataUrl({ content_type, bytes });

describe('an upstream that takes data URLs', () => {
  it('gets uploads, links and data URLs as data URLs with the types of their bytes', async () => {
    const id = await upload(png);
    const input = { prompt: 'a', clips: [`${site.url}/a.wav`, dataUrl(audio, 'text/html')] };
    for (const image of [id, `${site.url}/a.png`, dataUrl(png, 'application/x-evil')]) {
      const { json } = await generate('data', { ...input, image });
      expect(json.status).toBe('succeeded');
    }
    expect(takers.data.inputs()).toEqual(
      [0, 1, 2].map(() => ({
        prompt: 'a',
        image: dataUrl(png),
        clips: [dataUrl(audio, 'audio/wav'), dataUrl(audio, 'audio/wav')],
      })),
    );
  });

  it('gets them in the fields that its route names', async () => {
    await generate('mapped', { prompt: 'a', image: dataUrl(png) });
    expect(takers.data.inputs()).toEqual([{ text: 'a', refs: [{ uri: dataUrl(png) }], mode: 'x' }]);
  });

  it('gets bytes that are never in the table of tasks, which has only names', async () => {
    const { json } = await generate('data', {
      prompt: 'a',
      image: dataUrl(png),
      clips: [dataUrl(audio), dataUrl(audio)],
    });
    const stored = JSON.parse(await keptInput(json.id));
    expect(stored).toEqual({
      prompt: 'a',
      image: expect.stringMatching(/^file_/),
      clips: [expect.stringMatching(/^file_/), stored.clips[0]],
    });
    expect(takers.data.inputs()[0]?.['image']).toBe(dataUrl(png));
    await expect.poll(() => inputFiles(client.account_id)).toEqual([]); // gone with the end of the task
    expect(await service.app.storage.list(client.account_id, stored.image)).toEqual([]);
  });

  it("leaves the caller's uploads in place", async () => {
    const id = await upload(png);
    await generate('data', { prompt: 'a', image: id });
    await generate('data', { prompt: 'a', image: id });
    expect(takers.data.inputs().map((input) => input['image'])).toEqual([dataUrl(png), dataUrl(png)]);
    expect((await client.call('GET', `/v1/files/${id}`)).status).toBe(200);
  });

  it.each([
    ['/none', 'input.image cannot be fetched: The address answered 404.'],
    ['/page', 'input.image: the link leads to no file that can be read, not to a file of type image.'],
    ['/a.wav', 'input.image: the link leads to audio/wav, not to a file of type image.'],
  ])("fails a task with a link to %s as the caller's mistake, free and not counted", async (path, message) => {
    const { status, json } = await generate('data', { prompt: 'a', image: site.url + path });
    expect(status).toBe(202);
    expect(json).toMatchObject({
      status: 'failed',
      error: { type: 'invalid_request', message },
      cost: { amount: '0.00' },
    });
    expect(takers.data.runs).toEqual([]);
    const rows = await service.app.db.query('select counts_as_failure as counts from tasks where id = $1', [json.id]);
    expect(rows).toEqual([{ counts: false }]);
  });
});

it('a link to nothing fails its task at once, also where its provider has no room', async () => {
  const ending = Promise.withResolvers<RunState>();
  takers.data.answer = () => ending.promise;
  const busy = generate('small', { prompt: 'a' });
  await expect.poll(() => takers.data.runs.length).toBe(1);
  const { json } = await generate('small', { prompt: 'b', image: `${site.url}/nothing` });
  ending.resolve({ phase: 'done', files: [{ bytes: png }] });
  await busy;
  const message = 'input.image cannot be fetched: The address answered 404.';
  expect(json).toMatchObject({ status: 'failed', error: { type: 'invalid_request', message } });
});

describe('an upstream that takes links', () => {
  it('gets signed links to files that end with the task, and in our own network to linked files, too', async () => {
    const id = await upload(png);
    let seen: Buffer[] = [];
    takers.link.answer = async ({ input }) => {
      const links = [input['image'], ...[input['clips'] ?? []].flat()].map(String);
      seen = await Promise.all(links.map(async (url) => Buffer.from(await (await fetch(url)).arrayBuffer())));
      return { phase: 'done', files: [{ bytes: png }] };
    };
    const { json } = await generate('link', { prompt: 'a', image: id, clips: [dataUrl(audio), `${site.url}/a.wav`] });
    expect(json.status).toBe('succeeded');
    expect(seen.map((bytes) => bytes.length)).toEqual([png.length, audio.length, audio.length]);
    const input = takers.link.inputs()[0] ?? {};
    const [stored, original] = [input['clips'] ?? []].flat().map(String);
    expect(input['image']).toMatch(`${service.url}/files/${client.account_id}/${id}/0.png?exp=`);
    expect(original).toContain(`${service.url}/files/`); // not where the caller wants it to look around
    for (const url of [stored, original]) await expect.poll(async () => (await fetch(String(url))).status).toBe(404);
    expect((await fetch(String(input['image']))).status).toBe(200);
  });

  it('is skipped when it cannot reach this address', async () => {
    const id = await upload(png);
    const { json } = await generate('failover', { prompt: 'a', image: id });
    expect(json.status).toBe('succeeded');
    expect(takers.link.runs).toEqual([]);
    expect(takers.data.inputs()[0]?.['image']).toBe(dataUrl(png));
    const alone = await generate('far', { prompt: 'a', image: id });
    expect(alone.json).toMatchObject({ status: 'failed', error: { type: 'upstream_error' } });
    const rows = await service.app.db.query<{ message: string }>('select message from attempts where task_id = $1', [
      alone.json.id,
    ]);
    expect(rows[0]?.message).toContain('base_url is no address that it can reach');
    expect((await generate('far', { prompt: 'a', image: `${site.url}/a.png` })).json.status).toBe('succeeded');
    expect(takers.link.inputs().at(-1)?.['image']).toBe(`${site.url}/a.png`); // as it is
    expect(site.requests).toEqual([]);
    expect(await service.app.db.query('select * from route_health')).toEqual([]); // it is not the upstream's fault
  });
});

it('an upstream that takes both gets small files in the request and large ones as links', async () => {
  const large = wav(60);
  const { json } = await generate('either', {
    prompt: 'a',
    image: `${site.url}/a.png`,
    clips: [dataUrl(audio), dataUrl(large), `${site.url}/large.wav`],
  });
  expect(json.status).toBe('succeeded');
  const [input = {}] = takers.either.inputs();
  const [small, linked, copied] = [input['clips'] ?? []].flat().map(String);
  expect(input['image']).toBe(dataUrl(png));
  expect(copied).toMatch(/^http:.*\/0\.wav\?exp=/);
  expect(readDataUrl(small ?? '')?.bytes.equals(audio)).toBe(true);
  expect(linked).toMatch(/^http:.*\/0\.wav\?exp=/);
});

describe('an input is refused at creation by the name of its field', () => {
  const cases: [string, () => object | Promise<object>, string, string][] = [
    [
      'a text that is none of the three',
      () => ({ image: 'a.png' }),
      'input.image',
      'must be an http(s) link, a data URL or the id',
    ],
    [
      'an ftp link',
      () => ({ image: 'ftp://example.com/a' }),
      'input.image',
      'must be an http(s) link, a data URL or the id',
    ],
    [
      'a local file',
      () => ({ image: 'file:///etc/passwd' }),
      'input.image',
      'must be an http(s) link, a data URL or the id',
    ],
    [
      'a link with a password',
      () => ({ image: 'https://a:b@example.com/' }),
      'input.image',
      'must not contain a user name',
    ],
    [
      'a link to where clouds keep secrets',
      () => ({ image: 'http://169.254.169.254/' }),
      'input.image',
      'must be reachable from the internet',
    ],
    [
      'a long link',
      () => ({ image: `https://example.com/${'a'.repeat(2_048)}` }),
      'input.image',
      'may have at most 2048 characters',
    ],
    ['a link with spaces', () => ({ image: 'https://example.com/a b' }), 'input.image', 'must not contain spaces'],
    ['a broken data URL', () => ({ image: 'data:image/png;base64,AA!=' }), 'input.image', 'is not a valid data URL.'],
    ['an empty data URL', () => ({ image: 'data:image/png;base64,' }), 'input.image', 'is an empty file.'],
    [
      'a page',
      () => ({ image: dataUrl(Buffer.from('<svg onload=alert(1)>')) }),
      'input.image',
      'is of no known image, audio or video format.',
    ],
    ['half a picture', () => ({ image: dataUrl(png.subarray(0, 300)) }), 'input.image', 'is cut off'],
    [
      'a sound for a picture',
      () => ({ image: dataUrl(audio) }),
      'input.image',
      'must be an image file (its bytes are audio/wav).',
    ],
    [
      'a picture for a sound',
      () => ({ clips: [dataUrl(audio), dataUrl(png)] }),
      'input.clips[1]',
      'must be an audio file (its bytes are image/png).',
    ],
    [
      'an upload of another kind',
      async () => ({ image: await upload(audio) }),
      'input.image',
      'must be an image file (its bytes are audio/wav).',
    ],
    ['a file that never was', () => ({ image: newId('file') }), 'input.image', 'must be the id of one of your files'],
    [
      'the file of somebody else',
      async () => ({ image: await upload(png, await service.client()) }),
      'input.image',
      'must be the id of one of your files',
    ],
    [
      'too many files',
      () => ({ clips: Array.from({ length: 65 }, () => `${site.url}/a.wav`) }),
      'input',
      'at most 64 files',
    ],
  ];

  it.each(cases)('with %s', async (_name, input, param, message) => {
    const expected = { prompt: 'a', ...(await input()) };
    const { status, json } = await generate('either', expected);
    expect(status).toBe(422);
    expect(json.error).toMatchObject({ type: 'invalid_request', ...(param !== 'input' && { param }) });
    expect(json.error.message).toContain(message);
    expect(json.error.message.startsWith(param)).toBe(true);
    expect(await inputFiles(client.account_id)).toEqual([]);
    expect((await client.call('GET', '/v1/balance')).json.held.exact).toBe('0.000000');
  });

  it('with more bytes than fit into one request when no route takes links', async () => {
    const large = await upload(audio);
    await service.app.db.query('update files set size_bytes = 33000000 where id = $1', [large]);
    const { status, json } = await generate('data', { prompt: 'a', clips: [large] });
    expect([status, json.error.message]).toEqual([422, 'input.clips[0] is larger than 32 MB.']);
    const both = await generate('failover', { prompt: 'a', clips: [large] });
    expect(both.json.status).toBe('failed'); // by a link, had the other one an address to fetch it from
    const rows = await service.app.db.query<{ message: string }>(
      'select message from attempts where task_id = $1 order by number',
      [both.json.id],
    );
    expect(rows.map(({ message }) => message)).toEqual([
      expect.stringContaining('base_url is no address'),
      'the files of the input are larger than 32 MB together',
    ]);
  });

  it('with a file that is too large as often as it is named', async () => {
    const large = await upload(audio);
    await service.app.db.query('update files set size_bytes = 12000000 where id = $1', [large]);
    const runs = takers.data.runs.length;
    const { json } = await generate('data', { prompt: 'a', clips: [large, large, large] });
    expect(json.status).toBe('failed');
    expect(takers.data.runs).toHaveLength(runs);
    expect((await generate('data', { prompt: 'a', clips: [large, large] })).json.status).toBe('succeeded');
  });

  it('with a link that is too large as often as it is fetched for the request', async () => {
    const url = `${site.url}/long.wav`;
    const runs = takers.data.runs.length;
    expect((await generate('data', { prompt: 'a', clips: [url, url, url] })).json.status).toBe('failed');
    expect(takers.data.runs).toHaveLength(runs);
    expect((await generate('data', { prompt: 'a', clips: [url, url] })).json.status).toBe('succeeded');
    // Where it becomes a file of ours that the upstream fetches, nothing of it stands there.
    expect((await generate('either', { prompt: 'a', clips: [url, url, url] })).json.status).toBe('succeeded');
  });

  it('with links to private addresses unless they are permitted', async () => {
    const strict = await service.beside({
      yaml,
      adapters: { data: takers.data.adapter, link: takers.link.adapter, either: takers.either.adapter },
    });
    const there = await strict.client();
    for (const image of [`${site.url}/a.png`, 'http://10.0.0.1/a', 'http://[::1]/a', 'http://localhost/a']) {
      const { status, json } = await there.call('POST', '/v1/generate', {
        model: 'test/either',
        input: { prompt: 'a', image },
      });
      expect([status, json.error.param]).toEqual([422, 'input.image']);
    }
    await strict.stop();
  });
});

describe('files of a refused input', () => {
  const image = () => dataUrl(png);

  it('are not stored when the money does not suffice', async () => {
    const poor = await service.client({ credit: '0.01' });
    const body = { model: 'test/data', input: { prompt: 'a', image: image() } };
    expect((await poor.call('POST', '/v1/generate', body)).status).toBe(402);
    expect(await inputFiles(poor.account_id)).toEqual([]);
  });

  it('are not stored by an estimate', async () => {
    const body = { model: 'test/data', input: { prompt: 'a', image: image() } };
    expect((await client.call('POST', '/v1/estimate', body)).status).toBe(200);
    expect((await client.call('POST', '/v1/estimate', { ...body, input: { prompt: 'a', image: 'x' } })).status).toBe(
      422,
    );
    expect(await inputFiles(client.account_id)).toEqual([]);
  });

  it('are not stored twice when the call is repeated', async () => {
    const body = { model: 'test/data', input: { prompt: 'a', image: image() } };
    const headers = { 'idempotency-key': 'once' };
    const first = await client.call('POST', '/v1/generate?wait=120', body, headers);
    const again = await client.call('POST', '/v1/generate?wait=120', body, headers);
    expect(again.json.id).toBe(first.json.id);
    expect(takers.data.runs).toHaveLength(1);
    await expect.poll(() => inputFiles(client.account_id)).toEqual([]);
  });
});

it('a file that is deleted before the run fails the task, free and not counted', async () => {
  const quiet = await startTestApp({
    yaml,
    worker: false,
    adapters: { data: takers.data.adapter, link: takers.link.adapter, either: takers.either.adapter },
  });
  const there = await quiet.client();
  const form = new FormData();
  form.set('file', new Blob([new Uint8Array(png)]), 'a');
  const headers = { authorization: `Bearer ${there.key}` };
  const uploaded = (await (await fetch(`${quiet.url}/v1/files`, { method: 'POST', headers, body: form })).json()) as {
    id: string;
  };
  const body = { model: 'test/data', input: { prompt: 'a', image: uploaded.id } };
  const { json } = await there.call('POST', '/v1/generate', body);
  await there.call('DELETE', `/v1/files/${uploaded.id}`);
  await startWorker(quiet.app);
  await expect
    .poll(async () => (await there.call('GET', `/v1/tasks/${json.id}`)).json.status, { timeout: 120_000 })
    .toBe('failed');
  const { error, cost } = (await there.call('GET', `/v1/tasks/${json.id}`)).json;
  expect(error).toEqual({
    type: 'invalid_request',
    message: 'input.image: the file was deleted, or expired, before the run.',
  });
  expect(cost.exact).toBe('0.000000');
  await expectExactBooks(quiet.app);
  await quiet.stop();
});
