import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import OpenAI6 from 'openai-6';
import OpenAI7 from 'openai-7';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keepFile, removeExpiredFiles, type NewFile } from '../../src/files/files.ts';
import { newId } from '../../src/lib/ids.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { speak } from '../hostile/speak.ts';
import { mp3, sampleImage, wav } from '../storage/samples.ts';
import { limits } from '../helpers/catalog.ts';

let service: TestApp;
let client: Client;
let png: Buffer;

const yaml = `version: 1\n${limits()}\nfiles: { file_mb_max: 2, account_mb_max: 5, account_files_max: 6, keep: 2d }\n`;

beforeAll(async () => {
  service = await startTestApp({ yaml, worker: false }); // a worker removes files, too
  client = await service.client();
  png = await sampleImage('png', 40, 30);
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

/** The answer to an upload. */
type Uploaded = {
  id: string;
  created_at: number;
  expires_at: number;
  error: { message: string; param?: string; code?: string; type: string };
};

/** Uploads by fetch, whose FormData no library of ours has made. */
async function upload(bytes: Buffer, fields: Record<string, string> = {}, who = client, filename = 'a.png') {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set('file', new Blob([new Uint8Array(bytes)], { type: 'text/html' }), filename);
  const response = await fetch(`${service.url}/v1/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${who.key}` },
    body: form,
  });
  const json: Uploaded = await response.json().then((body) => body as Uploaded); // the tests look at it
  return { status: response.status, json };
}

async function spooled(): Promise<string[]> {
  return readdir(join(service.app.config.data_dir, 'spool'));
}

describe.each([
  ['openai 6', OpenAI6],
  ['openai 7', OpenAI7],
] as const)('the SDK %s', (_name, OpenAI) => {
  it('creates, retrieves, lists, downloads and deletes files', async () => {
    const own = await service.client();
    const sdk = new OpenAI({ apiKey: own.key, baseURL: `${service.url}/v1`, maxRetries: 0 });
    const bytes = wav(1.5);
    const before_s = Math.floor(service.app.clock.now() / 1000);
    const created = await sdk.files.create({
      file: new File([new Uint8Array(bytes)], 'Gruß.wav', { type: 'image/png' }),
      purpose: 'user_data',
      expires_after: { anchor: 'created_at', seconds: 3600 },
    });
    expect(created).toMatchObject({
      object: 'file',
      bytes: bytes.length,
      filename: 'Gruß.wav',
      purpose: 'user_data',
      kind: 'audio',
      content_type: 'audio/wav',
      duration: 1.5,
    });
    expect(created.id).toMatch(/^file_[0-9a-z]{26}$/);
    expect(created.created_at).toBeGreaterThanOrEqual(before_s);
    expect(created.expires_at).toBe(created.created_at + 3600);
    expect(await sdk.files.retrieve(created.id)).toEqual(created);
    const second = await sdk.files.create({ file: new File([new Uint8Array(png)], 'b.png'), purpose: 'vision' });
    const ids = async (params: { limit?: number; order?: 'asc' | 'desc'; purpose?: string }) => {
      const paths: string[] = [];
      for await (const file of sdk.files.list(params)) paths.push(file.id);
      return paths;
    };
    expect(await ids({})).toEqual([second.id, created.id]);
    expect(await ids({ limit: 1 })).toEqual([second.id, created.id]); // two pages
    expect(await ids({ limit: 1, order: 'asc' })).toEqual([created.id, second.id]);
    expect(await ids({ purpose: 'vision' })).toEqual([second.id]);
    const content = await sdk.files.content(created.id);
    expect(content.headers.get('content-type')).toBe('audio/wav');
    expect(Buffer.from(await content.arrayBuffer()).equals(bytes)).toBe(true);
    expect(await sdk.files.delete(created.id)).toEqual({ id: created.id, object: 'file', deleted: true });
    await expect(sdk.files.retrieve(created.id)).rejects.toMatchObject({ status: 404 });
    expect(await service.app.storage.list(own.account_id, created.id)).toEqual([]);
  });
});

