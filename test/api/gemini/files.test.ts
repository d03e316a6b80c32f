import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GoogleGenAI, createPartFromUri, type File as GeminiFile } from '@google/genai';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { deleteKey } from '../../../src/accounts/keys.ts';
import { removeOldUploads } from '../../../src/files/upload-sessions.ts';
import { newId } from '../../../src/lib/ids.ts';
import { completion, generated, message, setStage, type Stage } from '../../chat/setup.ts';
import { response, messageItem } from '../../chat/responses-streams.ts';
import { expectExactBooks, type Client, type TestApp } from '../../helpers/app.ts';
import { mp4, sampleImage, wav } from '../../storage/samples.ts';

/** Files of Gemini's style: Google's SDK, and the protocol of its uploads on the wire. */

const more = `
  - id: acme/res
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: res-x, options: { responses: always } }]
files: { file_mb_max: 20, account_mb_max: 30, account_files_max: 8, keep: 2d }
`;

const pdf = Buffer.from('%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n');

let stage: Stage;
let service: TestApp;
let folder: string;
let png: Buffer;

beforeAll(async () => {
  stage = await setStage({ more });
  service = stage.test;
  folder = await mkdtemp(join(tmpdir(), 'medley-gemini-files-'));
  png = await sampleImage('png', 40, 30);
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  stage.upstream.script('claude-x', { json: message('Hi') });
  stage.upstream.script('gemini-x', { json: generated([{ text: 'Hi' }]) });
  stage.upstream.script('res-x', { json: response([messageItem('Hi')]) });
});
afterEach(() => expectExactBooks(service.app));
afterAll(async () => {
  await stage.stop();
  await rm(folder, { recursive: true, force: true });
});

const sdkOf = ({ key }: Client, url = service.url) => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
const blob = (bytes: Buffer, type = 'application/octet-stream') => new Blob([new Uint8Array(bytes)], { type });
const lastRequest = () => stage.upstream.requests.at(-1);

/** Keys of all that is stored of the sessions of an account. */
async function storedOf(client: Client): Promise<string[]> {
  const rows = await service.app.db.query<{ id: string }>('select id from upload_sessions where account_id = $1', [
    client.account_id,
  ]);
  const lists = await Promise.all(rows.map(({ id }) => service.app.storage.list(client.account_id, id)));
  return lists.flat();
}

/** Sizes of the files that arrive at this moment. */
async function sizesOnDisk(): Promise<number[]> {
  const spool = join(service.app.config.data_dir, 'spool');
  const names = await readdir(spool).catch(() => []);
  return Promise.all(names.map(async (name) => (await stat(join(spool, name))).size));
}

