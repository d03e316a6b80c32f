import type { ContentKeys } from '../../db/content.ts';
import type { Db } from '../../db/database.ts';
import type { Listener } from '../../db/notify.ts';
import { watch, type Watcher } from '../../db/watched.ts';
import { readAdded, versionOfAdded, type AddedCatalog } from './rows.ts';

/** NOTIFY on this channel: what operators added has changed. */
export const added_channel = 'added_catalog';

type WatchParts = {
  db: Db;
  content_keys: ContentKeys;
  catalog: { add(added: AddedCatalog): void };
  listener: Listener;
};

/** Keeps the catalogue at what operators added in the dashboard, on this node. What cannot be read stays as it was. */
export async function watchAdded(
  { db, content_keys, catalog, listener }: WatchParts,
  onError: (error: unknown) => void,
): Promise<Watcher> {
  let seen = '';
  const read = async () => {
    const version = await versionOfAdded(db);
    if (version === seen) return;
    catalog.add(await readAdded(db, content_keys));
    seen = version;
  };
  return watch({ listener, channel: added_channel }, read, onError);
}
