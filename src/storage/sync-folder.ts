import { open } from 'node:fs/promises';

/** A new name in a folder is on the disk only once the folder is. Not on Windows, where a folder cannot be opened. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
