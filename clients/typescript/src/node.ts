import { webcrypto } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { MedleyError } from './errors.ts';

/** The parts that only Node has. Browsers never load this file. */

export { webcrypto };

export type OpenedFile = { filename: string; bytes: AsyncIterable<Uint8Array> };

/** Opens a file to read it from its beginning. Throws, before anything is sent, if there is none. */
export async function openFile(path: string): Promise<OpenedFile> {
  const facts = await stat(path);
  if (!facts.isFile()) throw new TypeError(`${path} is not a file.`);
  return { filename: basename(path), bytes: createReadStream(path) };
}

/**
 * Writes a file that is there only when it is complete: `check` throws if its size in bytes is wrong. Throws MedleyError,
 * which is never repeated, if the disk does not take it.
 */
export async function writeFile(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  check: (size_bytes: number) => void,
): Promise<void> {
  const unfinished = `${path}.${webcrypto.randomUUID()}.part`;
  const handle = await onDisk(path, open(unfinished, 'wx'));
  try {
    let size_bytes = 0;
    for await (const chunk of bytes) {
      await onDisk(path, handle.writeFile(chunk));
      size_bytes += chunk.length;
    }
    check(size_bytes);
    await onDisk(path, handle.sync());
    await onDisk(path, handle.close());
    await onDisk(path, rename(unfinished, path));
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(unfinished, { force: true });
    throw error;
  }
}

async function onDisk<T>(path: string, act: Promise<T>): Promise<T> {
  try {
    return await act;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new MedleyError(`${path} cannot be written: ${reason}`, { cause });
  }
}
