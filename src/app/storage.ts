import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
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

/** Returns the credentials; undefined where the SDK is to look for them. */
export function credentialsOf({ credentials }: Pick<BucketSettings, 'credentials'>) {
  if (!credentials) return undefined;
  const valueOf = (name: keyof typeof credentials): string => {
    const value = resolveSecret(credentials[name]);
    if (value === undefined) throw new ConfigError(`storage.s3.${name}: ${missing(credentials[name])}.`);
    return value;
  };
  return { accessKeyId: valueOf('access_key_id'), secretAccessKey: valueOf('secret_access_key') };
}

/** The other nodes of a database, as far as this module asks. */
type Nodes = { nodes(): Promise<{ host: string; role: string; silent_ms: number }[]> };

/** A node says more often that it is alive. */
const alive_ms = 15_000;

/** A node that was killed is silent by then: whoever takes its place waits for that. */
const patience_ms = 20_000;
const look_again_ms = 500;

/**
 * Throws ConfigError where several nodes would each have files of their own on a disk, so that one answers 404 for
 * what another one has stored: with a role that is only a part of the service, or beside a node of another machine.
 */
export async function refuseUnsharedDisk(
  { database_url, role }: Pick<Config, 'database_url' | 'role'>,
  settings: StorageSettings,
  engine: Nodes,
  { patience_ms: left_ms = patience_ms } = {},
): Promise<void> {
  if (settings.type !== 'disk' || settings.shared || database_url === undefined) return;
  if (role !== 'all') throw new ConfigError(`MEDLEY_ROLE is ${role}, so that there are several nodes${not_shared}`);
  for (const stop_at_ms = performance.now() + left_ms; ; await sleep(look_again_ms)) {
    const others = (await engine.nodes()).filter(({ host, silent_ms }) => host !== hostname() && silent_ms < alive_ms);
    const [other] = others;
    if (!other) return;
    if (performance.now() < stop_at_ms) continue;
    throw new ConfigError(`A node on ${other.host} uses this database, too${not_shared}`);
  }
}

const not_shared =
  ', and each needs the same files. Keep them in a bucket (storage.s3 in medley.yaml), or, where all nodes have the same ' +
  'folder as MEDLEY_DATA, on one machine or on a network disk, say so with storage: { shared: true }.';