describe('an upload', () => {
  it('has the type of its bytes, whatever its name and declared type', async () => {
    const { status, json } = await upload(png, {}, client, '../../x/y\\page.html');
    expect(status).toBe(200);
    expect(json).toMatchObject({ kind: 'image', content_type: 'image/png', width: 40, height: 30, bytes: png.length });
    expect(json).toMatchObject({ filename: 'page.html', purpose: 'user_data' });
    expect(json.expires_at - json.created_at).toBe(2 * 86_400);
    const content = await fetch(`${service.url}/v1/files/${json.id}/content`, {
      headers: { authorization: `Bearer ${client.key}`, range: 'bytes=0-3' },
    });
    expect(content.status).toBe(206);
    expect(content.headers.get('x-content-type-options')).toBe('nosniff');
    expect(Buffer.from(await content.arrayBuffer()).toString('latin1')).toBe('\x89PNG');
    await client.call('DELETE', `/v1/files/${json.id}`);
  });

  it('of a page is a text, and never shown as a page', async () => {
    const { json } = await upload(Buffer.from('<html><script>alert(1)</script>'), {}, client, 'page.html');
    expect(json).toMatchObject({ kind: 'document', content_type: 'text/plain; charset=utf-8' });
    const headers = { authorization: `Bearer ${client.key}` };
    const content = await fetch(`${service.url}/v1/files/${json.id}/content`, { headers });
    expect(content.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(content.headers.get('x-content-type-options')).toBe('nosniff');
    await client.call('DELETE', `/v1/files/${json.id}`);
  });

  it.each([
    ['nothing', Buffer.alloc(0), 'file is empty.'],
    ['a text in UTF-16', Buffer.from('<html>', 'utf16le'), 'file is of no known image, audio or video format.'],
    ['half a picture', 'half', 'file is cut off'],
    ['a broken sound', Buffer.concat([Buffer.from('fLaC'), Buffer.alloc(100)]), 'file is damaged'],
  ])('of %s is refused', async (_name, bytes, message) => {
    const answer = await upload(bytes === 'half' ? png.subarray(0, 200) : Buffer.from(bytes));
    expect(answer.status).toBe(422);
    expect(answer.json.error).toMatchObject({ type: 'invalid_request', param: 'file' });
    expect(answer.json.error.message).toContain(message);
    expect(await spooled()).toEqual([]);
  });

  it.each([
    [{ purpose: 'A b' }, 'purpose'],
    [{ purpose: '' }, 'purpose'],
    [{ 'expires_after[anchor]': 'now' }, 'expires_after[anchor]'],
    [{ 'expires_after[seconds]': '59' }, 'expires_after[seconds]'],
    [{ 'expires_after[seconds]': '-1' }, 'expires_after[seconds]'],
    [{ 'expires_after[seconds]': '1e9' }, 'expires_after[seconds]'],
    [{ porpuse: 'x' }, 'porpuse'],
  ])('with the fields %j is refused', async (fields: Record<string, string>, param) => {
    const answer = await upload(png, fields);
    expect(answer.status).toBe(400);
    expect(answer.json.error.param).toBe(param);
  });

  it('is stored no longer than files are', async () => {
    const { json } = await upload(png, { 'expires_after[seconds]': '99999999' });
    expect(json.expires_at - json.created_at).toBe(2 * 86_400);
    await client.call('DELETE', `/v1/files/${json.id}`);
  });

  it('of too many bytes is refused, also without a declared length', async () => {
    const big = wav(70, 16_000); // 2.24 MB
    const answer = await upload(big);
    expect(answer.status).toBe(413);
    expect(answer.json.error.message).toBe('A file may have at most 2 MB.');
    expect(await spooled()).toEqual([]);
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'));
        for (let sent = 0; sent < 30; sent++) controller.enqueue(Buffer.alloc(1_000_000, 'a'));
        controller.close();
      },
    });
    const chunked = await fetch(`${service.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${client.key}`, 'content-type': 'multipart/form-data; boundary=x' },
      body: stream,
      duplex: 'half',
    } as RequestInit);
    expect(chunked.status).toBe(413);
    expect(await spooled()).toEqual([]);
  });

  it('of an account that has too many files or bytes is refused until some are deleted', async () => {
    const own = await service.client();
    const half = wav(50, 16_000); // 1.6 MB
    const first = await upload(half, {}, own);
    for (let count = 0; count < 2; count++) expect((await upload(half, {}, own)).status).toBe(200);
    const much = await upload(half, {}, own);
    expect(much.status).toBe(413);
    expect(much.json.error).toMatchObject({ code: 'files_limit' });
    expect(much.json.error.message).toContain('at most 5 MB of files');
    for (let count = 0; count < 3; count++) expect((await upload(png, {}, own)).status).toBe(200);
    const many = await upload(png, {}, own);
    expect(many.status).toBe(413);
    expect(many.json.error.message).toContain('at most 6 files');
    await own.call('DELETE', `/v1/files/${first.json.id}`);
    expect((await upload(png, {}, own)).status).toBe(200);
  });

  it('counts the others of its account that arrive at the same time', async () => {
    const own = await service.client();
    const answers = await Promise.all(Array.from({ length: 8 }, () => upload(png, {}, own)));
    const statuses = answers.map((answer) => answer.status).toSorted();
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 413, 413]);
  });

  it('of a blocked account is refused', async () => {
    const own = await service.client();
    await service.app.db.query(`update accounts set status = 'blocked' where id = $1`, [own.account_id]);
    service.app.authenticator.invalidate();
    await expect.poll(async () => (await upload(png, {}, own)).status).toBe(403);
  });
});

