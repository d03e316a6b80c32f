import { newId } from '../lib/ids.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { storageKey } from './key.ts';
import type { Storage } from './storage.ts';

/**
 * Writes a file as an output is written, reads it, and takes it away again. Returns what is wrong with it, or nothing.
 * Throws StorageUnavailable, or the error of the disk.
 */
export async function examineStorage(storage: Storage): Promise<string | undefined> {
  const key = storageKey({ account_id: newId('acct'), owner_id: newId('task'), index: 0, extension: 'bin' });
  const bytes = Buffer.from('medley');
  try {
    await storage.put(key, bytes, { content_type: 'application/octet-stream', size_limit_bytes: bytes.length });
    const opened = await storage.open(key);
    const content = opened && (await readBytes(opened.stream, bytes.length));
    if (!content?.equals(bytes)) return 'a file was not kept';
  } finally {
    await storage.remove([key]);
  }
  return (await storage.stat(key)) ? 'a file was not removed' : undefined;
}
