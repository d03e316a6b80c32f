import { createReadStream, createWriteStream } from 'node:fs';
import { access, mkdir, readdir, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Readable } from 'node:stream';
import { credentialsOf } from '../app/storage.ts';
import { Intake } from '../storage/intake.ts';
import { Bucket } from '../storage/s3/bucket.ts';
import { abortUploads } from '../storage/s3/unfinished.ts';
import { uploadObject } from '../storage/s3/upload.ts';
import type { BucketSettings, StorageSettings } from '../storage/settings.ts';
import { BackupError, manifest_name, type Manifest } from './manifest.ts';
import { megabytes } from './progress.ts';

/** A folder or a bucket with backups, each below its id. */
export type BackupPlace = {
  /** Calls `write` for a folder that is not there yet, and keeps what it wrote; after a failure nothing of it is left. */
  make(id: string, write: (folder: string) => Promise<Manifest>): Promise<Manifest>;
  /** Returns true if the backup is there and complete. */
  has(id: string): Promise<boolean>;
  /** Removes a backup, or what is left of one; from its first moment on it is no backup any more. */
  remove(id: string): Promise<void>;
  /** Throws BackupError if there is not enough free space for so many bytes. */
  expectRoom(bytes: number): Promise<void>;
  close(): void;
};

/** Opens the place that `to` names: a folder, or `s3://BUCKET/PREFIX` by the settings of the bucket of files, if there is one. */
export async function openPlace(to: string, storage: StorageSettings, data_dir: string): Promise<BackupPlace> {
  if (!to.startsWith('s3://')) return folderPlace(to);
  return bucketPlace(await openBucket(to, storage), unsentIn(data_dir));
}

function unsentIn(data_dir: string): string {
  return join(data_dir, 'backup-being-sent');
}

/** Longer than a backup may take (`backup_ms_max` of worker.ts). */
const leftover_ms = 25 * 3_600_000;

/** Removes what is left of backups whose process on this machine was killed: the next one may be made by another machine. */
export async function sweepUnsent(data_dir: string): Promise<void> {
  const folder = unsentIn(data_dir);
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name);
    const stats = await stat(path).catch(() => undefined);
    if (stats && stats.mtimeMs < Date.now() - leftover_ms) await rm(path, { recursive: true, force: true });
  }
}

function folderPlace(to: string): BackupPlace {
  const remove = async (id: string) => {
    await rm(join(to, id, manifest_name), { force: true });
    await rm(join(to, id), { recursive: true, force: true });
  };
  return {
    make: async (id, write) => {
      await mkdir(to, { recursive: true, mode: 0o700 });
      try {
        return await write(join(to, id));
      } catch (error) {
        await remove(id);
        throw error;
      }
    },
    has: (id) => exists(join(to, id, manifest_name)),
    remove,
    expectRoom: (bytes) => expectRoomIn(to, bytes),
    close: () => undefined,
  };
}

/** It is written to the disk first, sent file by file, the manifest last, and removed from the disk. */
function bucketPlace(bucket: Bucket, folder: string): BackupPlace {
  const remove = (id: string) => removeObjects(bucket, id);
  return {
    make: async (id, write) => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const local = join(folder, id);
      try {
        const manifest = await write(local);
        await sendAll(bucket, id, local);
        return manifest;
      } catch (error) {
        await remove(id).catch(() => undefined); // a bucket that is away: the next try removes it
        throw error;
      } finally {
        await rm(local, { recursive: true, force: true });
      }
    },
    has: async (id) => {
      const head = new bucket.sdk.HeadObjectCommand(objectOf(bucket, `${id}/${manifest_name}`));
      return (await bucket.askFor(() => bucket.client.send(head))) !== undefined;
    },
    remove: async (id) => {
      await rm(join(folder, id), { recursive: true, force: true });
      await remove(id);
    },
    expectRoom: (bytes) => expectRoomIn(folder, bytes),
    close: () => bucket.client.destroy(),
  };
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Of the folder, or of the nearest one above it that there is. */
async function expectRoomIn(folder: string, bytes: number): Promise<void> {
  const stats = await statfs(folder).catch(() => undefined);
  if (!stats) return dirname(folder) === folder ? undefined : expectRoomIn(dirname(folder), bytes);
  const free_bytes = stats.bavail * stats.bsize;
  if (free_bytes >= bytes) return;
  throw new BackupError(
    `${folder} has ${megabytes(free_bytes)} of free space, and the last backup took ${megabytes(bytes)}: free some space, or keep fewer backups.`,
  );
}

