import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { assert } from '../lib/assert.ts';
import { failpoint } from '../lib/failpoint.ts';
import { isId } from '../lib/ids.ts';
import { Intake } from './intake.ts';
import { isOwner, parseKey } from './key.ts';
import {
  StorageFull,
  type ByteRange,
  type OpenedFile,
  type PutOptions,
  type Storage,
  type StoredFile,
} from './storage.ts';
import { syncFolder } from './sync-folder.ts';

/** `files` holds `aa/bb/<key>`; `incoming` what is still being written, on the same disk. */
type Folders = { files: string; incoming: string };

/** Storage in a folder of this machine: `<data_dir>/files`. */
export async function openDiskStorage(data_dir: string): Promise<Storage> {
  const files = join(data_dir, 'files');
  const folders = { files, incoming: join(files, '.incoming') };
  await mkdir(folders.incoming, { recursive: true, mode: 0o700 });
  return {
    place: files,
    put: (key, bytes, options) => put(folders, key, bytes, options),
    stat: (key) => statFile(folders, key),
    open: (key, range) => openFile(folders, key, range),
    remove: (keys) => remove(folders, keys),
    list: (account_id, owner_id) => list(folders, account_id, owner_id),
    sweepTemporaryFiles: (older_than_ms) => sweep(folders, older_than_ms),
    ready: async () => true,
  };
}

/** Returns the path of a key's file. 65,536 folders by the owner's hash keep each of them small. */
function pathOf(folders: Folders, key: string): string | undefined {
  const parts = parseKey(key);
  if (!parts) return undefined;
  return join(ownerFolder(folders, parts.account_id, parts.owner_id), basename(key));
}

function ownerFolder(folders: Folders, account_id: string, owner_id: string): string {
  const hash = createHash('sha256').update(`${account_id}/${owner_id}`).digest('hex');
  return join(folders.files, hash.slice(0, 2), hash.slice(2, 4), account_id, owner_id);
}

async function put(folders: Folders, key: string, bytes: Buffer | Readable, options: PutOptions) {
  const path = pathOf(folders, key);
  assert(path, `"${key}" is no storage key`);
  const intake = new Intake(bytes, options.size_limit_bytes);
  const temporary = join(folders.incoming, `${randomUUID()}.part`);
  try {
    await write(temporary, intake);
    await failpoint('file.written');
    await moveIntoPlace(temporary, path, folders.files);
    return intake.summary();
  } catch (error) {
    intake.abandon();
    await rm(temporary, { force: true });
    throw isFull(error) ? new StorageFull('No space is left for files.', { cause: error }) : error;
  }
}

/** Writes all bytes and waits until the disk has them. */
async function write(path: string, intake: Intake): Promise<void> {
  const handle = await open(path, 'wx', 0o600);
  try {
    for await (const chunk of intake.chunks()) await handle.writeFile(chunk);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const move_attempts_max = 40;

/**
 * A `remove` beside us may take an emptied folder away between our two steps: then once more, and a
 * little later each time, since whoever removes in a loop would else win every race.
 */
async function moveIntoPlace(temporary: string, path: string, root: string): Promise<void> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await rename(temporary, path);
      break;
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' || attempts === move_attempts_max) throw error;
      await sleep(Math.random() * attempts);
    }
  }
  for (let folder = dirname(path); folder.length >= root.length; folder = dirname(folder)) {
    await orAbsent(syncFolder(folder));
  }
}

async function statFile(folders: Folders, key: string): Promise<StoredFile | undefined> {
  const path = pathOf(folders, key);
  if (!path) return undefined;
  const stats = await orAbsent(stat(path, { bigint: true }));
  return stats?.isFile() ? describe(stats) : undefined;
}

function describe(stats: { size: bigint; mtimeNs: bigint; ino: bigint }): StoredFile {
  const version = `${stats.size.toString(36)}-${stats.mtimeNs.toString(36)}-${stats.ino.toString(36)}`;
  return { size_bytes: Number(stats.size), version };
}

async function openFile(folders: Folders, key: string, range?: ByteRange): Promise<OpenedFile | undefined> {
  const path = pathOf(folders, key);
  const handle = path && (await orAbsent(open(path, 'r')));
  if (!handle) return undefined;
  try {
    const file = describe(await handle.stat({ bigint: true }));
    const start = range?.start ?? 0;
    const end = Math.min(range?.end ?? Infinity, file.size_bytes - 1);
    if (end >= start) return { ...file, start, end, stream: handle.createReadStream({ start, end }) };
    await handle.close();
    return { ...file, start, end, stream: Readable.from([]) };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function remove(folders: Folders, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const path = pathOf(folders, key);
    assert(path, `"${key}" is no storage key`);
    await orAbsent(unlink(path));
    await pruneEmpty(dirname(path), folders.files);
  }
}

/** Takes emptied folders away, upwards; what remains is told to the disk. */
async function pruneEmpty(folder: string, root: string): Promise<void> {
  try {
    if (folder.length > root.length) {
      await orAbsent(rmdir(folder));
      return await pruneEmpty(dirname(folder), root);
    }
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST', 'EBUSY', 'EPERM'].includes(codeOf(error) ?? '')) throw error;
  }
  await orAbsent(syncFolder(folder));
}

async function list(folders: Folders, account_id: string, owner_id: string): Promise<string[]> {
  assert(isId('acct', account_id) && isOwner(owner_id), 'list needs an account and the id of a task or a file');
  const names = await orAbsent(readdir(ownerFolder(folders, account_id, owner_id)));
  const keys = (names ?? []).map((name) => `${account_id}/${owner_id}/${name}`);
  return keys.filter((key) => parseKey(key) !== undefined).toSorted();
}

async function sweep(folders: Folders, older_than_ms: number): Promise<number> {
  const before_ms = Date.now() - older_than_ms;
  let removed = 0;
  for (const name of await readdir(folders.incoming)) {
    const path = join(folders.incoming, name);
    const stats = await orAbsent(stat(path));
    if (!stats || stats.mtimeMs > before_ms) continue;
    await rm(path, { force: true });
    removed += 1;
  }
  return removed;
}

/** The disk, a user's quota, or the largest file the system allows (ulimit). */
function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(codeOf(error) ?? '');
}

async function orAbsent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
