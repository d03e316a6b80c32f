import { spawn, spawnSync, type ChildProcessByStdio } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statfsSync,
} from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import pg from 'pg';
import type { Connection } from '../../src/embedded-postgres/embedded.ts';
import { findHome } from '../../src/embedded-postgres/home.ts';

/** A kill ends processes, not the machine: what was written is there, on the disk or not. */
export const quick = { fsync: 'off' };

export const is_root = process.getuid?.() === 0;

const repository = dirname(dirname(import.meta.dirname));

/** A folder of this test alone. 0755: PostgreSQL's user may enter; 0700: it may not. */
export function temporaryFolder(mode: number): string {
  return folderIn(tmpdir(), mode);
}

/** A folder for a service or a database of this test alone, in memory if there is room; nothing can be executed in it. */
export function clusterFolder(): string {
  return folderIn(memoryOrDisk(), 0o755);
}

function folderIn(place: string, mode: number): string {
  const folder = realpathSync(mkdtempSync(join(place, 'medley-test-')));
  chmodSync(folder, mode);
  return folder;
}

const memory = '/dev/shm';
const room_min_bytes = 4 * 2 ** 30;

/** Memory where it has room for clusters: a database that is copied there takes 30 ms of a core, and 100 ms on a disk. */
function memoryOrDisk(): string {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize >= room_min_bytes ? memory : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** Removes a folder and the clusters outside of it that data folders in it point to. */
export function removeFolder(folder: string): void {
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    if (!existsSync(join(folder, name, 'postgres.json'))) continue;
    const home = homeOf(join(folder, name));
    if (home !== undefined) rmSync(home, { recursive: true, force: true });
  }
  rmSync(folder, { recursive: true, force: true });
}

/** Undefined for a copy of a data folder: the database belongs to the original. */
function homeOf(data_dir: string): string | undefined {
  try {
    return findHome(data_dir)?.path;
  } catch {
    return undefined;
  }
}

/** Sends one statement over a connection of its own. */
export async function ask<T>(connection: Connection, text: string): Promise<T[]> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    return (await client.query(text)).rows as T[];
  } finally {
    await client.end();
  }
}

/** A statement that keeps a server process busy until it is killed. */
export async function keepBusy(connection: Connection): Promise<void> {
  const client = new pg.Client(connection);
  client.on('error', () => undefined);
  await client.connect();
  void client.query('select count(*) from generate_series(1, 1000000000000)').catch(() => undefined);
}

export type ChildAnswer = {
  pid: number;
  adopted: boolean;
  url: string;
  connection: Connection;
  log: string[];
  failed?: string;
};
export type ChildProcess = ChildProcessByStdio<Writable, Readable, null>;
export type Child = { pid: number; answer: ChildAnswer; stop(): Promise<void>; kill(): Promise<void> };
export type Program = { node: string; script: string; uid?: number; gid?: number };

const here: Program = { node: process.execPath, script: join(import.meta.dirname, 'embedded-child.ts') };

/** Begins a process with an embedded PostgreSQL, without waiting for it. */
export function spawnChild(data_dir: string, program: Program = here): ChildProcess {
  const { uid, gid } = program;
  return spawn(program.node, [program.script, data_dir], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
    cwd: '/',
    ...(uid !== undefined && gid !== undefined && { uid, gid }),
  });
}

/** Starts a process with an embedded PostgreSQL and waits until it says how that went. */
export async function startChild(data_dir: string, program: Program = here): Promise<Child> {
  const child = spawnChild(data_dir, program);
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const ended = once(child, 'exit');
  return {
    pid: child.pid ?? 0,
    answer: JSON.parse(line) as ChildAnswer,
    stop: async () => {
      child.stdin.end();
      await ended;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

const packages = [
  'pg',
  'pg-connection-string',
  'pg-int8',
  'pg-pool',
  'pg-protocol',
  'pg-types',
  'pgpass',
  'split2',
  'xtend',
];
packages.push('postgres-array', 'postgres-bytea', 'postgres-date', 'postgres-interval', '@embedded-postgres');

/**
 * A copy of the program that an ordinary user can run, as this process may be below a folder of mode
 * 0700; without the links between libraries, and read-only for that user if this is root.
 */
export function copyProgram(folder: string, user: { uid: number; gid: number } | undefined): Program {
  for (const part of [
    'src/db',
    'src/lib',
    'package.json',
    'test/helpers/embedded-child.ts',
    ...packages.map((name) => `node_modules/${name}`),
  ]) {
    const from = join(repository, part);
    if (!existsSync(from)) continue;
    mkdirSync(dirname(join(folder, part)), { recursive: true });
    cpSync(from, join(folder, part), {
      recursive: true,
      dereference: false,
      filter: (path) => !/\.(so|dylib)(\.\d+)?$/.test(path) || !isLink(path),
    });
  }
  cpSync(process.execPath, join(folder, 'node'));
  spawnSync('chmod', ['-R', 'a+rX', folder]);
  return { node: join(folder, 'node'), script: join(folder, 'test/helpers/embedded-child.ts'), ...user };
}

function isLink(path: string): boolean {
  return readdirSync(dirname(path), { withFileTypes: true }).some(
    (entry) => join(dirname(path), entry.name) === path && entry.isSymbolicLink(),
  );
}
