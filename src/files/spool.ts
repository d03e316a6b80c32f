import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/** Files that arrive lie on this machine's disk until it is known what they are: none of them stays in memory. */
export type Spool = {
  /** Makes a file, which `fill` writes to its end; answers its path. Throws what `fill` throws. */
  add(fill: (file: Writable) => Promise<unknown>): Promise<string>;
};

const suffix = '.part';

/** Longer than any piece of work takes: a run may have sixteen results, and each ten minutes to be fetched. */
const leftover_ms = 10_800_000;

const opened = new Map<string, Promise<void>>();

/** Does `work`; its files are gone afterwards. */
export async function withSpool<T>(data_dir: string, work: (spool: Spool) => Promise<T>): Promise<T> {
  const paths: string[] = [];
  try {
    return await work({
      async add(fill) {
        await open(data_dir);
        const path = join(folderOf(data_dir), `${randomUUID()}${suffix}`);
        paths.push(path);
        await write(path, fill);
        return path;
      },
    });
  } finally {
    for (const path of paths) await rm(path, { force: true });
  }
}

function folderOf(data_dir: string): string {
  return join(data_dir, 'spool');
}

async function write(path: string, fill: (file: Writable) => Promise<unknown>): Promise<void> {
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  file.on('error', () => {}); // told by `fill`
  await once(file, 'open');
  try {
    await fill(file);
  } finally {
    file.destroy(); // if it was not written to its end
  }
}

/** Makes the folder, once a process, and takes away what services that were killed left in it. */
function open(data_dir: string): Promise<void> {
  const opening =
    opened.get(data_dir) ??
    mkdir(folderOf(data_dir), { recursive: true, mode: 0o700 }).then(() => sweepSpool(data_dir));
  opened.set(data_dir, opening);
  opening.catch(() => opened.delete(data_dir)); // the next one tries again
  return opening;
}

/** Takes away what services that were killed left behind. */
export async function sweepSpool(data_dir: string): Promise<void> {
  const folder = folderOf(data_dir);
  const names = await readdir(folder).catch(() => []); // none was ever made
  for (const path of names.filter((name) => name.endsWith(suffix)).map((name) => join(folder, name))) {
    const stats = await stat(path).catch(() => undefined);
    if (stats?.isFile() && stats.mtimeMs < Date.now() - leftover_ms) await rm(path, { force: true });
  }
}

/** What is in memory already, or the bytes at a path, as they can be stored. */
export function contentOf(content: Buffer | string): Buffer | Readable {
  return typeof content === 'string' ? createReadStream(content, { highWaterMark: 2 ** 20 }) : content;
}
