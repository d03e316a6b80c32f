import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** The embedded PostgreSQL cannot run here; the message tells the operator what to do. */
export class EmbeddedError extends Error {
  override name = 'EmbeddedError';
}

/** An account of the operating system. */
export type SystemUser = { name: string; uid: number; gid: number };

/** The account named `name_or_uid`, from the name service, else from /etc/passwd (macOS has no getent). */
export function findUser(name_or_uid: string | number): SystemUser | undefined {
  const getent = spawnSync('getent', ['passwd', String(name_or_uid)], { encoding: 'utf8' });
  const lines = getent.error ? readLines('/etc/passwd') : (getent.stdout ?? '').split('\n');
  for (const line of lines) {
    const [name, , uid, gid] = line.split(':');
    if (name === undefined || uid === undefined || gid === undefined) continue;
    if (name === name_or_uid || Number(uid) === name_or_uid) return { name, uid: Number(uid), gid: Number(gid) };
  }
  return undefined;
}

/** Returns true if `user` can step into `folder`. Tried for real, so that access lists and mount options count. */
export function canEnter(user: SystemUser, folder: string): boolean {
  const tried = spawnSync('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], { uid: user.uid, gid: user.gid, cwd: '/' });
  if (tried.error) {
    throw new EmbeddedError(
      `PostgreSQL refuses to run as root, and this process may not switch to the user ${user.name} (${tried.error.message}). ` +
        'Start Medley as an ordinary user, or set DATABASE_URL.',
    );
  }
  return tried.status === 0;
}

/** Returns true while the system knows the process, as PostgreSQL asks before it trusts a lock file. */
export function hasProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isCode(error, 'EPERM');
  }
}

/** Returns true while the process runs. A zombie counts as ended: only its parent can clear it away. */
export function isAlive(pid: number): boolean {
  // The state follows the name, which is in brackets and may contain anything.
  return hasProcess(pid) && !/^\d+ \(.*\) Z /s.test(readLines(`/proc/${pid}/stat`).join('\n'));
}

/**
 * Returns true if process `pid` is a PostgreSQL that works in the cluster `data`. Pids are used again after a crash of
 * the machine, and a copied data folder names the postmaster of the original.
 */
export function isPostgresOf(pid: number, data: string): boolean {
  if (!isAlive(pid)) return false;
  if (process.platform === 'linux')
    return workingFolder(pid) === realpathSync(data) && /postgres/.test(commandLine(pid));
  if (process.platform === 'win32') return true;
  const listed = spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  return listed.stdout.includes('postgres') && listed.stdout.includes(data);
}

/** Processes that a dead postmaster of the cluster `data` left behind. Found on Linux only. */
export function findOrphans(data: string): number[] {
  if (process.platform !== 'linux') return [];
  const folder = realpathSync(data);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => commandLine(pid).startsWith('postgres: ') && workingFolder(pid) === folder);
}

/** Sends `signal`, if the process is still there. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!isCode(error, 'ESRCH')) throw error;
  }
}

/** Waits until `condition` holds, at most `limit_ms`; tells whether it does. */
export async function waitUntil(condition: () => boolean, limit_ms: number, pause_ms = 20): Promise<boolean> {
  const end_ms = performance.now() + limit_ms;
  while (!condition()) {
    if (performance.now() >= end_ms) return false;
    await sleep(pause_ms);
  }
  return true;
}

/** Returns true if `error` is a system error with this code, for example ENOENT. */
export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

function workingFolder(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined; // gone, or another user's
  }
}

function commandLine(pid: number): string {
  return readLines(`/proc/${pid}/cmdline`).join('\n');
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n');
  } catch {
    return [];
  }
}
