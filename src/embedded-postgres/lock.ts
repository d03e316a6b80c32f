import { DatabaseSync } from 'node:sqlite';
import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { giveToOwner, writeOwned, type Home } from './home.ts';
import { EmbeddedError, isAlive } from './process.ts';

/** A service stays; a command of the CLI is over soon and is worth waiting for. */
export type Purpose = 'service' | 'command';

/** The process that holds a data folder. */
export type Owner = { pid: number; purpose: Purpose; since: string };

/** Another living process works on the same data folder. */
export class DataFolderInUse extends EmbeddedError {
  override name = 'DataFolderInUse';
  readonly owner: Owner | undefined;

  constructor(home: Home, owner: Owner | undefined) {
    const who = owner ? `process ${owner.pid} (since ${owner.since})` : 'another process';
    super(
      `This data folder is in use by ${who}: ${home.data_dir}\n` +
        'Stop that process, or set MEDLEY_DATA (and PORT) to run a second instance beside it.',
    );
    this.owner = owner;
  }
}

export type Lock = { release(): void };

/** Kept reachable here: a lock whose database was garbage-collected would be no lock. */
const held = new Set<DatabaseSync>();

/**
 * Takes the cluster for this process. The lock is an advisory file lock of the operating system, in
 * the only form that Node offers: an exclusive transaction of its SQLite on an empty file. It
 * cannot outlive the process (so there is no stale lock to judge by pids and times), is not
 * inherited by PostgreSQL, and lies beside the cluster, so that a copied data folder whose pointer
 * leads to the same cluster meets the same lock. Throws DataFolderInUse.
 */
export function takeLock(home: Home, purpose: Purpose): Lock {
  const path = join(home.path, 'lock');
  // Never opened by other means: closing any handle on a file ends all of a process's locks on it.
  const fresh = !existsSync(path);
  const database = new DatabaseSync(path);
  try {
    database.exec('pragma journal_mode = memory');
    database.exec('begin exclusive');
  } catch (error) {
    database.close();
    if (isBusy(error)) throw new DataFolderInUse(home, readOwner(home));
    throw error;
  }
  held.add(database);
  if (fresh) {
    chmodSync(path, 0o600);
    giveToOwner(home, path);
  }
  const owner: Owner = { pid: process.pid, purpose, since: new Date().toISOString() };
  writeOwned(home, 'owner.json', JSON.stringify(owner));
  return {
    release: () => {
      if (!held.delete(database)) return;
      rmSync(join(home.path, 'owner.json'), { force: true });
      database.close();
    },
  };
}

/** Reads the holder of the cluster; undefined in the instant before a new holder has written its name. */
function readOwner(home: Home): Owner | undefined {
  try {
    const owner = JSON.parse(readFileSync(join(home.path, 'owner.json'), 'utf8')) as Owner;
    return isAlive(owner.pid) ? owner : undefined;
  } catch {
    return undefined;
  }
}

/** SQLITE_BUSY: somebody else has the file locked. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === 5;
}
