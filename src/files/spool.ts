import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** A file that arrives lies on this machine's disk until it is known what it is: none of it stays in memory. */
export type Spooled = { path: string; remove(): Promise<void> };

const suffix = '.part';

/** Longer than any upload may take. */
const leftover_ms = 3_600_000;

const swept = new Map<string, Promise<void>>();

/** Writes `stream` to its end into a file in `folder`; what was written goes if that fails. */
export async function spool(folder: string, stream: Readable): Promise<Spooled> {
  const sweeping = swept.get(folder) ?? prepare(folder);
  swept.set(folder, sweeping);
  await sweeping;
  const path = join(folder, `${randomUUID()}${suffix}`);
  const remove = () => rm(path, { force: true });
  try {
    await pipeline(stream, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
    return { path, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Makes the folder and takes away what services that were killed left in it; once a process. */
async function prepare(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const stats = name.endsWith(suffix) ? await stat(path).catch(() => undefined) : undefined;
    if (stats?.isFile() && stats.mtimeMs < Date.now() - leftover_ms) await rm(path, { force: true });
  }
}
