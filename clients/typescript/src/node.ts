import { webcrypto } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { basename } from 'node:path';

/** The parts that only Node has. Browsers never load this file. */

export { webcrypto };

export type OpenedFile = { filename: string; bytes: AsyncIterable<Uint8Array> };

/** Opens a file to read it from its beginning. Throws, before anything is sent, if there is none. */
export async function openFile(path: string): Promise<OpenedFile> {
  const facts = await stat(path);
  if (!facts.isFile()) throw new TypeError(`${path} is not a file.`);
  return { filename: basename(path), bytes: createReadStream(path) };
}

/** Writes a file that is there only when it is complete: `check` throws if its size in bytes is wrong. */
export async function writeFile(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  check: (size_bytes: number) => void,
): Promise<void> {
  const unfinished = `${path}.${webcrypto.randomUUID()}.part`;
  const handle = await open(unfinished, 'wx');
  try {
    let size_bytes = 0;
    for await (const chunk of bytes) {
      await handle.writeFile(chunk);
      size_bytes += chunk.length;
    }
    check(size_bytes);
    await handle.sync();
    await handle.close();
    await rename(unfinished, path);
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(unfinished, { force: true });
    throw error;
  }
}
