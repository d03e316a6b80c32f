import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Manifest } from './manifest-shape.ts';

export type { Manifest, Part } from './manifest-shape.ts';

/** A problem with a backup or its folder, in a sentence for an operator. */
export class BackupError extends Error {
  override name = 'BackupError';
}

/** As its shape has it, whose library has 700 modules: only whoever reads a backup needs it. */
const format: Manifest['format'] = 1;

export const manifest_name = 'manifest.json';

/** The last file of a backup: without it, a backup is not one. Whole or not at all. */
export async function writeManifest(folder: string, manifest: Omit<Manifest, 'format'>): Promise<Manifest> {
  const whole: Manifest = { format, ...manifest };
  const draft = join(folder, `${manifest_name}.part`);
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(whole, undefined, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, join(folder, manifest_name));
  await syncFolder(folder);
  return whole;
}

async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return; // cannot, and need not
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Throws BackupError if there is no complete backup, or one that this version cannot read. */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, manifest_name), 'utf8').catch(() => undefined);
  if (text === undefined) {
    throw new BackupError(
      `${folder} is no complete backup: it has no ${manifest_name}, which is written last. Take another backup.`,
    );
  }
  const value = parse(text);
  const { isManifest, newerFormat } = await import('./manifest-shape.ts');
  if (isManifest(value)) return value;
  const newer = newerFormat(value);
  if (newer !== undefined) {
    throw new BackupError(
      `The backup in ${folder} has format ${newer}, and this version reads ${format}: restore it with a newer Medley.`,
    );
  }
  throw new BackupError(`${join(folder, manifest_name)} is damaged: it is not what a backup writes there.`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
