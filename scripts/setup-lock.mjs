// The install lock and the list of running instances, both in .setup/. Plain JavaScript for Node 20.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { identify, isAlive, throwIfStopped } from './setup-process.mjs';

/** Files that cannot be written: another user's folder, or a read-only file system. */
export const isReadOnly = (error) => ['EACCES', 'EPERM', 'EROFS'].includes(error.code);

/**
 * The lock is the file with the highest number in .setup/lock/, and names the processes that hold
 * it; it is free when none of them lives. Taking it means making the next number, which the file
 * system grants to one process only. The highest file is never removed, so there is no moment in
 * which two processes can judge the same stale lock and both remove it.
 */
const lockFolder = (root) => join(root, '.setup', 'lock');

/** The processes that hold the lock now; [] when it is free. */
export function lockHolders(root) {
  const { holders } = newestLock(root);
  return holders;
}

/**
 * Waits for the lock, telling `onWait` who has it. The result's `add` names one more process that
 * holds it. Undefined, once the lock is free, if this user cannot write here.
 */
export async function takeLock(root, onWait) {
  const folder = lockFolder(root);
  for (;;) {
    const { number, holders } = newestLock(root);
    if (holders.length > 0) {
      onWait(holders[0].pid);
      await sleep(100);
      throwIfStopped();
      continue;
    }
    const outcome = makeLock(folder, number + 1);
    if (outcome === 'read-only') return undefined;
    if (outcome === 'made' && newestLock(root).number === number + 1) {
      removeOlder(folder, number + 1);
      return heldLock(join(folder, String(number + 1)));
    }
  }
}

function heldLock(path) {
  const processes = [identify(process.pid)];
  return {
    add: (pid) => {
      processes.push(identify(pid));
      replaceFile(path, processes);
    },
    release: () => replaceFile(path, []),
  };
}

function newestLock(root) {
  const number = Math.max(0, ...lockNumbers(lockFolder(root)));
  return { number, holders: number === 0 ? [] : liveProcesses(join(lockFolder(root), String(number))) };
}

function lockNumbers(folder) {
  try {
    return readdirSync(folder)
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return []; // nobody has installed anything here yet
  }
}

/** A file that is not complete yet is its maker's, who needs less than five seconds to write it. */
function liveProcesses(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).filter(isAlive);
  } catch {
    const age_ms = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    return age_ms < 5_000 ? [{ pid: 0 }] : [];
  }
}

function makeLock(folder, number) {
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, String(number)), JSON.stringify([identify(process.pid)]), { flag: 'wx' });
    return 'made';
  } catch (error) {
    if (error.code === 'EEXIST') return 'lost';
    if (isReadOnly(error)) return 'read-only';
    throw error;
  }
}

function removeOlder(folder, number) {
  for (const older of lockNumbers(folder)) if (older < number) rmSync(join(folder, String(older)), { force: true });
}

function replaceFile(path, content) {
  writeFileSync(`${path}.${process.pid}`, JSON.stringify(content));
  renameSync(`${path}.${process.pid}`, path);
}

const runningFolder = (root) => join(root, '.setup', 'running');

/**
 * Says that this process (and those it adds) runs from the packages of `parts`. Each user may say so:
 * the folder is open to all, like /tmp. Undefined on a read-only file system.
 */
export function registerRunning(root, parts) {
  const folder = runningFolder(root);
  const path = join(folder, `${process.pid}-${Date.now()}`);
  const processes = [identify(process.pid)];
  try {
    if (mkdirSync(folder, { recursive: true }) !== undefined) chmodSync(folder, 0o1777);
    replaceFile(path, { parts, processes });
  } catch (error) {
    if (isReadOnly(error)) return undefined;
    throw error;
  }
  return {
    add: (pid) => {
      processes.push(identify(pid));
      replaceFile(path, { parts, processes });
    },
    leave: () => rmSync(path, { force: true }),
  };
}

/** The pid of a living instance that uses the packages of `part`; notes of dead ones are removed. */
export function findRunning(root, part) {
  const folder = runningFolder(root);
  const names = existsSync(folder) ? readdirSync(folder) : [];
  for (const path of names.filter((name) => /^\d+-\d+$/.test(name)).map((name) => join(folder, name))) {
    const note = readNote(path);
    const alive = note?.processes.filter(isAlive) ?? [];
    if (alive.length === 0) rmSync(path, { force: true });
    else if (note.parts.includes(part)) return alive.at(-1).pid;
  }
  return undefined;
}

function readNote(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}
