import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { App } from '../app.ts';
import type { Config } from '../config.ts';
import { isRecord } from '../lib/is-record.ts';
import { startServer } from '../server.ts';
import { embeddedConnection } from '../embedded-postgres/embedded.ts';
import { urlOf } from '../embedded-postgres/cluster.ts';

/** A process that ends at once whenever it starts is not started more often than this. */
const restart_after_ms = 1_000;

/** Returns true in one of several API processes that another process has started: it only serves. */
export function isApiProcess(): boolean {
  return cluster.isWorker;
}

/** Serves in one of several processes, on the port of the first one, and says so to the process that started it. */
export async function serveAsOneOfMany(app: App): Promise<void> {
  await startServer(app, { is_shared: (cluster.worker?.id ?? 1) > 1 });
  process.send?.({ port: Number(new URL(app.local_url()).port || 80) });
}

/**
 * Starts `count` API processes behind one port, and starts another one for each that ends by itself. Resolves when
 * the first one serves; they end with the app. Rejects if it ends before that: it has printed the reason.
 */
export async function startApiProcesses(app: App, count: number): Promise<void> {
  const { config } = app;
  const database = config.database_url === undefined ? await embeddedConnection(config.data_dir) : undefined;
  const env = { MEDLEY_ROLE: 'api', MEDLEY_PROCESSES: '1', ...(database && { DATABASE_URL: urlOf(database) }) };
  const workers = new Set<Worker>();
  let is_stopping = false;
  app.onStop(async () => {
    is_stopping = true;
    await Promise.all([...workers].map(stop));
  });
  const first = cluster.fork({ ...env, ...metricsOf(config, 0) });
  workers.add(first);
  const port = await portOf(first);
  app.setListening({ host: config.host, port });
  const fork = (slot: number) => cluster.fork({ ...env, PORT: port, ...metricsOf(config, slot) });
  const keepAlive = (worker: Worker, slot: number) => {
    workers.add(worker);
    worker.once('exit', (code, signal) => {
      workers.delete(worker);
      if (is_stopping) return;
      app.log.error({ pid: worker.process.pid, code, signal }, 'an API process ended; another one starts');
      const startAgain = () => is_stopping || keepAlive(fork(slot), slot);
      setTimeout(startAgain, restart_after_ms).unref();
    });
  };
  keepAlive(first, 0);
  for (let slot = 1; slot < count; slot++) keepAlive(fork(slot), slot);
}

/** Each process has metrics of its own: on the ports after that of the process which started it. */
function metricsOf({ metrics }: Config, slot: number): Record<string, string> {
  if (!metrics) return {};
  const { host, port } = metrics;
  const shown_host = host.includes(':') ? `[${host}]` : host;
  return { MEDLEY_METRICS: `${shown_host}:${port === 0 ? 0 : port + 1 + slot}` };
}

function portOf(worker: Worker): Promise<number> {
  return new Promise((resolve, reject) => {
    worker.on('message', (message: unknown) => {
      if (isRecord(message) && typeof message['port'] === 'number') resolve(message['port']);
    });
    worker.once('exit', () => reject(new ApiProcessEnded('The first API process ended.')));
  });
}

/** The process has printed the reason. */
export class ApiProcessEnded extends Error {
  override name = 'ApiProcessEnded';
}

async function stop(worker: Worker): Promise<void> {
  if (worker.isDead()) return;
  const ended = once(worker, 'exit');
  worker.process.kill('SIGTERM');
  await ended;
}
