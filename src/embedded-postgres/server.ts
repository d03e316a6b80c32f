import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  connectionOf,
  type Answer,
  type Connection,
  prepareDatabase,
  probe,
  server_environment,
  type ServerCluster,
  type Endpoint,
} from './cluster.ts';
import { giveToOwner, giveToServer, shortHashOf, writeOwned, type Home } from './home.ts';
import {
  canEnter,
  EmbeddedError,
  findOrphans,
  hasProcess,
  isAlive,
  isPostgresOf,
  signalProcess,
  waitUntil,
} from './process.ts';

/** A postmaster that accepts connections, or did. */
export type Server = {
  pid: number;
  endpoint: Endpoint;
  /** Resolves when the postmaster has ended, however it did, with words for the log. */
  ended: Promise<string>;
  hasEnded(): boolean;
};

/** The note in `server.json`, written at a start for the next one and for the CLI. */
export type ServerNote = Endpoint & { pid: number; fingerprint: string };

/** The longest path of a unix socket that every system takes, in bytes. */
const socket_path_bytes_max = 103; // Linux: 107, macOS: 103
const socket_name = '.s.PGSQL.5432';
const log_bytes_max = 10_000_000;

const default_settings: Record<string, string> = {
  max_connections: '100',
  shared_buffers: '128MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_logical_replication_workers: '0',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  password_encryption: 'scram-sha-256',
  // Ends the transactions of a service that was killed: the next one must not wait for their locks.
  client_connection_check_interval: '2s',
  jit: 'off',
  // Errors of statements go to the client, which logs them; the file tells what happens to the server.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] ',
};

/** Takes over the server that an earlier process left running, if it is this cluster's and as we would start it. */
export async function adoptServer(cluster: ServerCluster): Promise<Server | undefined> {
  const pid = findPostmaster(cluster.data);
  if (pid === undefined) return undefined;
  const note = readServerNote(cluster.home);
  const server = watch(pid, note ?? { host: '', port: 0 });
  if (note?.pid === pid && note.fingerprint === fingerprintOf(cluster, note)) {
    const ready = await waitUntilReady(cluster, server).then(
      () => true,
      () => false,
    );
    if (ready) return server;
  }
  cluster.log(`stopping PostgreSQL (process ${pid}), which an earlier start left behind`);
  await endServer(cluster, server);
  return undefined;
}

/**
 * Starts a postmaster and waits until it accepts connections, at `address` if the service's clients
 * know one already. Throws EmbeddedError.
 */
export async function startPostgres(cluster: ServerCluster, address?: Endpoint): Promise<Server> {
  const endpoint = address ?? (await chooseEndpoint(cluster));
  for (let attempt = 0; ; attempt++) {
    try {
      return await tryStart(cluster, endpoint);
    } catch (error) {
      if (!(error instanceof StillInUse) || attempt >= 100 || cluster.stopping.aborted) throw error;
      clearRemains(cluster, attempt < 20 ? 'SIGQUIT' : 'SIGKILL');
      await sleep(100);
    }
  }
}

/** Stops a server: clients are cut, work of theirs is rolled back, everything committed is on the disk. */
export async function endServer(cluster: ServerCluster, server: Server, limit_ms = 5_000): Promise<void> {
  if (process.platform === 'win32') return endByControl(cluster, server, limit_ms);
  // Fast; then immediate (the next start recovers from the log); then whatever it takes.
  for (const [signal, wait_ms] of [
    ['SIGINT', limit_ms],
    ['SIGQUIT', 2_000],
    ['SIGKILL', 2_000],
  ] as const) {
    if (server.hasEnded()) return;
    if (signal !== 'SIGINT') cluster.log(`PostgreSQL does not stop: sending ${signal}`);
    signalProcess(server.pid, signal);
    await endsWithin(server, wait_ms);
  }
}

async function endsWithin(server: Server, limit_ms: number): Promise<void> {
  const over = new AbortController();
  // The timer, not the child, keeps this process alive until then.
  await Promise.race([server.ended, sleep(limit_ms, undefined, { signal: over.signal }).catch(() => undefined)]);
  over.abort();
}

export function readServerNote(home: Home): ServerNote | undefined {
  try {
    return JSON.parse(readFileSync(join(home.path, 'server.json'), 'utf8')) as ServerNote;
  } catch {
    return undefined;
  }
}

/** The living postmaster of the cluster, whoever started it. */
export function findPostmaster(data: string): number | undefined {
  const pid = postmasterNote(data)?.pid;
  return pid !== undefined && isPostgresOf(pid, data) ? pid : undefined;
}

/** A start failed because something of an earlier server is still there. */
class StillInUse extends EmbeddedError {
  override name = 'StillInUse';
}

