import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
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
  /** Kills the primary with all its processes, or freezes them as a machine does that hangs: nothing says goodbye. */
  strike(how: 'killed' | 'frozen'): Promise<void>;
  /** From now on nobody waits for the standby, and it hears nothing: what is done now is lost with the primary. */
  cutOff(): Promise<void>;
  /** Makes the standby a primary. Nobody is waited for any more. */
  promote(): Promise<void>;
  stop(): Promise<void>;
};

type Node = { cluster: Cluster; port: number; child: ChildProcess | undefined };

export async function startReplicated(): Promise<Replicated> {
  const folder = clusterFolder();
  const [primary, standby] = [await makeNode(join(folder, 'a')), await makeNode(join(folder, 'b'))];
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

  start(primary);
  await untilReady(admin(primary));
  await prepareDatabase({ ...admin(primary), user: 'medley', database: 'medley', ssl: false });
  await stopNode(primary);
  // The copy of a cluster at rest is what pg_basebackup makes of one at work; the embedded binaries have none.
  spawnSync('cp', ['-a', primary.cluster.data, standby.cluster.data]);
  const signal_file = join(standby.cluster.data, 'standby.signal');
  writeFileSync(signal_file, '');
  giveToServer(standby.cluster.home, signal_file);
  writeSettings(primary, { synchronous_standby_names: '*' });
  writeSettings(standby, {
    primary_conninfo: `host=127.0.0.1 port=${primary.port} user=postgres password=${password} application_name=standby`,
  });
  start(primary);
  start(standby);
  await Promise.all([untilReady(admin(primary)), untilReady(admin(standby))]);
  const in_step = `select from pg_stat_replication where sync_state = 'sync'`;
  while ((await ask(admin(primary), in_step)) === 0) await sleep(50);
  return {
    url: urlOf(primary, standby),
    strike: (how) => strike(primary, how),
    cutOff: async () => {
      for (const node of [primary, standby]) {
        await ask(
          admin(node),
          `alter system set ${node === primary ? 'synchronous_standby_names' : 'primary_conninfo'} = ''`,
        );
        await ask(admin(node), 'select pg_reload_conf()');
      }
      while ((await ask(admin(primary), 'select from pg_stat_replication')) > 0) await sleep(50);
    },
    promote: async () => void (await ask(admin(standby), 'select pg_promote()')),
    stop: async () => {
      await Promise.all([stopNode(primary), stopNode(standby)]);
      removeFolder(folder);
    },
  };
}

async function makeNode(folder: string): Promise<Node> {
  const home = prepareHome(folder);
  const cluster = {
    home,
    data: join(home.path, 'data'),
    binaries: prepareBinaries(home),
    settings: { fsync: 'off' },
    log: () => undefined,
  };
  return { cluster, port: await freePort(), child: undefined };
}

const common_settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '100',
  wal_level: 'replica',
  hot_standby: 'on',
  fsync: 'off',
  log_min_messages: 'panic',
};

/** In the file, not on the command line: they change. */
function writeSettings({ cluster }: Node, settings: Record<string, string>): void {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
  appendFileSync(join(cluster.data, 'postgresql.conf'), lines.join(''));
}

function start(node: Node): void {
  const { binaries, data, home } = node.cluster;
  const settings = Object.entries({ ...common_settings, port: String(node.port) });
  const words = ['-D', data, ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  const { user } = home;
  node.child = spawn(binaries.postgres, words, {
    stdio: 'ignore',
    cwd: home.path,
    env: server_environment,
    ...(user && { uid: user.uid, gid: user.gid }),
  });
}

async function stopNode({ child, cluster }: Node): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  signalAll({ child, cluster }, 'SIGCONT');
  child.kill('SIGINT');
  await once(child, 'exit');
}

async function strike({ child, cluster }: Node, how: 'killed' | 'frozen'): Promise<void> {
  if (!child) return;
  if (how === 'frozen') return signalAll({ child, cluster }, 'SIGSTOP');
  child.kill('SIGKILL');
  await once(child, 'exit');
  for (const pid of findOrphans(cluster.data)) signalProcess(pid, 'SIGKILL');
}

/** Its processes have sessions of their own. */
function signalAll({ child, cluster }: Pick<Node, 'cluster'> & { child: ChildProcess }, signal: NodeJS.Signals): void {
  child.kill(signal);
  for (const pid of findOrphans(cluster.data)) signalProcess(pid, signal);
}

async function untilReady(config: pg.ClientConfig): Promise<void> {
  while ((await ask(config, 'select 1').catch(() => 0)) !== 1) await sleep(20);
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