describe('a file of another account', () => {
  it('is as unknown as one that never existed', async () => {
    const other = await service.client();
    const { json } = await upload(mp3(40), {}, other);
    const absent = newId('file');
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/content'],
      ['DELETE', ''],
    ]) {
      const theirs = await client.call(String(method), `/v1/files/${json.id}${path}`);
      const none = await client.call(String(method), `/v1/files/${absent}${path}`);
      expect(theirs.status).toBe(404);
      const plain = (text: string) => text.replaceAll(/file_\w+|req_\w+/g, 'X');
      expect(plain(theirs.text)).toBe(plain(none.text));
    }
    expect((await client.call('GET', '/v1/files')).json.data.map((file) => file.id)).not.toContain(json.id);
    expect((await client.call('GET', `/v1/files?after=${json.id}`)).json.data).toEqual(
      (await client.call('GET', `/v1/files?after=${absent}`)).json.data,
    );
    expect((await other.call('GET', `/v1/files/${json.id}`)).status).toBe(200);
  });

  it.each(['x', 'file_x', `task_${'0'.repeat(26)}`, '%00', '..'])(
    'is as unknown as a file with the id %s',
    async (id) => {
      expect((await client.call('GET', `/v1/files/${id}`)).status).toBe(404);
      expect((await client.call('DELETE', `/v1/files/${id}`)).status).toBe(404);
    },
  );
});

it('files are deleted with their bytes when their time is over', async () => {
  const own = await service.client();
  const { json } = await upload(png, { 'expires_after[seconds]': '60' }, own);
  const later = new Date(Date.now() + 61_000);
  expect(await service.app.storage.list(own.account_id, json.id)).toHaveLength(1);
  await service.app.db.query('update files set expires_at = $2 where id = $1', [
    json.id,
    new Date(Date.now() - 60_000),
  ]);
  expect((await own.call('GET', `/v1/files/${json.id}`)).status).toBe(404);
  expect((await own.call('GET', '/v1/files')).json.data).toEqual([]);
  expect(await removeExpiredFiles(service.app, later)).toBeGreaterThanOrEqual(1);
  expect(await service.app.storage.list(own.account_id, json.id)).toEqual([]);
  expect(await service.app.db.query('select from files where id = $1', [json.id])).toEqual([]);
});

