import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AssertionError } from '../../src/lib/assert.ts';
import { openDiskStorage } from '../../src/storage/disk.ts';
import type { Storage } from '../../src/storage/storage.ts';
import { read, same, storageConformance } from './conformance.ts';
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

storageConformance('A folder', async () => {
  const data_dir = await mkdtemp(join(tmpdir(), 'medley-storage-'));
  return {
    storage: await openDiskStorage(data_dir),
    leftovers: async () => (await readdir(join(data_dir, 'files', '.incoming'))).length,
    stop: () => rm(data_dir, { recursive: true, force: true }),
  };
});

describe('put', () => {
  test('writes files below the data folder only, out of reach of other users, and leaves nothing beside them', async () => {
    const key = newKey();
    await storage.put(key, Buffer.from('x'), options);
    const [file, ...others] = (await everything()).filter((path) => path.endsWith('.png'));
    expect(others).toEqual([]);
    expect(file?.replaceAll('\\', '/')).toMatch(new RegExp(`^files/[0-9a-f]{2}/[0-9a-f]{2}/${key}$`));
    expect((await stat(join(folder, file ?? ''))).mode & 0o077).toBe(0);
    expect(await incoming()).toEqual([]);
  });

  test('releases its stream when it cannot even begin', async () => {
    await rm(join(folder, 'files'), { recursive: true });
    const stream = Readable.from([Buffer.alloc(10)]);
    await expect(storage.put(newKey(), stream, options)).rejects.toThrow('ENOENT');
    expect(stream.destroyed).toBe(true);
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
    expect(same(await read(storage, second), Buffer.from('before'))).toBe(true);
    expect(await incoming()).toHaveLength(2);
    expect(await storage.sweepTemporaryFiles(3_600_000)).toBe(0);
    expect(await storage.sweepTemporaryFiles(-1)).toBe(2);
    expect(await incoming()).toEqual([]);
    expect(same(await read(storage, second), Buffer.from('before'))).toBe(true);
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

describe('remove', () => {
  test('deletes files and emptied folders and accepts absent ones', async () => {
    const keys = [newKey(), newKey('mp4')];
    for (const key of keys) await storage.put(key, Buffer.from('x'), options);
    await storage.remove([...keys, newKey()]);
    await storage.remove(keys);
    expect(await storage.stat(keys[0] ?? '')).toBeUndefined();
    expect((await everything()).toSorted()).toEqual(['files', join('files', '.incoming')]);
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
