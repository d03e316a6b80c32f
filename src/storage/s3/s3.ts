import type { Readable } from 'node:stream';
import type { Semaphore } from '../../concurrency/semaphore.ts';
import { assert } from '../../lib/assert.ts';
import { isId } from '../../lib/ids.ts';
import { Intake } from '../intake.ts';
import { isOwner, parseKey } from '../key.ts';
import { StorageUnavailable, type PutOptions, type Storage } from '../storage.ts';
import { Bucket, type BucketCredentials, type BucketTimeouts } from './bucket.ts';
import { presign } from './presign.ts';
import { openObject, statObject } from './read.ts';
import type { BucketSettings } from '../settings.ts';
import { abortUploads } from './unfinished.ts';
import { upload } from './upload.ts';

export type S3Options = {
  /** Absent: what the SDK finds in the environment, the profile or the machine. */
  credentials?: BucketCredentials | undefined;
  /** Uploads at once: each has up to 15 MiB of its file in memory. */
  uploads: Semaphore;
  timeouts?: BucketTimeouts;
};

/** Storage in a bucket: `s3://bucket/prefix` and the key. */
export async function openS3Storage(
  settings: BucketSettings,
  options: S3Options,
): Promise<Storage & { close(): void }> {
  const bucket = await Bucket.open(settings, options.credentials, options.timeouts);
  const uploads = new Uploads(bucket, options.uploads);
  return {
    place: bucket.place,
    put: (key, bytes, put_options) => uploads.put(key, bytes, put_options),
    stat: async (key) => (parseKey(key) ? statObject(bucket, key) : undefined),
    open: async (key, range) => (parseKey(key) ? openObject(bucket, key, range) : undefined),
    remove: (keys) => remove(bucket, keys),
    list: (account_id, owner_id) => list(bucket, account_id, owner_id),
    sweepTemporaryFiles: (older_than_ms) => sweep(bucket, older_than_ms),
    ready: () => uploads.ready(),
    ...(settings.links === 'presigned' && { presign: (key, presigning) => presign(bucket, key, presigning) }),
    close: () => bucket.client.destroy(),
  };
}

/** Whoever waits longer had better come again. */
const turn_timeout_ms = 30_000;

class Uploads {
  readonly #bucket: Bucket;
  readonly #turns: Semaphore;
  /** The bucket did not take the last file that it was to take. */
  #failing = false;
  #probe: Promise<boolean> | undefined;

  constructor(bucket: Bucket, turns: Semaphore) {
    this.#bucket = bucket;
    this.#turns = turns;
  }

  async put(key: string, bytes: Buffer | Readable, { size_limit_bytes }: PutOptions) {
    assert(parseKey(key), `"${key}" is no storage key`);
    const intake = new Intake(bytes, size_limit_bytes);
    try {
      await this.#inTurn(() => upload(this.#bucket, key, intake));
      this.#failing = false;
      return intake.summary();
    } catch (error) {
      intake.abandon();
      if (error instanceof StorageUnavailable) this.#failing = true;
      throw error;
    }
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    const permit = await this.#turns.acquire('', { timeout_ms: turn_timeout_ms });
    if (!permit) throw new StorageUnavailable(`${this.#bucket.place} does not take files as fast as they come`);
    try {
      await work();
    } finally {
      permit.release();
    }
  }

  /** As the last upload went; after one that failed, a few bytes are put as a probe. */
  async ready(): Promise<boolean> {
    if (!this.#failing) return true;
    this.#probe ??= this.#try().finally(() => (this.#probe = undefined));
    return this.#probe;
  }

  async #try(): Promise<boolean> {
    const { client, sdk, settings } = this.#bucket;
    const target = { Bucket: settings.bucket, Key: `${settings.prefix}${probe_name}`, Body: 'medley' };
    try {
      await client.send(new sdk.PutObjectCommand(target));
      this.#failing = false;
    } catch {
      // Whoever asked waits.
    }
    return !this.#failing;
  }
}

/** No storage key: it is written again and again, and nobody reads it. */
const probe_name = 'medley-probe';

const delete_max = 1_000;

async function remove(bucket: Bucket, keys: readonly string[]): Promise<void> {
  const objects = keys.map((key) => bucket.object(key));
  for (let at = 0; at < objects.length; at += delete_max) {
    const Objects = objects.slice(at, at + delete_max).map(({ Key }) => ({ Key }));
    const command = new bucket.sdk.DeleteObjectsCommand({
      Bucket: bucket.settings.bucket,
      Delete: { Objects, Quiet: true },
    });
    const { Errors = [] } = await bucket.ask(() => bucket.client.send(command));
    const [failed] = Errors.filter(({ Code }) => Code !== 'NoSuchKey');
    if (failed) throw new StorageUnavailable(`${bucket.place} did not remove ${failed.Key}: ${failed.Code}`);
  }
}

async function list(bucket: Bucket, account_id: string, owner_id: string): Promise<string[]> {
  assert(isId('acct', account_id) && isOwner(owner_id), 'list needs an account and the id of a task or a file');
  const { prefix } = bucket.settings;
  const keys: string[] = [];
  for (let ContinuationToken: string | undefined; ;) {
    const request = { ...bucket.ours, Prefix: `${prefix}${account_id}/${owner_id}/`, ContinuationToken };
    const page = await bucket.ask(() => bucket.client.send(new bucket.sdk.ListObjectsV2Command(request)));
    for (const { Key = '' } of page.Contents ?? []) keys.push(Key.slice(prefix.length));
    ContinuationToken = page.NextContinuationToken;
    if (!page.IsTruncated || ContinuationToken === undefined) break;
  }
  return keys.filter((key) => parseKey(key) !== undefined).toSorted();
}

/** Aborts uploads in parts of files that began long ago. */
function sweep(bucket: Bucket, older_than_ms: number): Promise<number> {
  const before_ms = Date.now() - older_than_ms;
  const { prefix } = bucket.settings;
  return abortUploads(
    bucket,
    prefix,
    ({ Key, Initiated }) =>
      Initiated !== undefined && Initiated.getTime() <= before_ms && parseKey(Key.slice(prefix.length)) !== undefined,
  );
}
