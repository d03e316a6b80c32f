import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { prepareBinaries } from '../../src/embedded-postgres/binaries.ts';
import {
  ensureCluster,
  prepareDatabase,
  server_environment,
  type Cluster,
} from '../../src/embedded-postgres/cluster.ts';
import { giveToServer, prepareHome } from '../../src/embedded-postgres/home.ts';
import { findOrphans, signalProcess } from '../../src/embedded-postgres/process.ts';
import { clusterFolder, removeFolder } from './embedded.ts';
import { freePort } from './free-port.ts';

/** Two PostgreSQL servers of one database: a primary, and a standby that every commit waits for until it is cut off. */
export type Replicated = {
  /** Both servers, as an operator writes them. */
  url: string;
  /** The primary alone. */
  primaryUrl(): string;
  /** Kills the primary with all its processes, or freezes them as a machine does that hangs: nothing says goodbye. */
  strike(how: 'killed' | 'frozen'): Promise<void>;
  /** Starts a primary again that was killed. */
  restart(): Promise<void>;
  /** From now on nobody waits for the standby, and it hears nothing: what is done now is lost with the primary. */
  cutOff(): Promise<void>;
  /** Makes the standby the primary. Nobody is waited for any more. */
  promote(): Promise<void>;
  /** Makes the server that was the primary before a standby of the one that is: a copy, which every commit waits for. */
  rejoin(): Promise<void>;
  stop(): Promise<void>;
  /** Kills what runs, without waiting. */
  end(): void;
};

type Options = { folder?: string; settings?: Record<string, string> };

/** `log`: the end of what its server has written. */
type Node = { cluster: Cluster; port: number; child: ChildProcess | undefined; log: string };

export async function startReplicated({ folder = clusterFolder(), settings = {} }: Options = {}): Promise<Replicated> {
  let [primary, standby] = [await makeNode(join(folder, 'a'), settings), await makeNode(join(folder, 'b'), settings)];
  const password = await ensureCluster(primary.cluster);
  const urlOf = (...nodes: Node[]) =>
    `postgres://medley:${password}@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}/medley?sslmode=disable`;
  const admin = (node: Node) => ({
    host: '127.0.0.1',
    port: node.port,
    user: 'postgres',
    password,
    database: 'postgres',
  });

  await startUntilReady(primary, admin(primary));
  await prepareDatabase({ ...admin(primary), user: 'medley', database: 'medley', ssl: false });
  await stopNode(primary);
  // The copy of a cluster at rest is what pg_basebackup makes of one at work; the embedded binaries have none.
  spawnSync('cp', ['-a', primary.cluster.data, standby.cluster.data]);
  const signal_file = join(standby.cluster.data, 'standby.signal');
  writeFileSync(signal_file, '');
  giveToServer(standby.cluster.home, signal_file);
  writeSettings(primary, { synchronous_standby_names: '*' });
  const follow = (node: Node, leader: Node) =>
    writeSettings(node, {
      primary_conninfo: `host=127.0.0.1 port=${leader.port} user=postgres password=${password} application_name=standby`,
    });
  follow(standby, primary);
  await Promise.all([primary, standby].map((node) => startUntilReady(node, admin(node))));
  await untilInStep(admin(primary));
  return {
    url: urlOf(primary, standby),
    primaryUrl: () => urlOf(primary),
    strike: (how) => strike(primary, how),
    restart: () => startUntilReady(primary, admin(primary)),
    cutOff: async () => {
      await setNow(admin(primary), 'synchronous_standby_names', '');
      await setNow(admin(standby), 'primary_conninfo', '');
      while ((await ask(admin(primary), 'select from pg_stat_replication')) > 0) await sleep(50);
    },
    promote: async () => {
      await ask(admin(standby), 'select pg_promote()');
      [primary, standby] = [standby, primary];
    },
    rejoin: async () => {
      const [leader, follower] = [primary, standby];
      await strike(follower, 'killed');
      await copyAtWork(admin(leader), leader.cluster, follower.cluster);
      follow(follower, leader);
      await startUntilReady(follower, admin(follower));
      await setNow(admin(leader), 'synchronous_standby_names', '*');
      await untilInStep(admin(leader));
    },
    stop: async () => {
      await Promise.all([stopNode(primary), stopNode(standby)]);
      removeFolder(folder);
    },
    end: () => {
      for (const { child } of [primary, standby]) child?.kill('SIGKILL');
    },
  };
}

