import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import sharp from 'sharp';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { openDiskStorage } from '../../src/storage/disk.ts';
import { parseKey } from '../../src/storage/key.ts';
import { removeAll } from '../../src/storage/remove-all.ts';
import type { Storage } from '../../src/storage/storage.ts';
import { openThumbnails, thumbnailLimits } from '../../src/storage/thumbnails.ts';
import { libraryThreads } from '../helpers/library-threads.ts';
import { childrenOf, endless } from './probing.ts';
import { S3Imitation } from './s3/imitation.ts';
import { openInImitation } from './s3/subject.ts';
import * as samples from './samples.ts';

const options = { content_type: '', size_limit_bytes: 100_000_000 };

const closers: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function diskStorage(): Promise<Storage> {
  const folder = await mkdtemp(join(tmpdir(), 'medley-thumbnails-'));
  closers.push(() => rm(folder, { recursive: true, force: true }));
  return openDiskStorage(folder);
}

async function bucket(): Promise<Storage> {
  const imitation = await S3Imitation.start();
  const storage = await openInImitation(imitation);
  closers.push(async () => {
    storage.close();
    await imitation.stop();
  });
  return storage;
}

/** Counts what is written. */
function counted(storage: Storage): Storage & { puts: string[] } {
  const puts: string[] = [];
  return {
    ...storage,
    puts,
    put: (key, ...rest) => {
      puts.push(key);
      return storage.put(key, ...rest);
    },
  };
}

function open(storage: Storage) {
  const thumbnails = openThumbnails({ storage, limits: thumbnailLimits() });
  closers.push(() => thumbnails.close());
  return thumbnails;
}

async function store(storage: Storage, bytes: Uint8Array, extension: Parameters<typeof samples.newKey>[0] = 'png') {
  const key = samples.newKey(extension);
  await storage.put(key, Buffer.from(bytes), options);
  return key;
}

async function sidesOf(storage: Storage, key: string | undefined): Promise<string> {
  const opened = key === undefined ? undefined : await storage.open(key);
  if (!opened) return 'none';
  const { format, width, height } = await sharp(await buffer(opened.stream)).metadata();
  return `${format} ${width} × ${height}`;
}

describe.each([
  ['on a disk', diskStorage],
  ['in a bucket', bucket],
])('thumbnails %s', (_, start) => {
  test('are made once, however many ask for them at once, and lie beside the file until it is removed', async () => {
    const storage = counted(await start());
    const key = await store(storage, await samples.sampleImage('png', 800, 600));
    const thumbnails = open(storage);
    const keys = await Promise.all([64, 320, 64, 320].map((size) => thumbnails.keyOf(key, size === 64 ? 64 : 320)));
    const [small, large] = [key.replace('.png', '-64.webp'), key.replace('.png', '-320.webp')];
    expect(keys).toEqual([small, large, small, large]);
    expect(storage.puts.toSorted()).toEqual([key, small, large].toSorted());
    expect(await sidesOf(storage, small)).toBe('webp 85 × 64');
    expect(await sidesOf(storage, large)).toBe('webp 427 × 320');

    expect(await open(storage).keyOf(key, 64)).toBe(small); // another node, or this one after a restart
    expect(storage.puts).toHaveLength(3);

    const { account_id = '', owner_id = '' } = parseKey(key) ?? {};
    expect(await storage.list(account_id, owner_id)).toEqual([large, small, key].toSorted());
    await removeAll(storage, account_id, owner_id);
    expect(await storage.list(account_id, owner_id)).toEqual([]);
    expect(await thumbnails.keyOf(key, 64)).toBeUndefined();
  });

  test('of a video and a recording are read from where their bytes are', async () => {
    const storage = await start();
    const thumbnails = open(storage);
    const video = await store(storage, await samples.mp4(176, 144, 10), 'mp4');
    const recording = await store(storage, samples.wav(2), 'wav');
    expect(await sidesOf(storage, await thumbnails.keyOf(video, 320))).toBe('webp 176 × 144');
    expect(await sidesOf(storage, await thumbnails.keyOf(recording, 64))).toBe('webp 128 × 64');
  });
});

