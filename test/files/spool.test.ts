import { mkdir, mkdtemp, open, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { isUnavailable } from '../../src/db/database.ts';
import { SpoolError, sweepSpool, withSpool } from '../../src/files/spool.ts';

let data_dir: string;

beforeEach(async () => {
  data_dir = await mkdtemp(join(tmpdir(), 'medley-spool-'));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(data_dir, { recursive: true });
});

const spooled = () => readdir(join(data_dir, 'spool'));
const hello = (file: NodeJS.WritableStream) => pipeline(Readable.from(['hel', 'lo']), file);

/** A file that a killed service left so long ago. */
async function leave(name: string, age_hours: number): Promise<void> {
  const path = join(data_dir, 'spool', name);
  await mkdir(join(data_dir, 'spool'), { recursive: true });
  await writeFile(path, 'x');
  const then = new Date(Date.now() - age_hours * 3_600_000);
  await utimes(path, then, then);
}

test('temporary files are whole while they are used, and deleted afterwards', async () => {
  const text = await withSpool(data_dir, async (spool) => {
    const paths = [await spool.add(hello), await spool.add(hello)];
    expect(await spooled()).toHaveLength(2);
    return Promise.all(paths.map((path) => readFile(path, 'utf8')));
  });
  expect(text).toEqual(['hello', 'hello']);
  expect(await spooled()).toEqual([]);
});

test('work that fails leaves no files, at whatever point it fails', async () => {
  const fails = async () => {
    throw new Error('refused');
  };
  await expect(withSpool(data_dir, (spool) => spool.add(fails))).rejects.toThrow('refused');
  const cut = Readable.from(
    (async function* () {
      yield 'hel';
      throw new Error('cut');
    })(),
  );
  await expect(withSpool(data_dir, (spool) => spool.add((file) => pipeline(cut, file)))).rejects.toThrow('cut');
  const work = withSpool(data_dir, async (spool) => {
    await spool.add(hello);
    throw new Error('no model of this name');
  });
  await expect(work).rejects.toThrow('no model of this name');
  expect(await spooled()).toEqual([]);
});

test('files of killed services are deleted when they are old, at the first file and at each sweep', async () => {
  await sweepSpool(data_dir); // there is no folder yet
  await leave('old.part', 4);
  await leave('new.part', 2);
  await leave('of-somebody-else', 4);
  await withSpool(data_dir, (spool) => spool.add(hello));
  expect((await spooled()).toSorted()).toEqual(['new.part', 'of-somebody-else']);
  await leave('later.part', 4);
  await sweepSpool(data_dir);
  expect((await spooled()).toSorted()).toEqual(['new.part', 'of-somebody-else']);
});

test('a folder that could not be created is tried again', async () => {
  await writeFile(join(data_dir, 'spool'), 'in the way');
  await expect(withSpool(data_dir, (spool) => spool.add(hello))).rejects.toThrow('EEXIST');
  await rm(join(data_dir, 'spool'));
  await withSpool(data_dir, async (spool) => expect(await readFile(await spool.add(hello), 'utf8')).toBe('hello'));
});

test('a folder that is deleted is created again', async () => {
  await withSpool(data_dir, (spool) => spool.add(hello));
  await rm(join(data_dir, 'spool'), { recursive: true });
  const texts = await withSpool(data_dir, async (spool) => {
    const paths = await Promise.all([spool.add(hello), spool.add(hello)]);
    return Promise.all(paths.map((path) => readFile(path, 'utf8')));
  });
  expect(texts).toEqual(['hello', 'hello']);
  expect(await spooled()).toEqual([]);
});

/** Makes the next write to an open file fail. */
async function failWrite(code: string): Promise<void> {
  const handle = await open(join(data_dir, 'any'), 'w');
  const files: typeof handle = Object.getPrototypeOf(handle);
  await handle.close();
  const broken = Object.assign(new Error(`${code}: it does not work, write`), { code });
  vi.spyOn(files, 'writeFile').mockRejectedValueOnce(broken);
}

test.each(['ENOSPC', 'EIO', 'ETIMEDOUT'])('a write that fails with %s is the fault of the disk', async (code) => {
  await failWrite(code);
  const error = await withSpool(data_dir, (spool) => spool.add(hello)).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(SpoolError);
  expect(error).toMatchObject({ message: expect.stringContaining(code), cause: { code } });
  expect(isUnavailable(error)).toBe(false);
  expect(await spooled()).toEqual([]);
});

test('a file that cannot be deleted hides no result', async () => {
  const work = withSpool(data_dir, async (spool) => {
    const path = await spool.add(hello);
    await rm(path);
    await mkdir(path);
    return 'created';
  });
  expect(await work).toBe('created');
});
