import { missing } from '../catalog/check-settings.ts';
import { ConfigError, resolveSecret, type Config } from '../config.ts';
import { openDiskStorage } from '../storage/disk.ts';
import { openS3Storage } from '../storage/s3/s3.ts';
import type { BucketSettings, StorageSettings } from '../storage/settings.ts';
import type { Storage } from '../storage/storage.ts';
import { uploadLimit, type UploadLimit } from '../storage/upload-limit.ts';

/** Opens the place of files: the bucket of the configuration, else the data folder. Nothing is asked of a bucket yet. */
export async function openStorage(
  { data_dir }: Pick<Config, 'data_dir'>,
  settings: StorageSettings,
  onStop: (close: () => void) => void,
  { bucket_uploads }: UploadLimit = uploadLimit(),
): Promise<Storage> {
  if (settings.type === 'disk') return openDiskStorage(data_dir);
  const bucket = await openS3Storage(settings, { credentials: credentialsOf(settings), uploads: bucket_uploads });
  onStop(() => bucket.close());
  return bucket;
}

/** Undefined where the SDK is to look for them. */
function credentialsOf({ credentials }: BucketSettings) {
  if (!credentials) return undefined;
  const valueOf = (name: keyof typeof credentials): string => {
    const value = resolveSecret(credentials[name]);
    if (value === undefined) throw new ConfigError(`storage.s3.${name}: ${missing(credentials[name])}.`);
    return value;
  };
  return { accessKeyId: valueOf('access_key_id'), secretAccessKey: valueOf('secret_access_key') };
}
