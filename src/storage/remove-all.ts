import type { Storage } from './storage.ts';

/**
 * Removes all files of a task, or those of one uploaded file. Looks again until none is left: a thumbnail that is being
 * made is stored after the first look, and its maker looks for the file afterwards, so one of both sees the other.
 */
export async function removeAll(storage: Storage, account_id: string, owner_id: string): Promise<void> {
  for (;;) {
    const keys = await storage.list(account_id, owner_id);
    if (keys.length === 0) return;
    await storage.remove(keys);
  }
}