/** Processes of a postmaster that was killed keep its shared memory until they notice. */
function clearRemains(cluster: ServerCluster, signal: NodeJS.Signals): void {
  for (const pid of findOrphans(cluster.data)) signalProcess(pid, signal);
  if (findPostmaster(cluster.data) === undefined) removeStaleFiles(cluster);
}

async function tryStart(cluster: ServerCluster, endpoint: Endpoint): Promise<Server> {
  const { home } = cluster;
  const log_path = prepareLog(home);
  const log_start_bytes = statSync(log_path).size;
  const server =
    process.platform === 'win32'
      ? await startByControl(cluster, endpoint, log_path)
      : spawnServer(cluster, endpoint, log_path);
  const fingerprint = fingerprintOf(cluster, endpoint);
  try {
    writeOwned(home, 'server.json', JSON.stringify({ pid: server.pid, ...endpoint, fingerprint } satisfies ServerNote));
    await waitUntilReady(cluster, server);
    return server;
  } catch (error) {
    await endServer(cluster, server);
    const log = readFileSync(log_path).subarray(log_start_bytes).toString().trim();
    if (/still in use|lock file ".*" already exists/.test(log)) throw new StillInUse(log);
    throw new EmbeddedError(
      `PostgreSQL does not start: ${messageOf(error)}\n${log.split('\n').slice(-8).join('\n')}\n(all of it: ${log_path})`,
    );
  }
}

/**
 * The postmaster gets a session of its own, so a terminal's Ctrl-C does not reach it, and writes to a
 * file, since a pipe would lose its reader with us.
 */
function spawnServer(cluster: ServerCluster, endpoint: Endpoint, log_path: string): Server {
  const { user } = cluster.home;
  const log = openSync(log_path, 'a');
  const child = spawn(cluster.binaries.postgres, ['-D', cluster.data, ...settingArguments(cluster, endpoint)], {
    detached: true,
    stdio: ['ignore', log, log],
    cwd: cluster.home.path,
    env: server_environment,
    ...(user && { uid: user.uid, gid: user.gid }),
  });
  closeSync(log);
  child.unref();
  let over = false;
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  }).then((how) => {
    over = true;
    return how;
  });
  return { pid: child.pid ?? 0, endpoint, ended, hasEnded: () => over };
}

/** Watches a postmaster that is not our child: nothing but its pid tells of its end. */
function watch(pid: number, endpoint: Endpoint): Server {
  const ended = new Promise<string>((resolve) => {
    const timer = setInterval(() => {
      if (isAlive(pid)) return;
      clearInterval(timer);
      resolve('process gone');
    }, 50);
    timer.unref();
  });
  return { pid, endpoint, ended, hasEnded: () => !isAlive(pid) };
}

/** Returns when the service's role can use its database. Recovery after a crash may take its time. */
async function waitUntilReady(cluster: ServerCluster, server: Server): Promise<void> {
  const connection = connectionOf(server.endpoint, cluster.password);
  const started_ms = performance.now();
  let silent_until_ms = started_ms + 60_000;
  let prepared = false;
  let logged_ms = started_ms;
  for (;;) {
    const answer = await ask(cluster, server, connection);
    const now_ms = performance.now();
    if (answer === 'ready') return;
    if (cluster.stopping.aborted) throw new EmbeddedError('it is to be stopped.');
    if (server.hasEnded()) throw new EmbeddedError(`it ended (${await server.ended}).`);
    if (answer === 'unprepared') {
      if (prepared) throw new EmbeddedError('it does not accept the password in the file beside it.');
      await prepareDatabase(connection);
      prepared = true;
      continue;
    }
    if (answer !== 'silent') silent_until_ms = now_ms + 60_000;
    if (now_ms > silent_until_ms) throw new EmbeddedError('it does not answer within 60 s.');
    if (now_ms - logged_ms > 5_000) {
      cluster.log(`PostgreSQL is not ready yet (${answer}, ${Math.round((now_ms - started_ms) / 1000)} s)`);
      logged_ms = now_ms;
    }
    await sleep(now_ms - started_ms < 1_000 ? 10 : 100);
  }
}

/** Asks only a server that says it is ready: each early attempt would be a line in its log. */
async function ask(cluster: ServerCluster, server: Server, connection: Connection): Promise<Answer> {
  const note = postmasterNote(cluster.data);
  if (note?.pid !== server.pid) return 'silent';
  return note.ready ? probe(connection) : 'starting';
}