describe('the SDK of Google', () => {
  test('uploads, gets, lists, downloads and deletes files', async () => {
    const client = await service.client();
    const ai = sdkOf(client);
    const path = join(folder, 'report.pdf');
    await writeFile(path, pdf);
    const file = await ai.files.upload({ file: path, config: { displayName: 'Q3/2026 Łódź' } });
    expect(file).toMatchObject({
      displayName: 'Q3/2026 Łódź',
      mimeType: 'application/pdf',
      sizeBytes: String(pdf.length),
      state: 'ACTIVE',
      source: 'UPLOADED',
    });
    expect(file.name).toMatch(/^files\/file_[0-9a-z]{26}$/);
    expect(file.uri).toBe(`${service.url}/v1beta/${file.name}`);
    const kept_ms = Date.parse(file.expirationTime ?? '') - Date.parse(file.createTime ?? '');
    expect(kept_ms).toBe(2 * 86_400_000);
    expect(Buffer.from(file.sha256Hash ?? '', 'base64').toString()).toMatch(/^[0-9a-f]{64}$/);
    expect(await ai.files.get({ name: file.name ?? '' })).toEqual(file);
    expect(await storedOf(client)).toEqual([]); // no chunk is left
    const others = await Promise.all(
      [1, 2].map((each) => ai.files.upload({ file: blob(wav(each)), config: { mimeType: 'audio/wav' } })),
    );
    const names: (string | undefined)[] = [];
    for await (const each of await ai.files.list({ config: { pageSize: 2 } })) names.push(each.name);
    expect(names.toSorted()).toEqual([file, ...others].map(({ name }) => name).toSorted());
    const bytes = await client.call('GET', `/v1beta/${file.name}:download?alt=media`);
    expect(bytes.text).toBe(pdf.toString());
    await ai.files.delete({ name: file.name ?? '' });
    await expect(ai.files.get({ name: file.name ?? '' })).rejects.toMatchObject({ status: 404 });
  });

  test('sends a file of several chunks, which is whole', async () => {
    const client = await service.client();
    const bytes = wav(1_100, 8_000); // 17.6 MB: chunks of 8 MiB
    const file = await sdkOf(client).files.upload({ file: blob(bytes), config: { mimeType: 'audio/wav' } });
    expect(file).toMatchObject({ sizeBytes: String(bytes.length), mimeType: 'audio/wav' });
    const { text } = await client.call('GET', `/v1/files/${file.name?.slice('files/'.length)}`);
    expect(JSON.parse(text)).toMatchObject({ bytes: bytes.length, duration: 1_100, kind: 'audio' });
    const parts = await service.app.db.query('select id from upload_parts where account_id = $1', [client.account_id]);
    expect(parts).toHaveLength(3);
    expect(await storedOf(client)).toEqual([]);
  });

  test('names a file as it likes, and once', async () => {
    const client = await service.client();
    const ai = sdkOf(client);
    const upload = () => ai.files.upload({ file: blob(png), config: { name: 'my-logo', mimeType: 'image/png' } });
    const file = await upload();
    expect(file.name).toBe('files/my-logo');
    expect(await ai.files.get({ name: 'my-logo' })).toEqual(file);
    await expect(upload()).rejects.toMatchObject({ status: 409 });
    await ai.files.delete({ name: 'files/my-logo' });
    expect((await upload()).name).toBe('files/my-logo'); // free again
    const other = sdkOf(await service.client());
    await expect(other.files.get({ name: 'my-logo' })).rejects.toMatchObject({ status: 404 });
    await expect(
      ai.files.upload({ file: blob(png), config: { name: 'My Logo', mimeType: 'image/png' } }),
    ).rejects.toThrow(/file\.name must be files\/ and up to 40/);
  });

  test('does the same in version v1, which is the one of the SDK for Python', async () => {
    const client = await service.client();
    const call = async (method: string, path: string, headers: Record<string, string> = {}, bytes?: Buffer) => {
      const body = bytes && new Uint8Array(bytes);
      const own = { 'x-goog-api-key': client.key, ...headers };
      const answer = await fetch(service.url + path, { method, headers: own, ...(body && { body }) });
      return { status: answer.status, headers: answer.headers, text: await answer.text() };
    };
    const start = { 'x-goog-upload-protocol': 'resumable', 'x-goog-upload-command': 'start' };
    const begun = await call('POST', '/upload/v1/files', start, Buffer.from('{"file":{"name":"files/doc"}}'));
    const url = begun.headers.get('x-goog-upload-url') ?? '';
    const { file } = await put(url, pdf, { command: 'upload, finalize', offset: 0 });
    expect(JSON.parse((await call('GET', '/v1/files/doc')).text)).toEqual(file);
    expect(JSON.parse((await call('GET', '/v1/files?pageSize=5')).text)).toEqual({ files: [file] });
    expect((await call('GET', '/v1/files/doc:download?alt=media')).text).toBe(pdf.toString());
    expect((await call('DELETE', '/v1/files/doc')).text).toBe('{}');
    expect((await call('GET', '/v1/files/doc')).status).toBe(404);
    const wrong = await fetch(`${service.url}/upload/v1/files`, { method: 'POST' });
    expect([wrong.status, JSON.parse(await wrong.text()).error.status]).toEqual([401, 'UNAUTHENTICATED']);
  });

  test('gets the length of a video', async () => {
    const file = await sdkOf(await service.client()).files.upload({
      file: blob(await mp4(64, 48, 30)),
      config: { mimeType: 'video/mp4' },
    });
    expect(file).toMatchObject({
      mimeType: 'video/mp4',
      videoMetadata: { videoDuration: expect.stringMatching(/s$/) },
    });
  });

  test.each([
    ['acme/oai', (body: unknown) => JSON.stringify(body).includes('"type":"file"')],
    ['acme/ant', (body: unknown) => JSON.stringify(body).includes('"media_type":"application/pdf"')],
    ['acme/res', (body: unknown) => JSON.stringify(body).includes('"type":"input_file"')],
    ['acme/gem', (body: unknown) => JSON.stringify(body).includes('"mimeType":"application/pdf"')],
  ])('has a file answered by %s, whose upstream gets its bytes', async (model, isThere) => {
    const ai = sdkOf(stage.client);
    const file = await ai.files.upload({ file: blob(pdf), config: { mimeType: 'application/pdf' } });
    const part = createPartFromUri(file.uri ?? '', file.mimeType ?? '');
    const answer = await ai.models.generateContent({ model, contents: [part, 'What is it?'] });
    expect(answer.text).toBe('Hi');
    expect(isThere(lastRequest()?.body)).toBe(true);
    expect(JSON.stringify(lastRequest()?.body)).toContain(pdf.toString('base64'));
    await ai.files.delete({ name: file.name ?? '' });
    await expect(ai.models.generateContent({ model, contents: [part] })).rejects.toMatchObject({ status: 400 });
  });

  test('uploads at nodes in turn, as behind a balancer', async () => {
    const client = await service.client();
    const second = await service.beside();
    try {
      const begun = await begin(client, { size: pdf.length });
      const elsewhere = begun.url.replace(service.url, second.url);
      const half = 20;
      expect((await put(elsewhere, pdf.subarray(0, half), { command: 'upload', offset: 0 })).state).toBe('active');
      const asked_here = await put(begun.url, undefined, { command: 'query' });
      expect([asked_here.state, asked_here.received]).toEqual(['active', '20']);
      const whole = await put(begun.url, pdf.subarray(half), { command: 'upload, finalize', offset: half });
      expect([whole.status, whole.state, whole.file?.sizeBytes]).toEqual([200, 'final', String(pdf.length)]);
      const { text } = await client.call('GET', `/v1beta/${whole.file?.name}:download`);
      expect(text).toBe(pdf.toString());
    } finally {
      await second.stop();
    }
  });
});

