import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Readable, Writable } from 'node:stream';

/** Files that arrive lie on this machine's disk until it is known what they are: none of them stays in memory. */
export type Spool = {
  /** Makes a file, which `fill` writes to its end; answers its path. Throws what `fill` throws, and SpoolError. */
  add(fill: (file: Writable) => Promise<unknown>): Promise<string>;
};

/** The disk refuses, whatever was sent: it is full, cannot be written to, has no more open files. */
export class SpoolError extends Error {
  override name = 'SpoolError';
}

const suffix = '.part';

/** Longer than any piece of work takes: a run may have sixteen results, and each ten minutes to be fetched. */
const leftover_ms = 10_800_000;

/** Does `work`; its files are gone afterwards. */
export async function withSpool<T>(data_dir: string, work: (spool: Spool) => Promise<T>): Promise<T> {
  const paths: string[] = [];
  try {
    return await work({
      async add(fill) {
        const path = join(folderOf(data_dir), `${randomUUID()}${suffix}`);
        paths.push(path);
        await write(await onDisk(create(data_dir, path)), fill);
        return path;
      },
    });
  } finally {
    for (const path of paths) await remove(path);
  }
}

function folderOf(data_dir: string): string {
  return join(data_dir, 'spool');
}

/** Removes a file; a failure is ignored, since a sweep tries again. */
async function remove(path: string): Promise<void> {
  await rm(path, { force: true }).catch(() => {});
}

/** The error of a step on the disk is a SpoolError: nobody takes it for one of a database or of a connection. */
async function onDisk<T>(step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new SpoolError(`Files cannot be stored now: ${problem}`, { cause: error });
  }
}

/** Makes a file, in a folder that may have been taken away since it was made. */
async function create(data_dir: string, path: string): Promise<FileHandle> {
  const make = () => open(path, 'wx', 0o600);
  await prepare(data_dir);
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    prepared.delete(data_dir);
    await prepare(data_dir);
    return make();
  }
}

async function write(handle: FileHandle, fill: (file: Writable) => Promise<unknown>): Promise<void> {
  const file = new Writable({
    write: (chunk: Buffer, _encoding, done) => void onDisk(handle.writeFile(chunk)).then(() => done(), done),
  });
  file.on('error', () => {}); // told by `fill`
  try {
    await fill(file);
  } finally {
    file.destroy(); // if it was not written to its end
    await onDisk(handle.close()); // once a write that is under way has ended
  }
}

const prepared = new Map<string, Promise<void>>();

/** Makes the folder, once a process, and takes away what services that were killed left in it. */
function prepare(data_dir: string): Promise<void> {
  const preparing =
    prepared.get(data_dir) ??
    mkdir(folderOf(data_dir), { recursive: true, mode: 0o700 }).then(() => sweepSpool(data_dir));
  prepared.set(data_dir, preparing);
  preparing.catch(() => prepared.delete(data_dir)); // the next one tries again
  return preparing;
}

/** Takes away what services that were killed left behind. */
export async function sweepSpool(data_dir: string): Promise<void> {
  const folder = folderOf(data_dir);
  const names = await readdir(folder).catch(() => []); // none was ever made
  for (const path of names.filter((name) => name.endsWith(suffix)).map((name) => join(folder, name))) {
    const stats = await stat(path).catch(() => undefined);
    if (stats?.isFile() && stats.mtimeMs < Date.now() - leftover_ms) await remove(path);
  }
}

/** Returns content for storage: the bytes in memory, or a stream of the file at the path, from `start` on. */
export function contentOf(content: Buffer | string, start = 0): Buffer | Readable {
  return typeof content === 'string' ? createReadStream(content, { start, highWaterMark: 2 ** 20 }) : content;
}