// By default libvips loses an image that comes in the moment when its threads end (image-threads.ts).
test.skipIf(process.platform !== 'linux')('the process that draws has all threads of its library', async () => {
  const storage = await diskStorage();
  const key = await store(storage, await samples.sampleImage('png', 800, 600));
  await open(storage).keyOf(key, 64);
  expect(await Promise.all((await childrenOf(process.pid)).map(libraryThreads))).toContain(16);
});

test('a file that is removed while its thumbnail is drawn leaves none behind', async () => {
  const storage = await diskStorage();
  const key = await store(storage, await samples.sampleImage('png', 800, 600));
  const { account_id = '', owner_id = '' } = parseKey(key) ?? {};
  let removed: Promise<void> | undefined;
  const removing: Storage = {
    ...storage,
    put: async (...put) => {
      removed ??= removeAll(storage, account_id, owner_id);
      await removed;
      return storage.put(...put);
    },
  };
  expect(await open(removing).keyOf(key, 64)).toBeUndefined();
  expect(await storage.list(account_id, owner_id)).toEqual([]);
});

test('a removal that has looked before a thumbnail was stored looks again', async () => {
  const storage = await diskStorage();
  const key = await store(storage, await samples.sampleImage('png', 80, 60));
  const { account_id = '', owner_id = '' } = parseKey(key) ?? {};
  const thumbnails = open(storage);
  const late: Storage = {
    ...storage,
    remove: async (keys) => {
      await thumbnails.keyOf(key, 64);
      await storage.remove(keys);
    },
  };
  await removeAll(late, account_id, owner_id);
  expect(await storage.list(account_id, owner_id)).toEqual([]);
});

describe('a file of which nothing can be drawn', () => {
  test.each([
    ['one that leads the parser into an endless loop', async () => endless, 'flac'],
    ['one that is no image at all', async () => Buffer.from('no image'), 'png'],
    ['one that ends early', async () => (await samples.sampleImage('png', 400, 300)).subarray(0, 3_000), 'png'],
  ] as const)('has none, is not tried again at every look, and delays no other: %s', async (_, make, extension) => {
    const storage = await diskStorage();
    const opened = vi.fn<Storage['open']>(storage.open);
    const thumbnails = open({ ...storage, open: opened });
    const key = await store(storage, await make(), extension);
    expect(await thumbnails.keyOf(key, 64)).toBeUndefined();
    const reads = opened.mock.calls.length;
    expect(await thumbnails.keyOf(key, 320)).toBeUndefined();
    expect(opened.mock.calls.length).toBe(reads);
    const fine = await store(storage, await samples.sampleImage('png', 80, 60));
    expect(await thumbnails.keyOf(fine, 64)).toBe(fine.replace('.png', '-64.webp'));
  });

  test('is a text, a thumbnail itself, and what is not there', async () => {
    const storage = await diskStorage();
    const thumbnails = open(storage);
    const text = await store(storage, Buffer.from('{}'), 'json');
    const image = await store(storage, await samples.sampleImage('png', 80, 60));
    const thumbnail = await thumbnails.keyOf(image, 64);
    for (const key of [text, thumbnail ?? '', samples.newKey('png'), '../../etc/passwd']) {
      expect(await thumbnails.keyOf(key, 64), key).toBeUndefined();
    }
  });
});

test('a storage that is out of reach is an error, and the thumbnail is made when it is back', async () => {
  const storage = await diskStorage();
  const key = await store(storage, await samples.sampleImage('png', 80, 60));
  let is_away = true;
  const flaky: Storage = {
    ...storage,
    open: (...args) => (is_away ? Promise.reject(new Error('the disk is away')) : storage.open(...args)),
  };
  const thumbnails = open(flaky);
  await expect(thumbnails.keyOf(key, 64)).rejects.toThrow('the disk is away');
  is_away = false;
  expect(await thumbnails.keyOf(key, 64)).toBe(key.replace('.png', '-64.webp'));
});
