import { constants } from 'node:os';
import type pg from 'pg';
import type { Config } from '../config.ts';
import { openDatabase, type Db } from '../db/database.ts';
import { findHome } from '../embedded-postgres/home.ts';
import { reach } from '../db/reach.ts';
import { connectionTo } from '../db/servers.ts';
import { prepareDataFolder } from './data-folder.ts';
import { openEmbedded, startEmbedded } from '../embedded-postgres/embedded.ts';
import { onceRequested, end_signals } from '../lib/end-signals.ts';

/** The two methods of pino that the database uses. */
export type DataLog = { info(message: string): void; warn(details: object, message: string): void };

type OnStop = (close: () => Promise<void> | void) => void;

/** A command tells its own failures: what its parts complain of is nobody's concern. */
export const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** The database of DATABASE_URL, or the embedded one of the data folder, which a command shares with the service. */
export async function openData(
  config: Config,
  { command, log }: { command: boolean; log: DataLog },
  onStop: OnStop,
): Promise<Db> {
  // With DATABASE_URL most commands need no folder at all.
  if (!command || config.database_url === undefined) await prepareDataFolder(config.data_dir);
  const connection = config.database_url
    ? connectionTo(config.database_url)
    : await connectEmbedded({ data_dir: config.data_dir, log: (line) => log.info(line) }, command, onStop);
  const db = openDatabase({
    connection,
    ...(command && { connections_max: 3, is_patient: true }),
    onError: (error) => log.warn({ err: error }, 'an idle database connection failed'),
  });
  onStop(() => db.close());
  if (config.database_url) await reach(db);
  return db;
}

async function connectEmbedded(
  options: { data_dir: string; log: (line: string) => void },
  command: boolean,
  onStop: OnStop,
): Promise<pg.ClientConfig> {
  if (command) return connectCommand(options, onStop);
  const started = await startEmbedded(options);
  onStop(() => started.stop());
  return started.connection;
}

/** A signal that ends the command ends its PostgreSQL, too, which would outlive it: it has a session of its own. */
async function connectCommand(
  options: { data_dir: string; log: (line: string) => void },
  onStop: OnStop,
): Promise<pg.ClientConfig> {
  const unwanted = new AbortController();
  const opening = openEmbedded({ ...options, unwanted: unwanted.signal });
  const onSignal = onceRequested((signal) => {
    process.exitCode = 128 + constants.signals[signal];
    unwanted.abort();
    const close = opening.then((opened) => opened.close());
    void close.catch(() => undefined).then(() => process.exit());
  });
  for (const signal of end_signals) process.on(signal, onSignal);
  onStop(() => {
    for (const signal of end_signals) process.off(signal, onSignal);
  });
  const opened = await opening;
  onStop(() => opened.close());
  return opened.connection;
}

/** Closes all of them, in this order, and what comes meanwhile, as of a start that is not over; whatever becomes of one. */
export async function closeAll(closers: (() => Promise<void> | void)[]): Promise<void> {
  const errors: unknown[] = [];
  for (let close = closers.shift(); close; close = closers.shift()) {
    await Promise.resolve(close()).catch((error: unknown) => errors.push(error));
  }
  if (errors.length > 0) throw new AggregateError(errors, 'not everything could be closed');
}

/** The database of a command, and what the command opens beside it; all of it is closed again. */
export async function withData<T>(config: Config, work: (db: Db, onStop: OnStop) => Promise<T>): Promise<T> {
  const closers: (() => Promise<void> | void)[] = [];
  const onStop: OnStop = (close) => void closers.unshift(close);
  try {
    return await work(await openData(config, { command: true, log: silent }, onStop), onStop);
  } finally {
    await closeAll(closers);
  }
}

/**
 * The database alone, as it is, for a command that looks at nothing else, and closes it again. Where none
 * was ever made: undefined, or with `made` an empty one.
 */
export async function withDatabase<T>(
  config: Config,
  work: (db: Db) => Promise<T>,
  { made: is_new = false } = {},
): Promise<T | undefined> {
  if (!is_new && config.database_url === undefined && findHome(config.data_dir) === undefined) return undefined;
  return withData(config, work);
}
