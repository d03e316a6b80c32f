import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AssertionError } from '../../src/lib/assert.ts';
import { parseKey } from '../../src/storage/key.ts';
import { FileTooLarge, type Storage } from '../../src/storage/storage.ts';
import { newKey } from './samples.ts';

/** A storage on trial, and what a caller of `Storage` cannot see of it. */
export type Subject = {
  storage: Storage;
  /** Number of unfinished files that puts have left behind. */
  leftovers(): Promise<number>;
  stop(): Promise<void>;
};

const options = { content_type: 'image/png', size_limit_bytes: 50_000_000 };

/** Vitest's own comparison takes seconds for a megabyte. */
export function same(bytes: Buffer | undefined, expected: Buffer): boolean {
  return bytes?.equals(expected) ?? false;
}

/** Reads a whole file, or a part of it. */
export async function read(storage: Storage, key: string, range?: { start: number; end: number }) {
  const opened = await storage.open(key, range);
  return opened && buffer(opened.stream);
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

const part = 5 * 2 ** 20;

/** Tests that every storage passes, whatever is behind it. */
export function storageConformance(name: string, open: () => Promise<Subject>): void {
  describe(`${name} as a storage`, () => {
    let subject: Subject;
    beforeAll(async () => {
      subject = await open();
    });
    afterAll(() => subject.stop());
    const the = {
      get storage() {
        return subject.storage;
      },
      leftovers: () => subject.leftovers(),
    };
    puts(the);
    brokenPuts(the);
    reads(the);
    removals(the);
    lists(the);
    refusals(the);
  });
}

type The = Omit<Subject, 'stop'>;

function puts(the: The): void {
  test.each([0, 1, 65_536, 3_000_001, part - 1, part, part + 1, 2 * part, 12_345_678])(
    'stores %i bytes of a buffer and returns their size and hash',
    async (length) => {
      const bytes = randomBytes(length);
      const key = newKey();
      expect(await the.storage.put(key, bytes, options)).toEqual({ size_bytes: length, sha256: sha256(bytes) });
      expect(same(await read(the.storage, key), bytes)).toBe(true);
      expect((await the.storage.stat(key))?.size_bytes).toBe(length);
      expect(await the.leftovers()).toBe(0);
    },
  );

  test.each([50, 150])(
    'stores the bytes of a stream of %i uneven chunks and returns their size and hash',
    async (n) => {
      const chunks = Array.from({ length: n }, (_, i) => randomBytes(i * 997));
      const key = newKey();
      const info = await the.storage.put(key, Readable.from(chunks), options);
      const bytes = Buffer.concat(chunks);
      expect(info).toEqual({ size_bytes: bytes.length, sha256: sha256(bytes) });
      expect(same(await read(the.storage, key), bytes)).toBe(true);
    },
  );

  test('replaces a file as a whole, and a reader of the old one reads it to its end', async () => {
    const key = newKey();
    const [old, young] = [randomBytes(500_000), randomBytes(400_000)];
    await the.storage.put(key, old, options);
    const before = await the.storage.stat(key);
    const opened = await the.storage.open(key);
    await the.storage.put(key, young, options);
    expect(same(opened && (await buffer(opened.stream)), old)).toBe(true);
    expect(same(await read(the.storage, key), young)).toBe(true);
    expect((await the.storage.stat(key))?.version).not.toBe(before?.version);
  });

  test('leaves one whole file of the same key from many callers at once', async () => {
    const key = newKey();
    const all = Array.from({ length: 20 }, () => randomBytes(100_000));
    await Promise.all(all.map((bytes) => the.storage.put(key, bytes, options)));
    const bytes_read = await read(the.storage, key);
    expect(all.some((bytes) => bytes_read?.equals(bytes))).toBe(true);
    expect(await the.leftovers()).toBe(0);
  });

  test('accepts exactly the limit', async () => {
    const key = newKey();
    await the.storage.put(key, Buffer.alloc(1000), { ...options, size_limit_bytes: 1000 });
    expect((await the.storage.stat(key))?.size_bytes).toBe(1000);
  });

  test('is ready for more, and says where the files are', async () => {
    expect(await the.storage.ready()).toBe(true);
    expect(the.storage.place).not.toBe('');
  });
}

function brokenPuts(the: The): void {
  test.each([
    ['buffer', () => Buffer.alloc(1001)],
    ['stream', () => Readable.from([Buffer.alloc(600), Buffer.alloc(401)])],
  ])('stores nothing of a %s above the limit', async (_, make) => {
    const key = newKey();
    const source = make();
    const put = the.storage.put(key, source, { ...options, size_limit_bytes: 1000 });
    expect(await put.catch((thrown: unknown) => thrown)).toBeInstanceOf(FileTooLarge);
    expect(await the.storage.stat(key)).toBeUndefined();
    expect(await the.leftovers()).toBe(0);
    expect(source instanceof Readable ? source.destroyed : true).toBe(true);
  });

  test.each([100_000, 8_000_000])('throws the error of a stream that breaks after %i bytes', async (length) => {
    const key = newKey();
    await the.storage.put(key, Buffer.from('before'), options);
    const broken = Readable.from(
      (async function* () {
        for (let at = 0; at < length; at += 100_000) yield Buffer.alloc(100_000);
        throw new Error('connection reset');
      })(),
    );
    await expect(the.storage.put(key, broken, options)).rejects.toThrow('connection reset');
    expect(same(await read(the.storage, key), Buffer.from('before'))).toBe(true);
    expect(await the.leftovers()).toBe(0);
  });

  test('throws the error of a stream that breaks before it is read', async () => {
    const broken = new Readable({ read: () => {} });
    const put = the.storage.put(newKey(), broken, options);
    setImmediate(() => broken.destroy(new Error('reset at once'))); // while the file is being opened
    await expect(put).rejects.toThrow('reset at once');
    expect(await the.leftovers()).toBe(0);
  });

  test('stores nothing of a stream that is closed early', async () => {
    const key = newKey();
    const cut = new Readable({ read: () => {} });
    cut.push(Buffer.alloc(100));
    const put = the.storage.put(key, cut, options);
    cut.destroy();
    await expect(put).rejects.toThrow('Premature close');
    expect(await the.storage.stat(key)).toBeUndefined();
  });
}

function reads(the: The): void {
  test('returns the requested range and says which it is', async () => {
    const bytes = randomBytes(1000);
    const key = newKey();
    await the.storage.put(key, bytes, options);
    const part_of = (start: number, end: number) => read(the.storage, key, { start, end });
    expect(same(await part_of(10, 19), bytes.subarray(10, 20))).toBe(true);
    expect(same(await part_of(999, 999), bytes.subarray(999))).toBe(true);
    expect(same(await part_of(990, 5000), bytes.subarray(990))).toBe(true);
    expect(same(await part_of(5000, 6000), Buffer.alloc(0))).toBe(true);
    const opened = await the.storage.open(key, { start: 10, end: 5000 });
    opened?.stream.destroy();
    expect(opened).toMatchObject({ ...(await the.storage.stat(key)), size_bytes: 1000, start: 10, end: 999 });
  });

  test('reads a part across the seams of a large file', async () => {
    const bytes = randomBytes(2 * part + 1000);
    const key = newKey('mp4');
    await the.storage.put(key, bytes, options);
    const range = { start: part - 10, end: 2 * part + 10 };
    expect(same(await read(the.storage, key, range), bytes.subarray(range.start, range.end + 1))).toBe(true);
  });

  test('says the same size and version in both ways to look, as long as nobody changes the file', async () => {
    const key = newKey();
    await the.storage.put(key, randomBytes(100), options);
    const opened = await the.storage.open(key);
    opened?.stream.destroy();
    expect(opened).toMatchObject((await the.storage.stat(key)) ?? {});
    expect(await the.storage.stat(key)).toEqual(await the.storage.stat(key));
  });

  test('returns undefined for an absent file', async () => {
    expect(await the.storage.open(newKey())).toBeUndefined();
    expect(await the.storage.open(newKey(), { start: 0, end: 9 })).toBeUndefined();
    expect(await the.storage.stat(newKey())).toBeUndefined();
  });
}

function removals(the: The): void {
  test('removes files and accepts absent ones', async () => {
    const keys = [newKey(), newKey('mp4')];
    for (const key of keys) await the.storage.put(key, Buffer.from('x'), options);
    await the.storage.remove([...keys, newKey()]);
    await the.storage.remove(keys);
    await the.storage.remove([]);
    for (const key of keys) expect(await the.storage.stat(key)).toBeUndefined();
  });

  test('spares the other files of a task', async () => {
    const key = newKey();
    const sibling = key.replace('/0.png', '/1.png');
    await the.storage.put(key, Buffer.from('0'), options);
    await the.storage.put(sibling, Buffer.from('1'), options);
    await the.storage.remove([key]);
    expect(same(await read(the.storage, sibling), Buffer.from('1'))).toBe(true);
  });

  test('does not disturb a reader', async () => {
    const bytes = randomBytes(3_000_000);
    const key = newKey();
    await the.storage.put(key, bytes, options);
    const opened = await the.storage.open(key);
    await the.storage.remove([key]);
    expect(same(opened && (await buffer(opened.stream)), bytes)).toBe(true);
  });

  test('loses no file that is put beside one that is removed', async () => {
    const key = newKey();
    const keys = Array.from({ length: 30 }, (_, i) => key.replace('/0.png', `/${i}.png`));
    await Promise.all(
      keys.map(async (each, i) => {
        await the.storage.put(each, Buffer.from(each), options);
        if (i % 3 > 0) await the.storage.remove([each]);
      }),
    );
    const { account_id = '', owner_id = '' } = parseKey(key) ?? {};
    expect(await the.storage.list(account_id, owner_id)).toEqual(keys.filter((_, i) => i % 3 === 0).toSorted());
  });
}

function lists(the: The): void {
  test('lists the files of one task', async () => {
    const key = newKey();
    const keys = [key, key.replace('/0.png', '/1.mp4')];
    for (const each of [...keys, newKey()]) await the.storage.put(each, Buffer.from('x'), options);
    const { account_id = '', owner_id = '' } = parseKey(key) ?? {};
    expect(await the.storage.list(account_id, owner_id)).toEqual(keys);
    expect(await the.storage.list(owner_id.replace('task', 'acct'), owner_id)).toEqual([]);
    await expect(the.storage.list('..', owner_id)).rejects.toBeInstanceOf(AssertionError);
  });
}

function refusals(the: The): void {
  const invalid = ['', '..', '../x.png', '/etc/hostname', '.incoming/x', `${newKey()}/../../0.png`];
  test.each([...invalid, newKey().replaceAll('/', '\\')])('reaches no file by %j, which is no key', async (key) => {
    await expect(the.storage.put(key, Buffer.from('x'), options)).rejects.toBeInstanceOf(AssertionError);
    await expect(the.storage.remove([key])).rejects.toBeInstanceOf(AssertionError);
    expect(await the.storage.open(key)).toBeUndefined();
    expect(await the.storage.stat(key)).toBeUndefined();
  });
}