it('what a killed upload left behind is removed after an hour and never visible', async () => {
  const own = await service.client();
  const { json } = await upload(png, {}, own);
  await service.app.db.query('update files set ready = false where id = $1', [json.id]);
  expect((await own.call('GET', `/v1/files/${json.id}`)).status).toBe(404);
  await removeExpiredFiles(service.app, new Date());
  expect(await service.app.storage.list(own.account_id, json.id)).toHaveLength(1);
  await removeExpiredFiles(service.app, new Date(Date.now() + 3_601_000));
  expect(await service.app.storage.list(own.account_id, json.id)).toEqual([]);
});

it('a file that is stored again while the sweep removes what was left of it is not lost later', async () => {
  const { app } = service;
  const own = await service.client();
  const name = { account_id: own.account_id, id: newId('file', Date.now()) };
  const file: NewFile = {
    ...name,
    key_id: own.key_id,
    task_id: null,
    filename: 'a.txt',
    purpose: 'user_data',
    probe: { type: 'document', content_type: 'text/plain', extension: 'txt', size_bytes: 3 },
    content: Buffer.from('abc'),
    expires_at: new Date(Date.now() + 86_400_000),
  };
  const keep = () => keepFile(app, file, { files_max: 10, bytes_max: 1_000 }, new Date());
  expect(await keep()).toMatchObject(name);
  await app.db.query(`update files set ready = false, created_at = now() - interval '2 hours' where id = $1`, [
    name.id,
  ]);

  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const storage = Object.create(app.storage, {
    list: {
      value: async (account_id: string, owner_id: string) => {
        reached.resolve();
        await released.promise;
        return app.storage.list(account_id, owner_id);
      },
    },
  });
  const sweeping = removeExpiredFiles({ db: app.db, storage }, new Date());
  await reached.promise;
  await expect(keep()).rejects.toThrow('removed while it was stored');
  released.resolve();
  await sweeping;
  expect(await keep()).toMatchObject(name);
  expect(await app.storage.list(name.account_id, name.id)).toHaveLength(1);
});

