import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Semaphore } from '../../../src/concurrency/semaphore.ts';
import { Bucket } from '../../../src/storage/s3/bucket.ts';
import { openS3Storage } from '../../../src/storage/s3/s3.ts';
import type { BucketSettings } from '../../../src/storage/settings.ts';
import type { S3Imitation } from './imitation.ts';

/** Time limits that a busy machine keeps. */
const timeouts = { connect_ms: 10_000, idle_ms: 10_000 };

/** Time limits under which a test of a hang does not wait. */
export const impatient = { connect_ms: 500, idle_ms: 400 };

/** A storage in the bucket of an imitation; `settings` beside those that it needs. */
export async function openInImitation(
  imitation: S3Imitation,
  settings: Partial<BucketSettings> = {},
  limits = timeouts,
) {
  return openS3Storage(
    { ...settingsOf(imitation), ...settings },
    { credentials: credentialsOf(imitation), timeouts: limits, uploads: new Semaphore({ name: 'Uploads', bound: 4 }) },
  );
}

/** The bucket of an imitation itself. */
export function bucketOf(imitation: S3Imitation): Promise<Bucket> {
  return Bucket.open(settingsOf(imitation), credentialsOf(imitation), timeouts);
}

function settingsOf({ bucket, endpoint }: S3Imitation): BucketSettings {
  return { bucket, endpoint, prefix: 'tests/', force_path_style: true, links: 'through' };
}

function credentialsOf({ keys }: S3Imitation) {
  return { accessKeyId: keys.access_key_id, secretAccessKey: keys.secret_access_key };
}

/** The `storage:` of a medley.yaml for an imitation, whose keys are written into `folder`. */
export async function storageYaml({ bucket, endpoint, keys }: S3Imitation, folder: string, more: object = {}) {
  const secret = async (name: keyof typeof keys) => {
    const path = join(folder, name);
    await writeFile(path, keys[name]);
    return `file:${path}`;
  };
  const access = {
    access_key_id: await secret('access_key_id'),
    secret_access_key: await secret('secret_access_key'),
  };
  return `storage: ${JSON.stringify({ s3: { bucket, endpoint, force_path_style: true, ...access, ...more } })}`;
}
