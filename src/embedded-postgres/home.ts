import { createHash } from 'node:crypto';
import { accessSync, chmodSync, chownSync, constants, existsSync, lstatSync, mkdirSync } from 'node:fs';
import { linkSync, readFileSync, realpathSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { canEnter, EmbeddedError, findUser, isCode, type SystemUser } from './process.ts';

/**
 * The folder of a data folder's cluster: `data/` (the cluster), `password`, `lock`, `owner.json`,
 * `server.json`, `postgres.log`, `run/` (the socket) and, where needed, a copy of the binaries.
 */
export type Home = {
  /** The data folder's real path. */
  data_dir: string;
  /** Usually `<data_dir>/postgres`; as root perhaps below /var/lib/medley. */
  path: string;
  /** The user that PostgreSQL runs as; undefined: our own. */
  user: SystemUser | undefined;
};

/** The file in the data folder that leads to a cluster outside of it. */
const pointer_name = 'postgres.json';
type Pointer = { home: string; data_dir: string };

/** Kept across boots, unlike /tmp and /run. */
const homes_folder = '/var/lib/medley';

/** Finds the home of `data_dir`, making the folders that are missing. Throws EmbeddedError. */
export function prepareHome(data_dir: string): Home {
  const root = process.getuid?.() === 0;
  // As root, PostgreSQL's user must be able to pass through, but need not list.
  makeFolder(data_dir, root ? 0o711 : 0o700);
  const existing = findHome(data_dir);
  if (existing) return root ? asCluster(existing) : asOurselves(existing);
  const real = realpathSync(data_dir);
  const home = { data_dir: real, path: join(real, 'postgres'), user: undefined };
  makeFolder(home.path, root ? 0o711 : 0o700);
  return root ? asServerUser(home) : asOurselves(home);
}

/** The home that an earlier start made, if there is one; changes nothing but a moved pointer. */
export function findHome(data_dir: string): Home | undefined {
  if (!existsSync(data_dir)) return undefined;
  const data_dir_real = realpathSync(data_dir);
  const pointer = readPointer(data_dir_real);
  if (pointer) return followPointer(pointer, data_dir_real);
  const path = join(data_dir_real, 'postgres');
  return existsSync(join(path, 'data')) ? { data_dir: data_dir_real, path, user: undefined } : undefined;
}

/** Writes a file of ours, readable by us alone, in one step; it belongs to whom the home belongs. */
export function writeOwned(home: Home, name: string, text: string): void {
  const path = join(home.path, name);
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, text, { mode: 0o600 });
  giveToOwner(home, draft);
  renameSync(draft, path);
}

/** Makes `path` belong to the home's owner: root may run in another user's data folder for once. */
export function giveToOwner(home: Home, path: string): void {
  if (process.getuid?.() !== 0) return;
  const owner = statSync(home.path);
  chownSync(path, owner.uid, owner.gid);
}

/** Makes `path` belong to PostgreSQL's user. Only for fresh things in folders of ours. */
export function giveToServer(home: Home, path: string): void {
  if (home.user) chownSync(path, home.user.uid >>> 0, home.user.gid >>> 0); // macOS counts nobody as -2
}

/** Makes a folder with exactly this mode, whatever the umask; an existing one stays as it is. */
function makeFolder(path: string, mode: number): void {
  if (mkdirSync(path, { recursive: true }) !== undefined) chmodSync(path, mode);
}

/** Sixteen characters that stand for a path: where the path itself would be too long or too open. */
export function shortHashOf(path: string): string {
  return createHash('sha256').update(path).digest('hex').slice(0, 16);
}

/** As an ordinary user, everything is ours, or we cannot use it. */
function asOurselves(home: Home): Home {
  for (const path of [home.path, join(home.path, 'data')]) {
    if (existsSync(path) && !mayUse(path)) {
      throw new EmbeddedError(
        `The database in ${path} belongs to another user: start Medley as that user, or set MEDLEY_DATA.`,
      );
    }
  }
  if (process.platform === 'win32') return home;
  try {
    userInfo();
  } catch {
    throw new EmbeddedError(
      `PostgreSQL needs a user with a name, and the user id ${process.getuid?.()} has no entry in /etc/passwd. ` +
        'Add it there, run as another user, or set DATABASE_URL.',
    );
  }
  return home;
}

/** As root with a cluster: PostgreSQL runs as the cluster's owner, whoever made it. */
function asCluster(home: Home): Home {
  const data = join(home.path, 'data');
  if (!existsSync(data)) return { ...home, user: chooseUser() }; // an interrupted first start
  const { uid } = lstatSync(data);
  const user = findUser(uid);
  if (!user || uid === 0) {
    throw new EmbeddedError(
      `${data} belongs to the user id ${uid}, whom PostgreSQL cannot run as. Give it to an ordinary user by chown -R.`,
    );
  }
  if (!canEnter(user, data)) {
    throw new EmbeddedError(
      `The database in ${data} belongs to ${user.name}, who can no longer enter ${firstBarrier(user, data)}. ` +
        `Allow it by: chmod o+x ${firstBarrier(user, data)}`,
    );
  }
  return { ...home, user };
}