describe('a hostile form', () => {
  const part = (disposition: string, body: string, more = '') =>
    `--x\r\ncontent-disposition: form-data; ${disposition}\r\n${more}\r\n${body}\r\n`;
  const file = part('name="file"; filename="a.png"', 'abc');
  const end = '--x--\r\n';

  async function post(body: string, type = 'multipart/form-data; boundary=x', ...headers: string[]) {
    const length = headers.some((header) => header.startsWith('content-length'))
      ? []
      : [`content-length: ${body.length}`];
    const lines = [
      'POST /v1/files HTTP/1.1',
      'host: a',
      `authorization: Bearer ${client.key}`,
      'connection: close',
      ...(type === '' ? [] : [`content-type: ${type}`]),
      ...length,
      ...headers,
    ];
    const { replies } = await speak(Number(new URL(service.url).port), [`${lines.join('\r\n')}\r\n\r\n${body}`]);
    return { status: replies[0]?.status, error: JSON.parse(String(replies[0]?.body)).error };
  }

  it.each([
    ['no type', '', file + end],
    ['JSON', 'application/json', '{}'],
    ['another form', 'application/x-www-form-urlencoded', 'file=abc'],
    ['a mixed body', 'multipart/mixed; boundary=x', file + end],
  ])('with %s gets 415', async (_name, type, body) => {
    expect(await post(body, type)).toMatchObject({ status: 415 });
  });

  it.each([
    ['no boundary', 'multipart/form-data', file + end],
    ['an empty boundary', 'multipart/form-data; boundary=', file + end],
    ['a boundary in empty quotes', 'multipart/form-data; boundary=""', file + end],
    ['a boundary of 71 characters', `multipart/form-data; boundary=${'x'.repeat(71)}`, file + end],
    ['another boundary', 'multipart/form-data; boundary=y', file + end],
    ['no end', 'multipart/form-data; boundary=x', file],
    ['an end in the middle of a part', 'multipart/form-data; boundary=x', file.slice(0, -5)],
    ['an end within the headers', 'multipart/form-data; boundary=x', file.slice(0, 30)],
    ['nothing', 'multipart/form-data; boundary=x', ''],
    ['no parts', 'multipart/form-data; boundary=x', end],
    ['two files', 'multipart/form-data; boundary=x', file + file + end],
    ['a file without a name', 'multipart/form-data; boundary=x', part('filename="a"', 'abc') + end],
    ['a file of another name', 'multipart/form-data; boundary=x', part('name="picture"; filename="a"', 'abc') + end],
    ['a field of that name', 'multipart/form-data; boundary=x', part('name="file"', 'abc') + end],
    ['a field twice', 'multipart/form-data; boundary=x', part('name="purpose"', 'a').repeat(2) + file + end],
    ['a field without a name', 'multipart/form-data; boundary=x', part('', 'a') + file.replace('file"', 'f"') + end],
    ['a long name', 'multipart/form-data; boundary=x', part(`name="${'n'.repeat(5_000)}"`, 'a') + file + end],
    ['a long value', 'multipart/form-data; boundary=x', part('name="purpose"', 'a'.repeat(70_000)) + file + end],
    ['names from Object', 'multipart/form-data; boundary=x', part('name="__proto__"', 'a') + file + end],
    [
      '70 parts',
      'multipart/form-data; boundary=x',
      Array.from({ length: 70 }, (_, i) => part(`name="n${i}"`, 'a')).join('') + end,
    ],
    ['10,000 parts', 'multipart/form-data; boundary=x', part('', '').repeat(10_000) + end],
  ])('with %s gets 400', async (_name, type, body) => {
    const answer = await post(body, type);
    expect(answer).toMatchObject({ status: 400, error: { type: 'invalid_request' } });
    expect(await spooled()).toEqual([]);
  });

  it('with huge headers of a part has them cut', async () => {
    const huge = part('name="file"; filename="a.png"', '\0abc', `x-a: ${'b'.repeat(1_000_000)}\r\n`);
    const many = part('name="file"; filename="a.png"', '\0abc', 'x-a: b\r\n'.repeat(20_000));
    for (const body of [huge, many]) expect((await post(body + end)).status).toBeOneOf([400, 422]);
  });

  it('with a compressed body gets 415', async () => {
    expect(await post(file + end, undefined, 'content-encoding: gzip')).toMatchObject({ status: 415 });
  });

  it('that announces a body beyond the limit is refused before it comes', async () => {
    expect(await post('', undefined, 'content-length: 99999999999')).toMatchObject({ status: 413 });
  });

  it('may have its boundary and all kinds of line breaks within the file', async () => {
    for (const body of ['--', 'a--x', '\r\n--', '\r\n--y', '\r\n-'.repeat(1_000), '\n--x\n', 'a--x--']) {
      const answer = await post(part('name="file"; filename="a.png"', `${body}\0abc`) + end);
      expect(answer).toMatchObject({
        status: 422,
        error: { message: 'file is of no known image, audio or video format.' },
      });
    }
  });

  it('of a client that disconnects leaves nothing behind', async () => {
    const gone = new AbortController();
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'));
        controller.enqueue(Buffer.alloc(500_000, 'a'));
      },
    });
    const answer = fetch(`${service.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${client.key}`, 'content-type': 'multipart/form-data; boundary=x' },
      body: stream,
      duplex: 'half',
      signal: gone.signal,
    } as RequestInit);
    await expect.poll(spooled).toHaveLength(1);
    gone.abort();
    await expect(answer).rejects.toThrow('aborted');
    await expect.poll(spooled).toEqual([]);
    expect((await upload(png)).status).toBe(200); // its place is free again
  });
});