type Begun = { status: number; url: string; headers: Headers; json: { error?: { message: string; status: string } } };

async function begin(
  client: Client,
  { size, headers = {}, body = {} }: { size?: number; headers?: Record<string, string>; body?: object } = {},
): Promise<Begun> {
  const answer = await fetch(`${service.url}/upload/v1beta/files?key=${client.key}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-goog-upload-protocol': 'resumable',
      'x-goog-upload-command': 'start',
      ...(size !== undefined && { 'x-goog-upload-header-content-length': String(size) }),
      ...headers,
    },
    body: JSON.stringify(body),
  });
  const json = (await answer.json()) as Begun['json'];
  return { status: answer.status, url: answer.headers.get('x-goog-upload-url') ?? '', headers: answer.headers, json };
}

type Put = {
  status: number;
  state: string | null;
  received: string | null;
  file: GeminiFile | undefined;
  error: string;
};

async function put(
  url: string,
  bytes: Buffer | undefined,
  { command, offset }: { command: string; offset?: number },
): Promise<Put> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'x-goog-upload-command': command,
      ...(offset !== undefined && { 'x-goog-upload-offset': String(offset) }),
    },
    ...(bytes && { body: new Uint8Array(bytes) }),
  });
  const json = (await answer.json()) as { file?: GeminiFile; error?: { message: string } };
  const { headers } = answer;
  return {
    status: answer.status,
    state: headers.get('x-goog-upload-status'),
    received: headers.get('x-goog-upload-size-received'),
    file: json.file,
    error: json.error?.message ?? '',
  };
}

describe('the address of an upload', () => {
  test('has neither the key nor another secret of the account, and needs no key', async () => {
    const client = await service.client();
    const { url, headers, status } = await begin(client, { size: pdf.length });
    expect(status).toBe(200);
    expect([...headers.values()].join(' ')).not.toContain(client.key);
    expect(headers.get('x-goog-upload-status')).toBe('active');
    expect(headers.get('cache-control')).toBe('no-store');
    const done = await put(url, pdf, { command: 'upload, finalize', offset: 0 });
    expect([done.status, done.state, done.file?.mimeType]).toEqual([200, 'final', 'application/pdf']);
  });

  test('opens its own upload alone, in one spelling', async () => {
    const client = await service.client();
    const { url } = await begin(client, { size: pdf.length });
    const other = await begin(await service.client(), { size: pdf.length });
    const wrong = [
      url.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
      url.replace(/\?.*/, ''),
      url.replace(/\?.*/, '?sig='),
      `${url.replace(/\?.*/, '')}?${other.url.split('?')[1]}`,
      url.replace(/upload_\w+/, newId('upload')),
      url.replace(/acct_\w+/, newId('acct')),
      url.replace(/upload_\w+/, '..%2F..'),
    ];
    for (const each of wrong) {
      const answer = await put(each, pdf, { command: 'upload, finalize', offset: 0 });
      expect([answer.status, answer.state, answer.file]).toEqual([404, 'final', undefined]);
    }
    expect((await put(url, undefined, { command: 'query' })).received).toBe('0');
  });

  test('is where the caller reaches the service: the configured address, else the host that it called', async () => {
    const client = await service.client();
    const behind = await begin(client, { size: 5, headers: { 'x-forwarded-proto': 'https' } });
    expect(behind.url).toMatch(new RegExp(`^${service.url.replace('http:', 'https:')}/upload/v1beta/files/acct_`));
    const configured = await service.beside({ env: { MEDLEY_BASE_URL: 'https://ai.example.com/medley' } });
    try {
      const answer = await fetch(`${configured.app.local_url()}/upload/v1beta/files`, {
        method: 'POST',
        headers: {
          'x-goog-api-key': client.key,
          'x-goog-upload-protocol': 'resumable',
          'x-goog-upload-command': 'start',
        },
      });
      expect(answer.headers.get('x-goog-upload-url')).toMatch(
        /^https:\/\/ai\.example\.com\/medley\/upload\/v1beta\/files\/acct_/,
      );
    } finally {
      await configured.stop();
    }
  });

  test('ends with its key, and with the account', async () => {
    const client = await service.client();
    const { url } = await begin(client, { size: pdf.length });
    await service.app.db.query("update accounts set status = 'blocked' where id = $1", [client.account_id]);
    expect((await put(url, pdf, { command: 'upload, finalize', offset: 0 })).status).toBe(403);
    await service.app.db.query("update accounts set status = 'active' where id = $1", [client.account_id]);
    await deleteKey(service.app.db, client.key_id, new Date());
    const answer = await put(url, pdf, { command: 'upload, finalize', offset: 0 });
    expect([answer.status, answer.state]).toEqual([401, 'final']);
  });

  test('is given to nobody without a key, and none whose key makes no media', async () => {
    const answer = await fetch(`${service.url}/upload/v1beta/files`, { method: 'POST' });
    const body = (await answer.json()) as { error: { status: string } };
    expect([answer.status, body.error.status]).toEqual([401, 'UNAUTHENTICATED']);
    const client = await service.client();
    await service.app.db.query("update api_keys set scopes = '{chat}' where id = $1", [client.key_id]);
    expect((await begin(client)).status).toBe(403);
    expect((await client.call('GET', '/v1beta/files')).status).toBe(403);
  });
});

describe('chunks', () => {
  test('that come again are skipped, and one behind a gap is refused and says where to go on', async () => {
    const client = await service.client();
    const { url } = await begin(client, { size: pdf.length });
    await put(url, pdf.subarray(0, 20), { command: 'upload', offset: 0 });
    const again = await put(url, pdf.subarray(0, 20), { command: 'upload', offset: 0 });
    expect([again.status, again.state, again.received]).toEqual([200, 'active', '20']);
    const overlapping = await put(url, pdf.subarray(10, 30), { command: 'upload', offset: 10 });
    expect([overlapping.status, overlapping.received]).toEqual([200, '30']);
    const gap = await put(url, pdf.subarray(40), { command: 'upload, finalize', offset: 40 });
    expect([gap.status, gap.state, gap.received]).toEqual([400, 'active', '30']);
    expect(gap.error).toBe('The chunk begins at byte 40, but 30 have arrived. Go on there.');
    const early = await put(url, undefined, { command: 'finalize' });
    expect([early.status, early.state]).toEqual([400, 'active']);
    const whole = await put(url, pdf.subarray(30), { command: 'upload, finalize', offset: 30 });
    expect(whole.state).toBe('final');
    const repeated = await put(url, pdf.subarray(30), { command: 'upload, finalize', offset: 30 });
    expect(repeated).toEqual(whole); // the first answer may have been lost
    const { text } = await client.call('GET', `/v1beta/${whole.file?.name}:download`);
    expect(text).toBe(pdf.toString());
  });

  test('that come at the same moment make one file', async () => {
    const client = await service.client();
    const { url } = await begin(client, { size: pdf.length });
    const second = await service.beside();
    try {
      const urls = [0, 1, 2, 3].map((each) => (each % 2 === 0 ? url : url.replace(service.url, second.url)));
      const answers = await Promise.all(urls.map((each) => put(each, pdf, { command: 'upload, finalize', offset: 0 })));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect(new Set(answers.map(({ file }) => file?.name)).size).toBe(1);
      const { text } = await client.call('GET', '/v1/files');
      expect(JSON.parse(text).data).toHaveLength(1);
      expect(
        await service.app.db.query('select id from files where account_id = $1', [client.account_id]),
      ).toHaveLength(1);
    } finally {
      await second.stop();
    }
  });

  test('of a connection that breaks count as far as they came', async () => {
    const client = await service.client();
    const { url } = await begin(client, { size: pdf.length });
    const sending = request(url, {
      method: 'POST',
      headers: {
        'content-length': pdf.length,
        'x-goog-upload-command': 'upload, finalize',
        'x-goog-upload-offset': 0,
      },
    });
    sending.on('error', () => {}).write(pdf.subarray(0, 30));
    await expect.poll(sizesOnDisk).toEqual([30]);
    sending.destroy();
    const received = async () => (await put(url, undefined, { command: 'query' })).received;
    await expect.poll(received).toBe('30');
    const whole = await put(url, pdf.subarray(30), { command: 'upload, finalize', offset: 30 });
    expect([whole.state, whole.file?.sizeBytes]).toEqual(['final', String(pdf.length)]);
  });

  test.each<[string, number | undefined, Buffer, number, string]>([
    ['more bytes than were announced', 10, pdf, 413, 'The file has more bytes than the 10 that were announced.'],
    [
      'more bytes than a file may have',
      undefined,
      Buffer.alloc(20_000_001, 'a'),
      413,
      'A file may have at most 20 MB.',
    ],
    ['bytes of no known format', 6, Buffer.from([0, 1, 2, 3, 4, 5]), 422, 'file is of no known'],
    ['nothing', undefined, Buffer.alloc(0), 422, 'file is empty.'],
  ])('with %s end the upload, and nothing is left of it', async (_, size, bytes, status, problem) => {
    const client = await service.client();
    const { url } = await begin(client, size === undefined ? {} : { size });
    const answer = await put(url, bytes, { command: 'upload, finalize', offset: 0 });
    expect([answer.status, answer.state]).toEqual([status, 'final']);
    expect(answer.error).toContain(problem);
    expect((await put(url, undefined, { command: 'query' })).state).toBe('cancelled');
    expect(await storedOf(client)).toEqual([]);
  });

  test.each([
    [{ command: 'append', offset: 0 }, 'x-goog-upload-command must be upload'],
    [{ command: '', offset: 0 }, 'x-goog-upload-command must be upload'],
    [{ command: 'upload' }, 'x-goog-upload-offset must say at which byte'],
    [{ command: 'upload', offset: -1 }, 'x-goog-upload-offset must say at which byte'],
    [{ command: 'upload', offset: 1e21 }, 'x-goog-upload-offset must say at which byte'],
  ])('with the headers %j are refused, and the upload goes on', async (headers, problem) => {
    const client = await service.client();
    const { url } = await begin(client, { size: pdf.length });
    const answer = await put(url, pdf, headers);
    expect(answer.status).toBe(400);
    expect(answer.error).toContain(problem);
    expect((await put(url, undefined, { command: 'query' })).state).toBe('active');
  });

  test('come no more once the upload is cancelled', async () => {
    const client = await service.client();
    const { url } = await begin(client, { size: pdf.length });
    await put(url, pdf.subarray(0, 20), { command: 'upload', offset: 0 });
    expect(await storedOf(client)).toHaveLength(1);
    expect((await put(url, undefined, { command: 'cancel' })).state).toBe('cancelled');
    expect(await storedOf(client)).toEqual([]);
    const late = await put(url, pdf.subarray(20), { command: 'upload, finalize', offset: 20 });
    expect([late.status, late.error]).toEqual([400, 'The upload has ended. Begin another one.']);
  });
});

describe('uploads that are not finished', () => {
  test('count in the limits of their account, with what they announced or sent', async () => {
    const client = await service.client();
    expect((await begin(client, { size: 20_000_001 })).json.error?.message).toBe('A file may have at most 20 MB.');
    expect((await begin(client, { size: 20_000_000 })).status).toBe(200);
    const much = await begin(client, { size: 15_000_000 });
    expect([much.status, much.json.error?.status]).toEqual([413, 'INVALID_ARGUMENT']);
    const unsized = await begin(client);
    const answer = await put(unsized.url, Buffer.alloc(12_000_000, 'a'), { command: 'upload', offset: 0 });
    expect([answer.status, answer.state]).toEqual([413, 'final']);
    for (let count = 0; count < 7; count += 1) expect((await begin(client, { size: 1 })).status).toBe(200);
    const many = await begin(client, { size: 1 });
    expect(many.json.error?.message).toContain('at most 8 files');
    const form = new FormData();
    form.set('file', new File([new Uint8Array(png)], 'a.png'));
    const headers = { authorization: `Bearer ${client.key}` };
    expect((await fetch(`${service.url}/v1/files`, { method: 'POST', headers, body: form })).status).toBe(413);
  });

  test('are removed an hour after they began, with all that is stored of them', async () => {
    const client = await service.client();
    const { url } = await begin(client, { size: pdf.length });
    await put(url, pdf.subarray(0, 20), { command: 'upload', offset: 0 });
    const later = (minutes: number) => new Date(Date.now() + minutes * 60_000);
    await removeOldUploads(service.app, later(70));
    expect(await storedOf(client)).toHaveLength(1); // a chunk may still be on its way
    await removeOldUploads(service.app, later(80));
    expect((await put(url, undefined, { command: 'query' })).status).toBe(404);
    expect(
      await service.app.db.query('select id from upload_parts where account_id = $1', [client.account_id]),
    ).toEqual([]);
    const files = await service.app.storage.list(client.account_id, /upload_\w+/.exec(url)?.[0] ?? '');
    expect(files).toEqual([]);
  });

  test('live on while chunks come', async () => {
    const client = await service.client();
    const { url } = await begin(client, { size: pdf.length });
    await service.app.db.query(
      "update upload_sessions set expires_at = now() + interval '1 min' where account_id = $1",
      [client.account_id],
    );
    await put(url, pdf.subarray(0, 20), { command: 'upload', offset: 0 });
    const [row] = await service.app.db.query<{ expires_at: Date }>(
      'select expires_at from upload_sessions where account_id = $1',
      [client.account_id],
    );
    expect(row?.expires_at.getTime()).toBeGreaterThan(Date.now() + 3_500_000);
    await service.app.db.query("update upload_sessions set expires_at = now() - interval '1 s' where account_id = $1", [
      client.account_id,
    ]);
    const late = await put(url, pdf.subarray(20), { command: 'upload, finalize', offset: 20 });
    expect(late.status).toBe(400);
    expect((await put(url, undefined, { command: 'query' })).state).toBe('cancelled');
  });
});

describe('an upload in one request', () => {
  const send = async (client: Client, headers: Record<string, string>, body: Buffer | string, query = '') => {
    const answer = await fetch(`${service.url}/upload/v1beta/files${query}`, {
      method: 'POST',
      headers: { 'x-goog-api-key': client.key, ...headers },
      body: new Uint8Array(Buffer.from(body)),
    });
    const json = (await answer.json()) as { file?: GeminiFile; error?: { message: string } };
    return { status: answer.status, ...json };
  };
  const related = (about: string, bytes: Buffer, tail = '\r\n--B--\r\n') =>
    Buffer.concat([
      Buffer.from(
        `--B\r\nContent-Type: application/json; charset=utf-8\r\n\r\n${about}\r\n--B\r\nContent-Type: x/y\r\n\r\n`,
      ),
      bytes,
      Buffer.from(tail),
    ]);
  const multipart = { 'x-goog-upload-protocol': 'multipart', 'content-type': 'multipart/related; boundary="B"' };

  test('is JSON and the file, or the file alone', async () => {
    const client = await service.client();
    const about = JSON.stringify({ file: { display_name: 'logo', name: 'files/logo' } });
    const two = await send(client, multipart, related(about, png));
    expect(two).toMatchObject({
      status: 200,
      file: { name: 'files/logo', displayName: 'logo', mimeType: 'image/png' },
    });
    const { 'content-type': type } = multipart;
    expect(await send(client, { 'content-type': type }, related('{}', png), '?uploadType=multipart')).toMatchObject({
      status: 200,
      file: { displayName: 'file', sizeBytes: String(png.length) },
    });
    const raw = { 'x-goog-upload-protocol': 'raw', 'x-goog-upload-file-name': 'a/b.json', 'content-type': 'text/html' };
    expect(await send(client, raw, '{"a":1}')).toMatchObject({
      status: 200,
      file: { displayName: 'b.json', mimeType: 'application/json' },
    });
  });

  test.each<[string, Record<string, string>, Buffer | string, number, string]>([
    ['of no protocol', {}, pdf, 400, 'Set the header X-Goog-Upload-Protocol'],
    [
      'of another type',
      { ...multipart, 'content-type': 'multipart/form-data; boundary=B' },
      pdf,
      415,
      'multipart/related',
    ],
    ['without a boundary', { ...multipart, 'content-type': 'multipart/related' }, pdf, 400, 'has no boundary'],
    ['that is cut off', multipart, related('{}', pdf, ''), 400, 'it ends too early'],
    ['that is no form at all', multipart, 'hello', 400, 'cannot be read'],
    ['with JSON that is broken', multipart, related('{', pdf), 400, 'JSON'],
    ['with a third part', multipart, related('{}', pdf, '\r\n--B\r\n\r\nx\r\n--B--\r\n'), 400, 'more than two parts'],
    ['with JSON alone', multipart, '--B\r\n\r\n{}\r\n--B--\r\n', 400, 'no second part'],
    [
      'with much JSON',
      multipart,
      related(`{"a":"${'a'.repeat(70_000)}"}`, pdf),
      400,
      'its first part has more than 64 KiB',
    ],
    ['that is too large', multipart, related('{}', Buffer.alloc(20_000_001, 'a')), 413, 'at most 20 MB'],
    [
      'that is compressed',
      { ...multipart, 'content-encoding': 'gzip' },
      related('{}', pdf),
      415,
      'without content-encoding',
    ],
    ['of no known format', { 'x-goog-upload-protocol': 'raw' }, Buffer.from([0, 1, 2]), 422, 'no known'],
  ])('%s is refused', async (_, headers, body, status, problem) => {
    const client = await service.client();
    const answer = await send(client, headers, body);
    expect([answer.status, answer.error?.message]).toEqual([status, expect.stringContaining(problem)]);
    expect(await service.app.db.query('select id from files where account_id = $1', [client.account_id])).toEqual([]);
  });
});

test.each([
  ['GET', '/v1beta/files?pageSize=0', 400],
  ['GET', '/v1beta/files?pageSize=101', 400],
  ['GET', '/v1beta/files?pageToken=x', 400],
  ['GET', `/v1beta/files/${newId('file')}`, 404],
  ['GET', '/v1beta/files/%00', 404],
  ['DELETE', '/v1beta/files/My', 404],
  ['POST', '/v1beta/files/x', 405],
  ['GET', '/upload/v1beta/nothing', 404],
])('%s %s is %i, in the format of the style', async (method, path, status) => {
  const answer = await stage.client.call(method, path);
  const { error } = JSON.parse(answer.text) as { error: { code: number; status: string } };
  expect([answer.status, error.code]).toEqual([status, status]);
});