async function openBucket(address: string, storage: StorageSettings): Promise<Bucket> {
  const [, name = '', path = ''] = /^s3:\/\/([^/]+)\/?(.*?)\/?$/.exec(address) ?? [];
  const usual: Omit<BucketSettings, 'bucket' | 'prefix'> = { force_path_style: false, links: 'through' };
  const settings = {
    ...(storage.type === 's3' ? storage : usual),
    bucket: name,
    prefix: path === '' ? '' : `${path}/`,
  };
  return Bucket.open(settings, credentialsOf(settings));
}

/** Objects of backups are no files of callers: their keys have another form. */
function objectOf({ settings }: Bucket, name: string): { Bucket: string; Key: string } {
  return { Bucket: settings.bucket, Key: `${settings.prefix}${name}` };
}

async function sendAll(bucket: Bucket, id: string, folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const isManifest = (path: string) => path === join(folder, manifest_name);
  for (const path of paths.toSorted((a, b) => Number(isManifest(a)) - Number(isManifest(b)))) {
    const name = `${id}/${relative(folder, path).split(sep).join('/')}`;
    const { size } = await stat(path);
    const intake = new Intake(createReadStream(path), size);
    await uploadObject(bucket, objectOf(bucket, name), 'application/octet-stream', intake, size);
  }
}

/** All names below an address of the bucket. */
async function* objectsBelow(bucket: Bucket, prefix: string): AsyncGenerator<string[]> {
  for (let ContinuationToken: string | undefined; ;) {
    const request = { Bucket: bucket.settings.bucket, Prefix: prefix, ContinuationToken };
    const page = await bucket.ask(() => bucket.client.send(new bucket.sdk.ListObjectsV2Command(request)));
    yield (page.Contents ?? []).flatMap(({ Key }) => Key ?? []);
    ContinuationToken = page.NextContinuationToken;
    if (!page.IsTruncated || ContinuationToken === undefined) return;
  }
}

async function removeObjects(bucket: Bucket, id: string): Promise<void> {
  const { Key } = objectOf(bucket, `${id}/`);
  const batches: string[][] = [[`${Key}${manifest_name}`]];
  for await (const keys of objectsBelow(bucket, Key)) batches.push(keys);
  for (const keys of batches.filter(({ length }) => length > 0)) {
    const Delete = { Objects: keys.map((key) => ({ Key: key })), Quiet: true };
    const command = new bucket.sdk.DeleteObjectsCommand({ Bucket: bucket.settings.bucket, Delete });
    const { Errors = [] } = await bucket.ask(() => bucket.client.send(command));
    const [failed] = Errors.filter(({ Code }) => Code !== 'NoSuchKey');
    if (failed) throw new BackupError(`The bucket did not remove ${failed.Key}: ${failed.Code}.`);
  }
  // Of a process that was killed. Credentials that write and read alone are enough for backups: then its parts stay.
  await abortUploads(bucket, Key, () => true).catch(() => undefined);
}

/** Copies the backup at `s3://BUCKET/PREFIX/ID` into a folder. What it has is checked by whoever reads it. */
export async function fetchBackup(address: string, storage: StorageSettings, folder: string): Promise<void> {
  const bucket = await openBucket(address, storage);
  try {
    const { prefix } = bucket.settings;
    for await (const keys of objectsBelow(bucket, prefix))
      for (const key of keys) await fetchObject(bucket, key, folder, key.slice(prefix.length));
    if (!(await exists(join(folder, manifest_name))))
      throw new BackupError(`${address} is no complete backup: it has no ${manifest_name}, which is sent last.`);
  } finally {
    bucket.client.destroy();
  }
}

async function fetchObject(bucket: Bucket, Key: string, folder: string, name: string): Promise<void> {
  if (!/^(?:(?!\.{1,2}\/)[\w.=-]+\/)*(?!\.{1,2}$)[\w.=-]+$/.test(name))
    throw new BackupError(`The bucket has ${Key}, which no backup writes.`);
  const command = new bucket.sdk.GetObjectCommand({ Bucket: bucket.settings.bucket, Key });
  const { Body } = await bucket.ask(() => bucket.client.send(command));
  if (!(Body instanceof Readable)) throw new BackupError(`The bucket answered ${Key} without its bytes.`);
  const path = join(folder, ...name.split('/'));
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await pipeline(Body, createWriteStream(path, { mode: 0o600 }));
}
