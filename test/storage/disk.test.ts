import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AssertionError } from '../../src/lib/assert.ts';
import { openDiskStorage } from '../../src/storage/disk.ts';
import { parseKey } from '../../src/storage/key.ts';
import { FileTooLarge, type Storage } from '../../src/storage/storage.ts';
import { newKey } from './samples.ts';

const options = { content_type: 'image/png', size_limit_bytes: 10_000_000 };
const disk_module = new URL('../../src/storage/disk.ts', import.meta.url).href;

let folder = '';
let storage: Storage;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'medley-storage-'));
  storage = await openDiskStorage(folder);
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** Every file and folder below the data folder. */
const everything = () => readdir(folder, { recursive: true });

const incoming = () => readdir(join(folder, 'files', '.incoming'));

/** Vitest's own comparison takes seconds for a megabyte. */
function same(bytes: Buffer | undefined, expected: Buffer): boolean {
  return bytes?.equals(expected) ?? false;
}

async function read(key: string, range?: { start: number; end: number }): Promise<Buffer | undefined> {
  const opened = await storage.open(key, range);
  return opened && buffer(opened.stream);
}

describe('put', () => {
  test.each([0, 1, 65_536, 3_000_001])(
    'stores %i bytes of a buffer and returns their size and hash',
    async (length) => {
      const bytes = randomBytes(length);
      const key = newKey();
      expect(await storage.put(key, bytes, options)).toEqual({
        size_bytes: length,
        sha256: createHash('sha256').update(bytes).digest('hex'),
      });
      expect(same(await read(key), bytes)).toBe(true);
    },
  );

  test('stores the bytes of a stream and returns their size and hash', async () => {
    const chunks = Array.from({ length: 50 }, (_, i) => randomBytes(i * 997));
    const key = newKey();
    const kept = await storage.put(key, Readable.from(chunks), options);
    const bytes = Buffer.concat(chunks);
    expect(kept).toEqual({ size_bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') });
    expect(same(await read(key), bytes)).toBe(true);
  });

  test('writes files below the data folder only, out of reach of other users, and leaves nothing beside them', async () => {
    const key = newKey();
    await storage.put(key, Buffer.from('x'), options);
    const [file, ...others] = (await everything()).filter((path) => path.endsWith('.png'));
    expect(others).toEqual([]);
    expect(file?.replaceAll('\\', '/')).toMatch(new RegExp(`^files/[0-9a-f]{2}/[0-9a-f]{2}/${key}$`));
    expect((await stat(join(folder, file ?? ''))).mode & 0o077).toBe(0);
    expect(await incoming()).toEqual([]);
  });

  test('replaces a file as a whole, and a reader of the old one reads it to its end', async () => {
    const key = newKey();
    const [old, young] = [randomBytes(500_000), randomBytes(400_000)];
    await storage.put(key, old, options);
    const before = await storage.stat(key);
    const opened = await storage.open(key);
    await storage.put(key, young, options);
    expect(same(opened && (await buffer(opened.stream)), old)).toBe(true);
    expect(same(await read(key), young)).toBe(true);
    expect((await storage.stat(key))?.version).not.toBe(before?.version);
  });

  test('leaves one whole file of the same key from many callers at once', async () => {
    const key = newKey();
    const all = Array.from({ length: 20 }, () => randomBytes(100_000));
    await Promise.all(all.map((bytes) => storage.put(key, bytes, options)));
    const kept = await read(key);
    expect(all.some((bytes) => kept?.equals(bytes))).toBe(true);
    expect(await incoming()).toEqual([]);
  });

  test.each([
    ['buffer', Buffer.alloc(1001)],
    ['stream', Readable.from([Buffer.alloc(600), Buffer.alloc(401)])],
  ])('stores nothing of a %s above the limit', async (_, source) => {
    const key = newKey();
    const error = await storage
      .put(key, source, { ...options, size_limit_bytes: 1000 })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(FileTooLarge);
    expect(await storage.stat(key)).toBeUndefined();
    expect(await incoming()).toEqual([]);
    expect(source instanceof Readable ? source.destroyed : true).toBe(true);
  });

  test('accepts exactly the limit', async () => {
    const key = newKey();
    await storage.put(key, Buffer.alloc(1000), { ...options, size_limit_bytes: 1000 });
    expect((await storage.stat(key))?.size_bytes).toBe(1000);
  });

  test('throws the error of a stream that breaks and leaves the old file', async () => {
    const key = newKey();
    await storage.put(key, Buffer.from('before'), options);
    const broken = Readable.from(
      (async function* () {
        yield Buffer.alloc(100_000);
        throw new Error('connection reset');
      })(),
    );
    await expect(storage.put(key, broken, options)).rejects.toThrow('connection reset');
    expect(same(await read(key), Buffer.from('before'))).toBe(true);
    expect(await incoming()).toEqual([]);
  });

  test('throws the error of a stream that breaks before it is read', async () => {
    const broken = new Readable({ read: () => {} });
    const put = storage.put(newKey(), broken, options);
    setImmediate(() => broken.destroy(new Error('reset at once'))); // while the file is being opened
    await expect(put).rejects.toThrow('reset at once');
    expect(await incoming()).toEqual([]);
  });

  test('releases its stream when it cannot even begin', async () => {
    await rm(join(folder, 'files'), { recursive: true });
    const stream = Readable.from([Buffer.alloc(10)]);
    await expect(storage.put(newKey(), stream, options)).rejects.toThrow('ENOENT');
    expect(stream.destroyed).toBe(true);
  });

  test('stores nothing of a stream that is closed early', async () => {
    const key = newKey();
    const cut = new Readable({ read: () => {} });
    cut.push(Buffer.alloc(100));
    const put = storage.put(key, cut, options);
    cut.destroy();
    await expect(put).rejects.toThrow('Premature close');
    expect(await storage.stat(key)).toBeUndefined();
  });

  test('throws StorageFull on a full disk, stores nothing, and continues when there is room', async () => {
    const script = `
      import { openDiskStorage } from ${JSON.stringify(disk_module)};
      const storage = await openDiskStorage(process.argv[1]);
      const [big, small] = process.argv.slice(2);
      const options = { content_type: 'image/png', size_limit_bytes: 1e9 };
      const error = await storage.put(big, Buffer.alloc(1_000_000), options).catch((thrown) => thrown);
      await storage.put(small, Buffer.alloc(1000), options);
      console.log(JSON.stringify({ name: error.name, big: await storage.stat(big), small: (await storage.stat(small)).size_bytes }));
    `;
    // The kernel refuses files above 64 blocks, just as it does on a full disk.
    const limited = 'trap "" XFSZ; ulimit -f 64; exec "$0" --input-type=module -e "$@"';
    const child = spawn('bash', ['-c', limited, process.execPath, script, folder, newKey(), newKey()]);
    const [output] = await Promise.all([buffer(child.stdout), once(child, 'exit')]);
    expect(JSON.parse(output.toString())).toEqual({ name: 'StorageFull', small: 1000 });
    expect(await incoming()).toEqual([]);
  });

  test('leaves nothing visible when it is killed half-way, and the rest is swept', async () => {
    const script = `
      import { openDiskStorage } from ${JSON.stringify(disk_module)};
      import { Readable } from 'node:stream';
      const [folder, key] = process.argv.slice(1);
      const storage = await openDiskStorage(folder);
      async function* endless() {
        for (let i = 0; ; i++) {
          yield Buffer.alloc(100_000);
          if (i === 10) console.log('under way');
        }
      }
      await storage.put(key, Readable.from(endless()), { content_type: 'image/png', size_limit_bytes: 1e12 });
    `;
    const [first, second] = [newKey(), newKey()];
    await storage.put(second, Buffer.from('before'), options);
    for (const key of [first, second]) {
      const child = spawn(process.execPath, ['--input-type=module', '-e', script, folder, key]);
      await once(child.stdout, 'data');
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    expect(await storage.stat(first)).toBeUndefined();
    expect(await storage.open(first)).toBeUndefined();
    expect(same(await read(second), Buffer.from('before'))).toBe(true);
    expect(await incoming()).toHaveLength(2);
    expect(await storage.sweepTemporaryFiles(3_600_000)).toBe(0);
    expect(await storage.sweepTemporaryFiles(-1)).toBe(2);
    expect(await incoming()).toEqual([]);
    expect(same(await read(second), Buffer.from('before'))).toBe(true);
  });
});

describe('sweepTemporaryFiles', () => {
  test('spares recently written files', async () => {
    const path = (name: string) => join(folder, 'files', '.incoming', name);
    await writeFile(path('old.part'), 'x');
    await writeFile(path('young.part'), 'x');
    const two_hours_ago = new Date(Date.now() - 7_200_000);
    await utimes(path('old.part'), two_hours_ago, two_hours_ago);
    expect(await storage.sweepTemporaryFiles(3_600_000)).toBe(1);
    expect(await incoming()).toEqual(['young.part']);
  });
});

describe('open', () => {
  test('returns the requested range and says which it is', async () => {
    const bytes = randomBytes(1000);
    const key = newKey();
    await storage.put(key, bytes, options);
    expect(same(await read(key, { start: 10, end: 19 }), bytes.subarray(10, 20))).toBe(true);
    expect(same(await read(key, { start: 999, end: 999 }), bytes.subarray(999))).toBe(true);
    expect(same(await read(key, { start: 990, end: 5000 }), bytes.subarray(990))).toBe(true);
    expect(same(await read(key, { start: 5000, end: 6000 }), Buffer.alloc(0))).toBe(true);
    const opened = await storage.open(key, { start: 10, end: 5000 });
    opened?.stream.destroy();
    expect(opened).toMatchObject({ ...(await storage.stat(key)), size_bytes: 1000, start: 10, end: 999 });
  });

  test('returns undefined for an absent file', async () => {
    expect(await storage.open(newKey())).toBeUndefined();
    expect(await storage.stat(newKey())).toBeUndefined();
  });
});

describe('remove', () => {
  test('deletes files and emptied folders and accepts absent ones', async () => {
    const keys = [newKey(), newKey('mp4')];
    for (const key of keys) await storage.put(key, Buffer.from('x'), options);
    await storage.remove([...keys, newKey()]);
    await storage.remove(keys);
    expect(await storage.stat(keys[0] ?? '')).toBeUndefined();
    expect((await everything()).toSorted()).toEqual(['files', join('files', '.incoming')]);
  });

  test('spares the other files of a task', async () => {
    const key = newKey();
    const sibling = key.replace('/0.png', '/1.png');
    await storage.put(key, Buffer.from('0'), options);
    await storage.put(sibling, Buffer.from('1'), options);
    await storage.remove([key]);
    expect(same(await read(sibling), Buffer.from('1'))).toBe(true);
  });

  test('does not disturb a reader', async () => {
    const bytes = randomBytes(3_000_000);
    const key = newKey();
    await storage.put(key, bytes, options);
    const opened = await storage.open(key);
    await storage.remove([key]);
    expect(same(opened && (await buffer(opened.stream)), bytes)).toBe(true);
  });

  test('loses no file that is put into the same folder meanwhile', async () => {
    const key = newKey();
    const keys = Array.from({ length: 30 }, (_, i) => key.replace('/0.png', `/${i}.png`));
    await Promise.all(
      keys.map(async (each, i) => {
        await storage.put(each, Buffer.from(each), options);
        if (i % 3 > 0) await storage.remove([each]);
      }),
    );
    const { account_id = '', owner_id = '' } = parseKey(key) ?? {};
    expect(await storage.list(account_id, owner_id)).toEqual(keys.filter((_, i) => i % 3 === 0).toSorted());
  });
});

describe('put and remove', () => {
  test('do not disturb each other in one folder, even between two of their steps', async () => {
    const round = async () => {
      const key = newKey();
      let put_ended = false;
      const removing = Array.from({ length: 6 }, async () => {
        while (!put_ended) await storage.remove([key]);
      });
      await storage.put(key, Buffer.from('x'), options).finally(() => (put_ended = true));
      await Promise.all(removing);
    };
    for (let rounds = 0; rounds < 100; rounds++) await round();
    expect(await incoming()).toEqual([]);
  });
});

describe('list', () => {
  test('returns the files of one task', async () => {
    const key = newKey();
    const keys = [key, key.replace('/0.png', '/1.mp4')];
    for (const each of [...keys, newKey()]) await storage.put(each, Buffer.from('x'), options);
    const { account_id = '', owner_id = '' } = parseKey(key) ?? {};
    expect(await storage.list(account_id, owner_id)).toEqual(keys);
    expect(await storage.list(owner_id.replace('task', 'acct'), owner_id)).toEqual([]);
    await expect(storage.list('..', owner_id)).rejects.toBeInstanceOf(AssertionError);
  });
});

describe('an invalid key', () => {
  test.each([
    '',
    '..',
    '../x.png',
    '/etc/hostname',
    '.incoming/x',
    `${newKey()}/../../0.png`,
    newKey().replaceAll('/', '\\'),
  ])('reaches no file as %j', async (key) => {
    const before = await everything();
    await expect(storage.put(key, Buffer.from('x'), options)).rejects.toBeInstanceOf(AssertionError);
    await expect(storage.remove([key])).rejects.toBeInstanceOf(AssertionError);
    expect(await storage.open(key)).toBeUndefined();
    expect(await storage.stat(key)).toBeUndefined();
    expect(await everything()).toEqual(before);
  });
});