/** Copies a cluster at work, as pg_basebackup does: the copy begins with the log of the time when it was made. */
async function copyAtWork(config: pg.ClientConfig, from: Cluster, to: Cluster): Promise<void> {
  const session = new pg.Client(config);
  session.on('error', () => undefined);
  try {
    await session.connect();
    await session.query(`select pg_backup_start('rejoin', true)`);
    rmSync(to.data, { recursive: true, force: true });
    await promisify(execFile)('cp', ['-a', from.data, to.data]).catch(() => undefined); // what vanishes is not needed
    const { rows } = await session.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
    for (const name of ['postmaster.pid', 'postmaster.opts']) rmSync(join(to.data, name), { force: true });
    for (const name of readdirSync(join(to.data, 'pg_wal'))) rmSync(join(to.data, 'pg_wal', name), { recursive: true });
    appendFileSync(join(to.data, 'postgresql.auto.conf'), `synchronous_standby_names = ''\n`);
    for (const [name, text] of Object.entries({ backup_label: rows[0]?.labelfile ?? '', 'standby.signal': '' })) {
      writeFileSync(join(to.data, name), text);
      giveToServer(to.home, join(to.data, name));
    }
  } finally {
    await session.end().catch(() => undefined);
  }
}

async function makeNode(folder: string, settings: Record<string, string>): Promise<Node> {
  const home = prepareHome(folder);
  const cluster = {
    home,
    data: join(home.path, 'data'),
    binaries: prepareBinaries(home),
    settings: { fsync: 'off', ...settings },
    log: () => undefined,
  };
  return { cluster, port: await freePort(), child: undefined, log: '' };
}

const common_settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '100',
  wal_level: 'replica',
  wal_keep_size: '1GB', // a copy is made while others write
  wal_retrieve_retry_interval: '200ms',
  hot_standby: 'on',
  fsync: 'off',
  log_min_messages: 'fatal',
};

/** In the file, not on the command line: they change. */
function writeSettings({ cluster }: Node, settings: Record<string, string>): void {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
  appendFileSync(join(cluster.data, 'postgresql.conf'), lines.join(''));
}

function start(node: Node): void {
  const { binaries, data, home } = node.cluster;
  const settings = Object.entries({ ...common_settings, ...node.cluster.settings, port: String(node.port) });
  const words = ['-D', data, ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  const { user } = home;
  node.child = spawn(binaries.postgres, words, {
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: home.path,
    env: server_environment,
    ...(user && { uid: user.uid, gid: user.gid }),
  });
  node.child.stderr?.on('data', (chunk) => (node.log = (node.log + String(chunk)).slice(-2_000)));
}

function hasEnded({ child }: Node): boolean {
  return !child || child.exitCode !== null || child.signalCode !== null;
}

async function stopNode(node: Node): Promise<void> {
  const { child, cluster } = node;
  if (!child || hasEnded(node)) return;
  signalAll({ child, cluster }, 'SIGCONT');
  child.kill('SIGINT');
  await once(child, 'exit');
}

async function strike(node: Node, how: 'killed' | 'frozen'): Promise<void> {
  const { child, cluster } = node;
  if (!child) return;
  if (how === 'frozen') return signalAll({ child, cluster }, 'SIGSTOP');
  if (!hasEnded(node)) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  for (const pid of findOrphans(cluster.data)) signalProcess(pid, 'SIGKILL');
}

/** Its processes have sessions of their own. */
function signalAll({ child, cluster }: Pick<Node, 'cluster'> & { child: ChildProcess }, signal: NodeJS.Signals): void {
  child.kill(signal);
  for (const pid of findOrphans(cluster.data)) signalProcess(pid, signal);
}

/**
 * Starts a server, again where it ends at once: a process of one that was killed, so young that it had no title of its own
 * and was not found, keeps the memory of the cluster for a moment.
 */
async function startUntilReady(node: Node, config: pg.ClientConfig): Promise<void> {
  for (const give_up_at_ms = Date.now() + 60_000; ; await sleep(20)) {
    if (hasEnded(node)) {
      await strike(node, 'killed'); // what is left of it
      start(node);
    }
    if ((await ask(config, 'select 1').catch(() => 0)) === 1) return;
    if (Date.now() > give_up_at_ms)
      throw new Error(`PostgreSQL on port ${config.port} does not begin to serve:\n${node.log}`);
  }
}

/** Changes a setting of a server that runs. */
async function setNow(config: pg.ClientConfig, name: string, value: string): Promise<void> {
  await ask(config, `alter system set ${name} = '${value}'`);
  await ask(config, 'select pg_reload_conf()');
}

/** Waits until each commit of a primary waits for its standby. */
async function untilInStep(config: pg.ClientConfig): Promise<void> {
  while ((await ask(config, `select from pg_stat_replication where sync_state = 'sync'`)) === 0) await sleep(50);
}

/** Answers the number of rows. */
async function ask(config: pg.ClientConfig, text: string): Promise<number> {
  const client = new pg.Client(config);
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query(text)).rowCount ?? 0;
  } finally {
    await client.end();
  }
}
