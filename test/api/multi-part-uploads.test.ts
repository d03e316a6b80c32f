import { createHash } from 'node:crypto';
import OpenAI6 from 'openai-6';
import OpenAI7 from 'openai-7';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeOldUploads } from '../../src/files/upload-sessions.ts';
import { newId } from '../../src/lib/ids.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';

/** Uploads in parts, as OpenAI's SDKs make them. */

let service: TestApp;

const yaml = `version: 1\n${limits()}\nfiles: { file_mb_max: 70, account_mb_max: 150, account_files_max: 5, keep: 2d }\n`;
const text = Array.from({ length: 100 }, (_, index) => `${index}. Grüße an Łódź. `).join('');
const bytes = Buffer.from(text);
const part_bytes = 400;
const pieces = Array.from({ length: Math.ceil(bytes.length / part_bytes) }, (_, index) =>
  bytes.subarray(index * part_bytes, (index + 1) * part_bytes),
);

beforeAll(async () => {
  service = await startTestApp({ yaml });
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

const fileOf = (piece: Buffer) => new File([new Uint8Array(piece)], 'blob');
const md5 = (content: Buffer) => createHash('md5').update(content).digest('hex');
const announced = {
  bytes: bytes.length,
  filename: 'greeting.txt',
  mime_type: 'text/plain',
  purpose: 'user_data',
} as const;

function sdkOf({ key }: Client, url = service.url, maxRetries = 0): OpenAI7 {
  return new OpenAI7({ apiKey: key, baseURL: `${url}/v1`, maxRetries });
}

/** Keys of what is stored of an upload. */
function storedOf({ account_id }: Client, upload_id: string): Promise<string[]> {
  return service.app.storage.list(account_id, upload_id);
}

describe.each([
  ['openai 6', OpenAI6],
  ['openai 7', OpenAI7],
] as const)('the SDK %s', (_name, OpenAI) => {
  it('uploads a file in parts that arrive in any order', async () => {
    const client = await service.client();
    const sdk = new OpenAI({ apiKey: client.key, baseURL: `${service.url}/v1`, maxRetries: 0 });
    const upload = await sdk.uploads.create({
      ...announced,
      expires_after: { anchor: 'created_at', seconds: 3600 },
    });
    expect(upload).toEqual({
      id: expect.stringMatching(/^upload_[0-9a-z]{26}$/),
      object: 'upload',
      bytes: bytes.length,
      created_at: upload.created_at,
      expires_at: upload.created_at + 3600,
      filename: 'greeting.txt',
      purpose: 'user_data',
      status: 'pending',
      file: null,
    });
    const parts = await Promise.all(
      pieces.toReversed().map((piece) => sdk.uploads.parts.create(upload.id, { data: fileOf(piece) })),
    );
    expect(parts[0]).toMatchObject({ object: 'upload.part', upload_id: upload.id });
    expect(await storedOf(client, upload.id)).toHaveLength(pieces.length);
    const part_ids = parts.map(({ id }) => id).toReversed();
    const done = await sdk.uploads.complete(upload.id, { part_ids, md5: md5(bytes) });
    expect(done).toMatchObject({
      id: upload.id,
      status: 'completed',
      file: {
        object: 'file',
        bytes: bytes.length,
        filename: 'greeting.txt',
        content_type: 'text/plain; charset=utf-8',
      },
    });
    const { file } = done;
    expect(file?.expires_at).toBe((file?.created_at ?? 0) + 3600);
    const content = await sdk.files.content(file?.id ?? '');
    expect(await content.text()).toBe(text);
    expect(await storedOf(client, upload.id)).toEqual([]);
    expect(await sdk.uploads.complete(upload.id, { part_ids })).toEqual(done); // its answer may have been lost
    const cancel = sdk.uploads.cancel(upload.id);
    await expect(cancel).rejects.toMatchObject({ status: 400, code: 'upload_ended' });
  });

  it('cancels an upload, whose parts are gone', async () => {
    const client = await service.client();
    const sdk = new OpenAI({ apiKey: client.key, baseURL: `${service.url}/v1`, maxRetries: 0 });
    const upload = await sdk.uploads.create(announced);
    await sdk.uploads.parts.create(upload.id, { data: fileOf(bytes) });
    expect(await sdk.uploads.cancel(upload.id)).toEqual({ ...upload, status: 'cancelled' });
    expect(await storedOf(client, upload.id)).toEqual([]);
    expect(await sdk.uploads.cancel(upload.id)).toMatchObject({ status: 'cancelled' });
    for (const late of [
      () => sdk.uploads.parts.create(upload.id, { data: fileOf(bytes) }),
      () => sdk.uploads.complete(upload.id, { part_ids: ['part_x'] }),
    ])
      await expect(late()).rejects.toMatchObject({ status: 400, message: expect.stringContaining('is cancelled') });
  });
});

describe('an upload in parts', () => {
  it('is taken by several nodes', async () => {
    const client = await service.client();
    const second = await service.beside();
    try {
      const here = sdkOf(client);
      const there = sdkOf(client, second.url);
      const upload = await here.uploads.create(announced);
      const part_ids: string[] = [];
      for (const [index, piece] of pieces.entries()) {
        const sdk = index % 2 === 0 ? here : there;
        part_ids.push((await sdk.uploads.parts.create(upload.id, { data: fileOf(piece) })).id);
      }
      const completions = [here, there, here, there].map((sdk) => sdk.uploads.complete(upload.id, { part_ids }));
      const done = await Promise.all(completions);
      expect(new Set(done.map(({ file }) => file?.id)).size).toBe(1);
      expect(
        await service.app.db.query('select id from files where account_id = $1', [client.account_id]),
      ).toHaveLength(1);
      expect(await (await there.files.content(done[0]?.file?.id ?? '')).text()).toBe(text);
    } finally {
      await second.stop();
    }
  });

  it('takes large parts, and a file of several', async () => {
    const client = await service.client();
    const sdk = sdkOf(client);
    const large = Buffer.alloc(67_000_000, text);
    const upload = await sdk.uploads.create({ ...announced, bytes: large.length, filename: 'a.jsonl' });
    const first = await sdk.uploads.parts.create(upload.id, { data: fileOf(large.subarray(0, 64_000_000)) });
    const rest = await sdk.uploads.parts.create(upload.id, { data: fileOf(large.subarray(64_000_000)) });
    const { file } = await sdk.uploads.complete(upload.id, { part_ids: [first.id, rest.id], md5: md5(large) });
    expect(file).toMatchObject({ bytes: large.length, kind: 'document', content_type: 'application/jsonl' });
    const other = await sdk.uploads.create({ ...announced, bytes: 64_000_001 });
    const part = sdk.uploads.parts.create(other.id, { data: fileOf(Buffer.alloc(64_000_001, 'a')) });
    await expect(part).rejects.toMatchObject({ status: 413 });
    expect(await storedOf(client, other.id)).toEqual([]);
  });

  it('goes on after a completion that is refused', async () => {
    const client = await service.client();
    const sdk = sdkOf(client);
    const upload = await sdk.uploads.create(announced);
    const half = Math.floor(bytes.length / 2);
    const a = await sdk.uploads.parts.create(upload.id, { data: fileOf(bytes.subarray(0, half)) });
    const b = await sdk.uploads.parts.create(upload.id, { data: fileOf(bytes.subarray(half)) });
    const refused: [object, number, string, string][] = [
      [{ part_ids: [a.id] }, 400, 'part_ids', `name ${half} bytes, but the upload was announced with ${bytes.length}`],
      [{ part_ids: [a.id, a.id] }, 400, 'part_ids[1]', 'or one a second time'],
      [{ part_ids: [a.id, newId('part')] }, 400, 'part_ids[1]', 'names no part of this upload'],
      [{ part_ids: [a.id, 7] }, 400, 'part_ids[1]', 'must be the id of a part'],
      [{ part_ids: [] }, 400, 'part_ids', 'is required'],
      [{}, 400, 'part_ids', 'is required'],
      [{ part_ids: a.id }, 400, 'part_ids', 'must be an array'],
      [{ part_ids: [a.id, b.id], md5: 'x' }, 400, 'md5', '32 hex digits'],
      [{ part_ids: [b.id, a.id], md5: md5(bytes) }, 400, 'md5', 'is not the one of the file'],
    ];
    for (const [body, status, param, problem] of refused) {
      const answer = await client.call('POST', `/v1/uploads/${upload.id}/complete`, body);
      expect([answer.status, answer.json.error.param]).toEqual([status, param]);
      expect(answer.json.error.message).toContain(problem);
    }
    const done = await sdk.uploads.complete(upload.id, { part_ids: [a.id, b.id], md5: md5(bytes).toUpperCase() });
    expect(done.status).toBe('completed');
  });

  it('of bytes that are no file Medley takes is refused when it is completed', async () => {
    const client = await service.client();
    const sdk = sdkOf(client);
    const upload = await sdk.uploads.create({ ...announced, bytes: 4 });
    const part = await sdk.uploads.parts.create(upload.id, { data: fileOf(Buffer.from([0, 1, 2, 3])) });
    const completing = sdk.uploads.complete(upload.id, { part_ids: [part.id] });
    await expect(completing).rejects.toMatchObject({ status: 422, param: 'file' });
    expect(await service.app.db.query('select id from files where account_id = $1', [client.account_id])).toEqual([]);
  });

  it.each<[object, string]>([
    [{ bytes: 0 }, 'bytes'],
    [{ bytes: 1.5 }, 'bytes'],
    [{ bytes: '7' }, 'bytes'],
    [{ bytes: null }, 'bytes'],
    [{ filename: '' }, 'filename'],
    [{ filename: 7 }, 'filename'],
    [{ purpose: 'A b' }, 'purpose'],
    [{ purpose: null }, 'purpose'],
    [{ mime_type: 7 }, 'mime_type'],
    [{ expires_after: 7 }, 'expires_after'],
    [{ expires_after: { seconds: 3600 } }, 'expires_after.anchor'],
    [{ expires_after: { anchor: 'created_at', seconds: 59 } }, 'expires_after.seconds'],
    [{ expires_after: { anchor: 'created_at' } }, 'expires_after.seconds'],
  ])('with the fields %j is refused', async (fields, param) => {
    const client = await service.client();
    const answer = await client.call('POST', '/v1/uploads', { ...announced, ...fields });
    expect([answer.status, answer.json.error.param]).toEqual([400, param]);
  });

  it('has parts of its own field and of some bytes', async () => {
    const client = await service.client();
    const upload = await sdkOf(client).uploads.create(announced);
    const send = async (name: string, piece: Buffer) => {
      const form = new FormData();
      form.set(name, fileOf(piece));
      const headers = { authorization: `Bearer ${client.key}` };
      const url = `${service.url}/v1/uploads/${upload.id}/parts`;
      const answer = await fetch(url, { method: 'POST', headers, body: form });
      return [answer.status, ((await answer.json()) as { error: { message: string } }).error.message];
    };
    expect(await send('file', bytes)).toEqual([400, 'data is missing: the form needs the bytes of the part in it.']);
    expect(await send('data', Buffer.alloc(0))).toEqual([400, 'data is empty.']);
    const answer = await client.call('POST', `/v1/uploads/${upload.id}/parts`, {});
    expect(answer.status).toBe(415);
  });

  it('holds twice what it announced at most: parts may come again', async () => {
    const client = await service.client();
    const sdk = sdkOf(client);
    const upload = await sdk.uploads.create(announced);
    await sdk.uploads.parts.create(upload.id, { data: fileOf(bytes) });
    const again = await sdk.uploads.parts.create(upload.id, { data: fileOf(bytes) });
    const third = sdk.uploads.parts.create(upload.id, { data: fileOf(Buffer.from('x')) });
    await expect(third).rejects.toMatchObject({ status: 400, param: 'data' });
    expect(await storedOf(client, upload.id)).toHaveLength(2);
    expect((await sdk.uploads.complete(upload.id, { part_ids: [again.id] })).status).toBe('completed');
  });

  it('counts in the limits of its account until it ends', async () => {
    const client = await service.client();
    const sdk = sdkOf(client);
    const create = (size: number) => sdk.uploads.create({ ...announced, bytes: size });
    await expect(create(70_000_001)).rejects.toMatchObject({ status: 413 });
    const [first] = [await create(70_000_000), await create(70_000_000)];
    await expect(create(20_000_000)).rejects.toMatchObject({ status: 413, code: 'files_limit' });
    await sdk.uploads.cancel(first?.id ?? '');
    for (let count = 0; count < 4; count += 1) await create(1);
    await expect(create(1)).rejects.toMatchObject({ status: 413, message: expect.stringContaining('at most 5 files') });
  });

  it('expires after an hour, and is removed with its parts', async () => {
    const client = await service.client();
    const sdk = sdkOf(client);
    const upload = await sdk.uploads.create(announced);
    const { id: part_id } = await sdk.uploads.parts.create(upload.id, { data: fileOf(bytes) });
    await service.app.db.query("update upload_sessions set expires_at = now() - interval '1 s' where id = $1", [
      upload.id,
    ]);
    const completing = sdk.uploads.complete(upload.id, { part_ids: [part_id] });
    await expect(completing).rejects.toMatchObject({ status: 400, message: expect.stringContaining('is expired') });
    await removeOldUploads(service.app, new Date(Date.now() + 1_000_000));
    expect(await storedOf(client, upload.id)).toEqual([]);
    await expect(sdk.uploads.cancel(upload.id)).rejects.toMatchObject({ status: 404 });
  });

  it('belongs to its account', async () => {
    const upload = await sdkOf(await service.client()).uploads.create(announced);
    const other = sdkOf(await service.client());
    for (const call of [
      () => other.uploads.parts.create(upload.id, { data: fileOf(bytes) }),
      () => other.uploads.complete(upload.id, { part_ids: ['part_x'] }),
      () => other.uploads.cancel(upload.id),
      () => other.uploads.cancel('upload_x'),
    ])
      await expect(call()).rejects.toMatchObject({ status: 404 });
  });
});