/** As root without a cluster: in the data folder if PostgreSQL's user can enter it, else elsewhere. */
function asServerUser(home: Home): Home {
  const user = chooseUser();
  if (canEnter(user, home.path)) return { ...home, user };
  removeIfEmpty(home.path);
  const path = unusedHome(home.data_dir);
  try {
    makeFolder(homes_folder, 0o711);
    makeFolder(path, 0o711);
  } catch (error) {
    throw new EmbeddedError(
      `PostgreSQL's user ${user.name} cannot enter ${home.data_dir}, and ${path} cannot be made (${String(error)}). ${remedy}`,
    );
  }
  if (!canEnter(user, path)) {
    throw new EmbeddedError(`PostgreSQL's user ${user.name} can enter neither ${home.data_dir} nor ${path}. ${remedy}`);
  }
  const pointer = createPointer({ home: path, data_dir: home.data_dir });
  return { ...home, path: pointer.home, user };
}

/**
 * Returns a free path for the cluster of a new data folder. A removed data folder leaves its cluster behind;
 * the new one does not take it up, since removing the folder was meant as a new beginning.
 */
function unusedHome(data_dir: string): string {
  const path = join(homes_folder, shortHashOf(data_dir));
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? path : `${path}-${number}`;
    if (!existsSync(join(candidate, 'data'))) return candidate;
  }
}

const remedy = 'Set MEDLEY_DATA to a folder that everybody may pass through, or DATABASE_URL.';

function chooseUser(): SystemUser {
  const user = findUser('postgres') ?? findUser('nobody');
  if (user && user.uid !== 0) return user;
  throw new EmbeddedError(
    'PostgreSQL refuses to run as root, and there is no user postgres or nobody. Start Medley as an ordinary user, or set DATABASE_URL.',
  );
}

function followPointer(pointer: Pointer, data_dir: string): Home {
  if (!existsSync(pointer.home)) {
    throw new EmbeddedError(
      `The database of ${data_dir} lived in ${pointer.home}, which is gone. Put it back; ` +
        `or remove ${join(data_dir, pointer_name)} to start with an empty database.`,
    );
  }
  if (pointer.data_dir !== data_dir) checkMoved(pointer, data_dir);
  return { data_dir, path: pointer.home, user: undefined };
}

/** A moved data folder keeps its cluster; a copied one must not share it with the original. */
function checkMoved(pointer: Pointer, data_dir: string): void {
  if (readPointer(pointer.data_dir)?.home === pointer.home) {
    throw new EmbeddedError(
      `${data_dir} is a copy of ${pointer.data_dir}; its database was not copied, it lives in ${pointer.home}. ` +
        `Remove ${join(data_dir, pointer_name)} to start with an empty database.`,
    );
  }
  replacePointer({ home: pointer.home, data_dir });
}

function readPointer(data_dir: string): Pointer | undefined {
  const path = join(data_dir, pointer_name);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw new EmbeddedError(
      `${path} cannot be read (${String(error)}): start Medley as the user who started it before.`,
    );
  }
  const pointer = JSON.parse(text) as Partial<Pointer>;
  if (typeof pointer.home === 'string' && typeof pointer.data_dir === 'string')
    return { home: pointer.home, data_dir: pointer.data_dir };
  throw new EmbeddedError(`${path} does not say where the database is. Restore it from a backup.`);
}

/** Writes the pointer of a new data folder, unless a start at the same moment was faster: then that one counts. */
function createPointer(pointer: Pointer): Pointer {
  const draft = draftPointer(pointer);
  try {
    linkSync(draft, join(pointer.data_dir, pointer_name));
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
  } finally {
    rmSync(draft);
  }
  return readPointer(pointer.data_dir) ?? pointer;
}

function replacePointer(pointer: Pointer): void {
  renameSync(draftPointer(pointer), join(pointer.data_dir, pointer_name));
}

function draftPointer(pointer: Pointer): string {
  const draft = join(pointer.data_dir, `${pointer_name}.${process.pid}`);
  writeFileSync(draft, JSON.stringify(pointer, undefined, 2) + '\n', { mode: 0o600 });
  return draft;
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Not empty, or a second start has removed it: harmless, nothing looks into it.
  }
}

function mayUse(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The outermost folder on the way to `path` that `user` cannot enter. */
function firstBarrier(user: SystemUser, path: string): string {
  const parent = dirname(path);
  return parent === path || canEnter(user, parent) ? path : firstBarrier(user, parent);
}
