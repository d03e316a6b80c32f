import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmbedded } from '../../src/embedded-postgres/embedded.ts';
import { startMuteProxy } from '../helpers/mute-proxy.ts';
import { startReplicated, type Replicated } from '../helpers/replicated.ts';

/** The database of a run: one server, or a primary and a standby that every commit waits for. */
export type Database = {
  /** For the checker and operators' commands. It stays the same, whichever server it leads to. */
  url: string;
  /** Names the server that serves now. */
  name(): string;
  /** Kills it with SIGKILL; resolves when it serves again. */
  kill(): Promise<void>;
  /** Kills the primary and promotes the standby; resolves when the other one is its standby. Undefined without a standby. */
  failOver: (() => Promise<void>) | undefined;
  stop(): Promise<void>;
  /** However this process ends: servers have sessions of their own and would outlive it. */
  end(): void;
};

type Options = { folder: string; is_durable: boolean };

const settingsOf = ({ is_durable }: Options) => ({ max_connections: '300', fsync: is_durable ? 'on' : 'off' });

/** Starts one server. Its supervisor, which is the one of the service, starts it again. */
export async function startServer(options: Options): Promise<Database> {
  const embedded = await startEmbedded({ data_dir: options.folder, settings: settingsOf(options) });
  const signal = () => {
    try {
      return process.kill(embedded.pid, 'SIGKILL');
    } catch {
      return false; // it is dead already, and being started again
    }
  };
  return {
    url: embedded.url,
    name: () => String(embedded.pid),
    kill: async () => {
      const { pid } = embedded;
      if (!signal()) return;
      for (const give_up_at_ms = Date.now() + 60_000; embedded.pid === pid; await sleep(20)) {
        if (Date.now() > give_up_at_ms) throw new Error('PostgreSQL did not come back');
      }
    },
    failOver: undefined,
    stop: () => embedded.stop(),
    end: () => void signal(),
  };
}

/** Starts a primary and a standby. */
export async function startPair(options: Options): Promise<Database> {
  const servers = await startReplicated({ folder: join(options.folder, 'servers'), settings: settingsOf(options) });
  const door = await startMuteProxy(servers.primaryUrl());
  let turn: Promise<void> = Promise.resolve();
  /** One kill after the other. */
  const inTurn = (act: () => Promise<void>) => (turn = turn.then(act));
  let whole: Promise<void> = Promise.resolve();
  return {
    url: door.url,
    name: () => new URL(servers.primaryUrl()).port,
    kill: () =>
      inTurn(async () => {
        await servers.strike('killed');
        await servers.restart();
      }),
    failOver: () => {
      whole = whole.then(async () => {
        await inTurn(async () => {
          await servers.strike('killed');
          await servers.promote();
          door.leadTo(servers.primaryUrl());
        });
        await rejoin(servers);
      });
      return whole;
    },
    stop: async () => {
      await whole;
      await door.stop();
      await servers.stop();
    },
    end: () => servers.end(),
  };
}

const tries_max = 100;

/** The primary may die while it is copied: then it is copied again. */
async function rejoin(servers: Replicated): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await servers.rejoin();
    } catch (error) {
      if (tries === tries_max) throw error;
      await sleep(100);
    }
  }
}