function settingArguments(cluster: ServerCluster, endpoint: Endpoint): string[] {
  const place: Record<string, string> = endpoint.host.startsWith('/')
    ? { listen_addresses: '', unix_socket_directories: endpoint.host, unix_socket_permissions: '0700' }
    : { listen_addresses: endpoint.host, unix_socket_directories: '' };
  const settings = { ...default_settings, ...cluster.settings, ...place, port: String(endpoint.port) };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

function fingerprintOf(cluster: ServerCluster, endpoint: Endpoint): string {
  const text = [cluster.binaries.postgres, cluster.binaries.version, ...settingArguments(cluster, endpoint)].join('\n');
  return createHash('sha256').update(text).digest('hex');
}

async function chooseEndpoint(cluster: ServerCluster): Promise<Endpoint> {
  if (process.platform === 'win32') return { host: '127.0.0.1', port: await freePort() };
  return { host: socketFolder(cluster.home), port: 5432 };
}

/** The first folder whose path is short enough and that PostgreSQL's user can enter. */
function socketFolder(home: Home): string {
  const short_name = `medley-${shortHashOf(home.path)}`;
  for (const folder of [
    join(home.path, 'run'),
    join(tmpdir(), short_name),
    join('/tmp', short_name),
    join('/var/tmp', short_name),
  ]) {
    if (Buffer.byteLength(join(folder, socket_name)) <= socket_path_bytes_max && makeSocketFolder(home, folder))
      return folder;
  }
  throw new EmbeddedError(
    `No folder for PostgreSQL's socket: ${home.path} is too long a path, and none can be made in ${tmpdir()} or /tmp. Set MEDLEY_DATA to a shorter path.`,
  );
}

/** Removes a socket's folder outside of the home; the server that used it has ended. */
export function removeSocketFolder(home: Home, endpoint: Endpoint): void {
  if (!endpoint.host.startsWith('/') || endpoint.host === join(home.path, 'run')) return;
  rmSync(endpoint.host, { recursive: true, force: true });
}

/** False unless the folder is PostgreSQL's alone: in /tmp somebody else may have made it before. */
function makeSocketFolder(home: Home, folder: string): boolean {
  try {
    if (!existsSync(folder)) {
      mkdirSync(folder, { mode: 0o700 });
      giveToServer(home, folder);
    }
    const stat = lstatSync(folder);
    const owner = home.user ? home.user.uid >>> 0 : process.getuid?.();
    const private_folder = stat.isDirectory() && stat.uid === owner && (stat.mode & 0o077) === 0;
    return private_folder && (home.user === undefined || canEnter(home.user, folder));
  } catch {
    return false;
  }
}

/** Reads `postmaster.pid`: the first line is the pid, the eighth the state. */
function postmasterNote(data: string): { pid: number; ready: boolean } | undefined {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    const pid = Number(lines[0]);
    return Number.isInteger(pid) && pid > 0 ? { pid, ready: lines[7]?.trim() === 'ready' } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * After a crash of the machine the pids in PostgreSQL's lock files may belong to others (or to a zombie,
 * in a container whose first process clears none away), and it refuses to start because of them. Where
 * no process has the pid, PostgreSQL's own check is the better one: it also looks for that
 * postmaster's children.
 */
function removeStaleFiles(cluster: ServerCluster): void {
  const pid = postmasterNote(cluster.data)?.pid;
  if (pid !== undefined && hasProcess(pid)) rmSync(join(cluster.data, 'postmaster.pid'), { force: true });
  const folder = readServerNote(cluster.home)?.host;
  if (folder?.startsWith('/')) rmSync(join(folder, `${socket_name}.lock`), { force: true });
}

function prepareLog(home: Home): string {
  const path = join(home.path, 'postgres.log');
  if (existsSync(path) && statSync(path).size > log_bytes_max) renameSync(path, `${path}.1`);
  if (!existsSync(path)) {
    closeSync(openSync(path, 'a', 0o600));
    giveToOwner(home, path);
  }
  return path;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Windows: pg_ctl gives up an administrator's rights, without which PostgreSQL refuses to start. */
async function startByControl(cluster: ServerCluster, endpoint: Endpoint, log_path: string): Promise<Server> {
  const options = settingArguments(cluster, endpoint)
    .map((word) => `"${word}"`)
    .join(' ');
  await control(cluster, ['start', '-w', '-t', '60', '-l', log_path, '-o', options]);
  const pid = postmasterNote(cluster.data)?.pid;
  if (pid === undefined) throw new EmbeddedError(`PostgreSQL does not start; see ${log_path}.`);
  return watch(pid, endpoint);
}

async function endByControl(cluster: ServerCluster, server: Server, limit_ms: number): Promise<void> {
  for (const mode of ['fast', 'immediate']) {
    if (server.hasEnded()) return;
    await control(cluster, ['stop', '-w', '-t', String(Math.ceil(limit_ms / 1000)), '-m', mode]);
  }
  await waitUntil(() => server.hasEnded(), 2_000);
}

function control(cluster: ServerCluster, arguments_: string[]): Promise<void> {
  return new Promise((resolve) => {
    execFile(cluster.binaries.pg_ctl, [...arguments_, '-D', cluster.data], () => resolve());
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() =>
        address && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port')),
      );
    });
  });
}
