import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createInterface } from 'node:readline';
import { parseKey } from '../storage/key.ts';
import type { Storage } from '../storage/storage.ts';
import { BackupError, type Manifest } from './manifest.ts';
import { damaged, hashFile, writePart } from './parts.ts';
import type { Progress } from './progress.ts';

/** Below it a file lies under its storage key, as it is: images and videos do not get smaller. */
const files_folder = 'files';

/** One after the other would wait for the disk each time. */
const at_once = 8;

const list_name = 'files.sha256';

/**
 * Copies the stored files that the keys in `keys_path` name, a line each. One that the storage has no
 * more was removed after the snapshot, or never was there: it is counted.
 */
export async function copyFiles(
  storage: Storage,
  folder: string,
  keys_path: string,
  progress: Progress,
): Promise<Manifest['files']> {
  const sum = { count: 0, size_bytes: 0, missing: 0 };
  const copyOne = async (key: string): Promise<string> => {
    const file = await storage.open(key);
    if (!file) {
      sum.missing += 1;
      return '';
    }
    const part = await writePart(folder, join(files_folder, key), file.stream, progress);
    sum.count += 1;
    sum.size_bytes += part.size_bytes;
    progress.say(`${sum.count} files`);
    return `${part.sha256}  ${files_folder}/${key}\n`;
  };
  const lines = async function* (): AsyncGenerator<Buffer> {
    for await (const keys of batchesOf(keys_path)) yield Buffer.from((await allOf(keys.map(copyOne))).join(''));
  };
  return { list: await writePart(folder, list_name, Readable.from(lines()), progress), ...sum };
}

/** The list where nothing is copied. */
export async function noFiles(folder: string, progress: Progress): Promise<Manifest['files']> {
  const list = await writePart(folder, list_name, Readable.from([]), progress);
  return { list, count: 0, size_bytes: 0, missing: 0 };
}

/** As Promise.all, but a failure waits for the others: whoever cleans up after it is alone then. */
async function allOf<T>(works: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(works);
  return Promise.all(works);
}

type Listed = { key: string; sha256: string };

/** Reads every file of the list and compares. Throws BackupError. */
export async function checkFiles(folder: string, files: Manifest['files'], progress: Progress): Promise<void> {
  let count = 0;
  await eachListed(folder, async ({ key, sha256 }) => {
    const hash = await hashFile(join(folder, files_folder, key), progress).catch(() => undefined);
    if (hash === undefined) throw damaged(folder, `${files_folder}/${key} is missing`);
    if (hash !== sha256) throw damaged(folder, `${files_folder}/${key} has been changed`);
    progress.say(`${++count} of ${files.count} files checked`);
  });
  if (count !== files.count) throw damaged(folder, `${list_name} has ${count} files instead of ${files.count}`);
}

/** Puts all files into the storage, each whole. To do it again does no harm. */
export async function restoreFiles(
  storage: Storage,
  folder: string,
  files: Manifest['files'],
  progress: Progress,
): Promise<void> {
  let count = 0;
  await eachListed(folder, async ({ key, sha256 }) => {
    const bytes = createReadStream(join(folder, files_folder, key));
    const stored = await storage.put(key, bytes, { content_type: '', size_limit_bytes: Number.MAX_SAFE_INTEGER });
    if (stored.sha256 !== sha256) throw damaged(folder, `${files_folder}/${key} has been changed`);
    progress.add(stored.size_bytes);
    progress.say(`${++count} of ${files.count} files restored`);
  });
}

async function eachListed(folder: string, work: (file: Listed) => Promise<void>): Promise<void> {
  for await (const lines of batchesOf(join(folder, list_name))) {
    await Promise.all(lines.map((line) => work(readLine(folder, line))));
  }
}

/** A key of another form could lead out of the folder. */
function readLine(folder: string, line: string): Listed {
  const [, sha256 = '', key = ''] = /^([0-9a-f]{64}) {2}files\/(.+)$/.exec(line) ?? [];
  if (parseKey(key)) return { key, sha256 };
  throw new BackupError(`${join(folder, list_name)} has a line that no backup writes: ${line.slice(0, 200)}`);
}

async function* batchesOf(path: string): AsyncGenerator<string[]> {
  const handle = await open(path, 'r');
  try {
    let batch: string[] = [];
    for await (const line of createInterface({ input: handle.createReadStream() })) {
      if (batch.push(line) < at_once) continue;
      yield batch;
      batch = [];
    }
    if (batch.length > 0) yield batch;
  } finally {
    await handle.close();
  }
}
