import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { prepareBinaries, removeOldCopies } from './binaries.ts';
import {
  connectionOf,
  ensureCluster,
  probe,
  readPassword,
  urlOf,
  type Cluster,
  type ServerCluster,
  type Connection,
} from './cluster.ts';
import { findHome, prepareHome, type Home } from './home.ts';
import { DataFolderInUse, takeLock, type Lock, type Purpose } from './lock.ts';
import { EmbeddedError } from './process.ts';
import {
  adoptServer,
  endServer,
  findPostmaster,
  readServerNote,
  removeSocketFolder,
  startPostgres,
  type Server,
} from './server.ts';

export { DataFolderInUse, EmbeddedError };
export type { Connection };

export type EmbeddedOptions = {
  data_dir: string;
  /** Told in a few words what happens to the server. */
  log?: (line: string) => void;
  /** PostgreSQL settings beside ours, for example fsync=off in tests. */
  settings?: Record<string, string>;
  /** `command`: over soon, so that a service or another command waits instead of failing. */
  purpose?: Purpose;
  /** Aborted when nobody wants the server any more: a start that is under way fails, and leaves nothing behind. */
  unwanted?: AbortSignal;
};

/** A running PostgreSQL of ours. It is started again when it dies, until `stop`. */
export type EmbeddedPostgres = {
  readonly connection: Connection;
  readonly url: string;
  /** True if the server of an earlier process was taken over. */
  readonly adopted: boolean;
  /** The postmaster; another one after a crash. */
  readonly pid: number;
  /** Stops the server and frees the data folder. At most `limit_ms` + 4 s. */
  stop(limit_ms?: number): Promise<void>;
};

/** Time that a start waits for commands that use the same data folder. */
const command_wait_ms = 30_000;

/**
 * Starts PostgreSQL on the data folder: makes the cluster if there is none, takes over the server of
 * a process that was killed, and watches over it from then on. Throws DataFolderInUse while another
 * service has the folder, EmbeddedError with what to do when PostgreSQL cannot run.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const home = prepareHome(options.data_dir);
  const lock = await waitForLock(home, options.purpose ?? 'service');
  try {
    const cluster: Cluster = {
      home,
      data: join(home.path, 'data'),
      binaries: prepareBinaries(home),
      settings: options.settings ?? {},
      log: options.log ?? (() => undefined),
    };
    const supervisor = new Supervisor(cluster, await ensureCluster(cluster), lock, options.unwanted);
    await supervisor.start();
    return supervisor;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Returns the connection to the PostgreSQL that runs on this data folder, whoever started it; undefined if
 * none does. Changes nothing. Throws EmbeddedError if it runs but cannot be used.
 */
export async function embeddedConnection(data_dir: string): Promise<Connection | undefined> {
  const home = findHome(data_dir);
  const note = home && readServerNote(home);
  if (!home || !note || findPostmaster(join(home.path, 'data')) !== note.pid) return undefined;
  const connection = connectionOf(note, readPassword(home));
  return (await probe(connection)) === 'ready' ? connection : undefined;
}

/** A database that a command may use. `close` stops only what was started for it. */
export type OpenEmbedded = { connection: Connection; url: string; close(): Promise<void> };

/**
 * Opens, for commands, the database of the service that runs on this data folder, else one of our own for as long as
 * the command lasts. Waits for a service that is just starting, and for other commands.
 */
export async function openEmbedded(options: Omit<EmbeddedOptions, 'purpose'>): Promise<OpenEmbedded> {
  const end_ms = performance.now() + command_wait_ms;
  for (;;) {
    try {
      const embedded = await startEmbedded({ ...options, purpose: 'command' });
      return { connection: embedded.connection, url: embedded.url, close: () => embedded.stop() };
    } catch (error) {
      if (!(error instanceof DataFolderInUse)) throw error;
      const connection = error.owner?.purpose === 'service' ? await embeddedConnection(options.data_dir) : undefined;
      if (connection) return { connection, url: urlOf(connection), close: async () => undefined };
      if (performance.now() > end_ms || options.unwanted?.aborted) throw error;
      await sleep(100);
    }
  }
}

async function waitForLock(home: Home, purpose: Purpose): Promise<Lock> {
  const end_ms = performance.now() + command_wait_ms;
  for (;;) {
    try {
      return takeLock(home, purpose);
    } catch (error) {
      const passing = error instanceof DataFolderInUse && error.owner?.purpose !== 'service';
      if (!passing || purpose === 'command' || performance.now() > end_ms) throw error;
      await sleep(50);
    }
  }
}

/** Pauses before the next attempt to start a server that died; the last one repeats. */
const restart_pauses_ms = [100, 250, 500, 1_000, 2_000, 5_000];

class Supervisor implements EmbeddedPostgres {
  readonly #cluster: ServerCluster;
  readonly #lock: Lock;
  #server: Server | undefined;
  #adopted = false;
  readonly #stopping = new AbortController();
  #stopped: Promise<void> | undefined;
  #restarting: Promise<void> = Promise.resolve();

  constructor(cluster: Cluster, password: string, lock: Lock, unwanted: AbortSignal | undefined) {
    const stopping = unwanted ? AbortSignal.any([this.#stopping.signal, unwanted]) : this.#stopping.signal;
    this.#cluster = { ...cluster, password, stopping };
    this.#lock = lock;
  }

  get connection(): Connection {
    return connectionOf(this.#running().endpoint, this.#cluster.password);
  }

  get url(): string {
    return urlOf(this.connection);
  }

  get adopted(): boolean {
    return this.#adopted;
  }

  get pid(): number {
    return this.#running().pid;
  }

  async start(): Promise<void> {
    const adopted = await adoptServer(this.#cluster);
    this.#adopted = adopted !== undefined;
    if (adopted) this.#cluster.log(`PostgreSQL (process ${adopted.pid}) of an earlier start taken over`);
    this.#use(adopted ?? (await startPostgres(this.#cluster)));
    removeOldCopies(this.#cluster.home, this.#cluster.binaries);
  }

  stop(limit_ms?: number): Promise<void> {
    this.#stopped ??= this.#stop(limit_ms);
    return this.#stopped;
  }

  async #stop(limit_ms?: number): Promise<void> {
    this.#stopping.abort();
    await this.#restarting;
    const server = this.#running();
    await endServer(this.#cluster, server, limit_ms);
    removeSocketFolder(this.#cluster.home, server.endpoint);
    this.#lock.release();
  }

  #running(): Server {
    if (!this.#server) throw new EmbeddedError('PostgreSQL has not been started.');
    return this.#server;
  }

  #use(server: Server): void {
    this.#server = server;
    void this.#watch(server);
  }

  async #watch(server: Server): Promise<void> {
    const how = await server.ended;
    if (!this.#stopping.signal.aborted) this.#restarting = this.#restart(how);
  }

  /** Until it runs again: without its database the service has nothing else to do. */
  async #restart(how: string): Promise<void> {
    this.#cluster.log(`PostgreSQL ended unexpectedly (${how}); starting it again`);
    for (let attempt = 0; !this.#stopping.signal.aborted; attempt++) {
      try {
        const server = await startPostgres(this.#cluster, this.#running().endpoint);
        this.#cluster.log(`PostgreSQL runs again (process ${server.pid})`);
        return this.#use(server);
      } catch (error) {
        this.#cluster.log(error instanceof Error ? error.message : String(error));
      }
      const pause_ms = restart_pauses_ms[Math.min(attempt, restart_pauses_ms.length - 1)];
      await sleep(pause_ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
  }
}
