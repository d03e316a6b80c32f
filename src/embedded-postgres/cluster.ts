import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { randomBase62 } from '../lib/ids.ts';
import type { Binaries } from './binaries.ts';
import { giveToServer, writeOwned, type Home } from './home.ts';
import { EmbeddedError } from './process.ts';

/** A cluster on the disk, and how it is to be run. */
export type Cluster = {
  home: Home;
  /** PGDATA. */
  data: string;
  binaries: Binaries;
  settings: Record<string, string>;
  log: (line: string) => void;
};

/** Everything that a server of a cluster needs to be started. */
export type ServerCluster = Cluster & {
  password: string;
  /** Aborted when the server is to be stopped: nobody waits for it to become ready any more. */
  stopping: AbortSignal;
};

/** Address of a server: `host` is the folder of its socket, or 127.0.0.1 on Windows. */
export type Endpoint = { host: string; port: number };

/** Connection settings in the form of pg's own configuration. `ssl` is set because PGSSLMODE would decide otherwise. */
export type Connection = Endpoint & { user: string; password: string; database: string; ssl: false };

const major = '18';
const superuser = 'postgres';

/** The service's role: owns its database, may make others (for tests and restores), is no superuser. */
const role = 'medley';

/** Environment of PostgreSQL's programs: independent of the host's locales and time zone. */
export const server_environment: Record<string, string> = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' };

/**
 * Makes the cluster if there is none, and returns its password. It is made under another name and renamed when complete, so an
 * interrupted first start leaves nothing that looks like a cluster.
 */
export async function ensureCluster(cluster: Cluster): Promise<string> {
  const { home, data } = cluster;
  removeDrafts(home);
  if (existsSync(data)) {
    checkVersion(data);
    return readPassword(home);
  }
  const password = randomBase62(32);
  writeOwned(home, 'password', password);
  await makeCluster(cluster, password);
  return password;
}

/** The password of both roles. Throws EmbeddedError if the file is gone or not ours. */
export function readPassword(home: Home): string {
  const path = join(home.path, 'password');
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new EmbeddedError(
      `The database's password cannot be read (${String(error)}). Start Medley as the user who started it first, or restore ${path}.`,
    );
  }
}

export function connectionOf(endpoint: Endpoint, password: string): Connection {
  return { host: endpoint.host, port: endpoint.port, user: role, password, database: role, ssl: false };
}

/** The same as one `postgres://` address. */
export function urlOf(connection: Connection): string {
  const { host, port, user, password, database } = connection;
  return host.startsWith('/')
    ? `postgres://${user}:${password}@/${database}?host=${encodeURIComponent(host)}&port=${port}&sslmode=disable`
    : `postgres://${user}:${password}@${host}:${port}/${database}?sslmode=disable`;
}

/** A server's response to an attempt to connect as the service. */
export type Answer = 'ready' | 'starting' | 'silent' | 'refused' | 'unprepared';

/** Tries the connection once. `unprepared`: role or database are not there yet, or another password. */
export async function probe(connection: Connection): Promise<Answer> {
  const client = new pg.Client({ ...connection, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined); // a server that dies now is noticed by the next attempt
  try {
    await client.connect();
    await client.query('select 1');
    return 'ready';
  } catch (error) {
    return answerOf(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** PostgreSQL's codes: 57P03 cannot_connect_now, 28P01 invalid_password, 3D000 invalid_catalog_name. */
function answerOf(error: unknown): Answer {
  if (!(error instanceof pg.DatabaseError)) return 'silent';
  if (error.code === '57P03') return 'starting';
  return error.code === '28P01' || error.code === '3D000' ? 'unprepared' : 'refused';
}

/** Makes role and database, or what an interrupted first start left to make. */
export async function prepareDatabase(connection: Connection): Promise<void> {
  const client = new pg.Client({
    ...connection,
    user: superuser,
    database: 'postgres',
    connectionTimeoutMillis: 5_000,
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<{ role: boolean; database: boolean }>(
      'select exists(select from pg_roles where rolname = $1) as role, exists(select from pg_database where datname = $1) as database',
      [role],
    );
    const text = pg.escapeLiteral(connection.password);
    if (!rows[0]?.role)
      await client.query(`create role ${role} login createdb password ${text} in role pg_monitor, pg_checkpoint`);
    if (!rows[0]?.database) await client.query(`create database ${role} owner ${role}`);
  } finally {
    await client.end();
  }
}

/** Removes the folders of interrupted first starts. An initdb that outlived its parent may still write there. */
function removeDrafts(home: Home): void {
  for (const name of readdirSync(home.path).filter((entry) => entry.startsWith('new-'))) {
    try {
      rmSync(join(home.path, name), { recursive: true, force: true, maxRetries: 3 });
    } catch {
      // The next start removes it.
    }
  }
}

function checkVersion(data: string): void {
  let version: string;
  try {
    version = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();
  } catch (error) {
    throw new EmbeddedError(`${data} is no PostgreSQL cluster (${String(error)}). Move it away, or restore it.`);
  }
  if (version !== major)
    throw new EmbeddedError(
      `${data} was made by PostgreSQL ${version}, and this Medley brings ${major}. Start the version that made it.`,
    );
}

async function makeCluster(cluster: Cluster, password: string): Promise<void> {
  const { home, data } = cluster;
  const draft = join(home.path, `new-${process.pid}-${randomBase62(6)}`);
  mkdirSync(draft, { mode: 0o700 });
  const password_file = join(draft, 'password');
  writeFileSync(password_file, password, { mode: 0o600 });
  giveToServer(home, password_file);
  giveToServer(home, draft);
  await runInitdb(cluster, join(draft, 'data'), password_file);
  renameSync(join(draft, 'data'), data);
  syncFolder(home.path);
  rmSync(draft, { recursive: true, force: true });
}

/** 0.6 s. */
async function runInitdb(cluster: Cluster, folder: string, password_file: string): Promise<void> {
  const words = ['-D', folder, '-U', superuser, '-E', 'UTF8', '--auth=scram-sha-256', `--pwfile=${password_file}`];
  words.push('--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--no-instructions');
  if (cluster.settings['fsync'] === 'off') words.push('--no-sync');
  const { user } = cluster.home;
  const child = spawn(cluster.binaries.initdb, words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: cluster.home.path,
    env: server_environment,
    ...(user && { uid: user.uid, gid: user.gid }),
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status, signal) => resolve(signal ?? status));
  });
  if (code !== 0) {
    const full = /No space left|Disk quota/i.test(output);
    const remedy = full
      ? ` No space is left on the disk of ${cluster.home.path}: free some space on it, or set MEDLEY_DATA to another folder.`
      : '';
    throw new EmbeddedError(`The database could not be created (initdb: ${String(code)}).${remedy}\n${output.trim()}`);
  }
}

/** Makes a rename in `folder` survive a power failure. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return; // folders cannot be opened there
  const handle = openSync(folder, 'r');
  fsyncSync(handle);
  closeSync(handle);
}
