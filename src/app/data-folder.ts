import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { withTimeLimit } from '../lib/time-limit.ts';

/** The data folder cannot be used; the message says why and what to do. */
export class DataFolderError extends Error {
  override name = 'DataFolderError';
}

const answer_limit_ms = 10_000;

/**
 * Makes the data folder if it is missing, and sees that this process may write there. Tells whether it was made now.
 * Throws DataFolderError, or NoAnswer where the disk says nothing.
 */
export async function prepareDataFolder(path: string, limit_ms = answer_limit_ms): Promise<boolean> {
  try {
    return await withTimeLimit(
      limit_ms,
      prepare(path),
      `The data folder ${path} does not answer (${limit_ms / 1_000} s): is it on a network disk that is away? Bring it back, or set MEDLEY_DATA to another folder.`,
    );
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    throw new DataFolderError(explain(path, String(error.code), error.message));
  }
}

async function prepare(path: string): Promise<boolean> {
  const is_new = await makeFolders(path);
  // As root, PostgreSQL's user must be able to pass through, but need not list.
  if (is_new) await chmod(path, process.getuid?.() === 0 ? 0o711 : 0o700);
  const note = join(path, 'postgres.json');
  await readFile(note).catch((error: unknown) => {
    if (!isCode(error, 'ENOENT')) throw error;
  });
  const draft = join(path, `.write-${process.pid}`);
  await writeFile(draft, 'x');
  await rm(draft);
  return is_new;
}

/** As mkdir with `recursive`, which tries for ever where folders exist in which none can be made, as in /proc. */
async function makeFolders(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return checkFolder(path);
    if (!isCode(error, 'ENOENT') || dirname(path) === path || (await isFolder(dirname(path)))) throw error;
  }
  await makeFolders(dirname(path));
  await mkdir(path);
  return true;
}

async function checkFolder(path: string): Promise<false> {
  if (await isFolder(path)) return false;
  throw new DataFolderError(`The data folder ${path} is a file. Move it away, or set MEDLEY_DATA to a folder.`);
}

/** Returns false for what does not exist; a link that leads nowhere throws when it is to be made. */
async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

function explain(path: string, code: string, message: string): string {
  const other = 'set MEDLEY_DATA to another folder';
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return `The data folder ${path} is not writable for this user (${code}). Allow it (chown or chmod), or ${other}.`;
    case 'EROFS':
      return `The data folder ${path} is on a disk that is mounted read-only (${code}). Mount it for writing, or ${other}.`;
    case 'ENOSPC':
    case 'EDQUOT':
      return `No space is left on the disk of the data folder ${path} (${code}). Free some space on it, or ${other}.`;
    case 'ENOTDIR':
      return `The data folder ${path} lies below something that is a file (${code}): ${other}.`;
    default:
      return `The data folder ${path} cannot be used: ${message}. Correct the path, or ${other}.`;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
