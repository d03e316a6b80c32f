import { rmSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { silent, withDatabase } from '../app/data.ts';
import type { Manifest } from '../backup/manifest.ts';
import { fetchBackup } from '../backup/places.ts';
import { checkBackup, restoreBackup, type RestoreResult } from '../backup/restore.ts';
import { readAdded } from '../catalog/added/rows.ts';
import { openCatalog } from '../catalog/catalog.ts';
import { service_rules } from '../chat/books.ts';
import type { Config } from '../config.ts';
import { contentKeys } from '../db/content.ts';
import type { Db } from '../db/database.ts';
import { readCommandConfig } from '../app/running.ts';
import { openStorage } from '../app/storage.ts';
import { counted } from '../lib/counted.ts';
import { end_signals, type EndSignal } from '../lib/end-signals.ts';
import { checkBooks } from '../money/books.ts';
import { adapterFacts } from '../providers/facts.ts';
import { adapters } from '../providers/index.ts';
import type { Storage } from '../storage/storage.ts';
import { tasksOverview } from '../tasks/overview.ts';
import { rescueTasks, type SweepParts } from '../tasks/sweep.ts';
import { countWaiting } from '../webhooks/delivery.ts';
import { rescueDeliveries, type RescueParts } from '../webhooks/rescue.ts';
import { contentSummary, progressOnStderr, summaryOf } from './backup.ts';
import { says, withEngine, type CommandResult } from './command.ts';

export function restoreCommand(restore: Command): void {
  restore.option('--check', 'only check the backup; change nothing');
  const work = (dir: string) => (restore.opts()['check'] === true ? check(dir) : restoreFrom(dir));
  says(restore, (dir = '') => (dir.startsWith('s3://') ? withFetched(dir, work) : work(dir)));
}

/** A backup in a bucket is copied beside the data folder first, and removed from there again. */
async function withFetched(address: string, work: (dir: string) => Promise<CommandResult>): Promise<CommandResult> {
  const config = readCommandConfig();
  const { current } = await openCatalog({ config_file: config.config_file, ...adapterFacts(adapters) });
  await mkdir(dirname(config.data_dir), { recursive: true });
  const folder = await mkdtemp(`${config.data_dir}.restore-`);
  const remove = () => rmSync(folder, { recursive: true, force: true });
  // Where the command has a PostgreSQL of its own, that is stopped first and ends the process (app/data.ts).
  const leave = (signal: EndSignal) => {
    if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
  };
  process.on('exit', remove);
  for (const signal of end_signals) process.on(signal, leave);
  try {
    await fetchBackup(address, current.settings.storage, folder);
    return await work(folder);
  } finally {
    for (const signal of end_signals) process.off(signal, leave);
    process.off('exit', remove);
    remove();
  }
}

async function check(dir: string): Promise<CommandResult> {
  const manifest = await checkBackup(dir, progressOnStderr());
  return { json: { dir, ok: true, ...summaryOf(manifest) }, text: `${dir} is complete: ${contentSummary(manifest)}` };
}

async function restoreFrom(dir: string): Promise<CommandResult> {
  const config = readCommandConfig();
  // A mistake in it is told before anything changes.
  const { current } = await openCatalog({ config_file: config.config_file, ...adapterFacts(adapters) });
  const progress = progressOnStderr();
  const manifest = await checkBackup(dir, progress);
  const closers: (() => void)[] = [];
  const storage = await openStorage(config, current.settings.storage, (close) => closers.push(close));
  const restored = await withDatabase(
    config,
    async (db) => restoreBackup({ db, storage, log: silent, progress }, dir, manifest),
    { made: true },
  ).finally(() => closers.forEach((close) => close()));
  return withEngine((app) => lookAt(app, dir, manifest, restored));
}

/** Reports the restored data, and what the service does with it at its next start. */
async function lookAt(
  app: SweepParts &
    RescueParts & { readonly storage: Storage; readonly config: Pick<Config, 'secret' | 'secret_before'> },
  dir: string,
  manifest: Manifest,
  restored: RestoreResult | undefined,
): Promise<CommandResult> {
  if (!restored?.has_jobs) await giveJobs(app);
  const books = await checkBooks(app.db, { full: true, more: service_rules });
  const { queued, running } = await tasksOverview(app.db, new Date(app.clock.now()));
  const waiting_deliveries = await countWaiting(app.db);
  const secret_is_missing = manifest.secret_in_environment && app.config.secret === undefined;
  const unreadable_keys = await unreadableKeys(app.db, app.config);
  const { migrated = [], left_out = [] } = restored ?? {};
  const text = [
    `Restored: ${contentSummary(manifest)}`,
    books.ok ? 'The ledger is reconciled.' : 'THE LEDGER IS NOT RECONCILED: see `medley books`.',
    ...goesOn(queued + running, waiting_deliveries),
    ...aboutSecret(secret_is_missing, unreadable_keys),
    ...elsewhere(manifest, app.storage.place),
    ...(left_out.length > 0 ? [`Not part of Medley and not restored: ${left_out.join(', ')}.`] : []),
  ];
  const json = {
    dir,
    ...summaryOf(manifest),
    migrated,
    left_out,
    unfinished_tasks: queued + running,
    waiting_deliveries,
    secret_is_missing,
    unreadable_keys,
    books,
  };
  return { json, text: text.join('\n'), exit_code: books.ok ? 0 : 1 };
}

/** Names the providers of the dashboard whose keys the secrets of this environment do not open. The rows stay as they are. */
async function unreadableKeys(db: Db, secrets: Pick<Config, 'secret' | 'secret_before'>): Promise<string[]> {
  const { secret, secret_before } = secrets;
  const { keys } = await readAdded(db, contentKeys({ secret, secret_before }));
  return [...keys].flatMap(([name, key]) => (key === undefined ? [name] : []));
}

function aboutSecret(is_missing: boolean, unreadable: readonly string[]): string[] {
  const names = unreadable.join(', ');
  if (is_missing) {
    const keys = unreadable.length > 0 ? `, and the keys of these providers of the dashboard: ${names}` : '';
    return [
      `MEDLEY_SECRET was set where the backup was made: set the same one, or its links and sessions stop working${keys}.`,
    ];
  }
  if (unreadable.length === 0) return [];
  return [
    `MEDLEY_SECRET is not the one of the place where the backup was made: the keys of these providers of the dashboard cannot be read: ${names}.`,
    'Set that secret, as MEDLEY_SECRET_BEFORE if it shall change, or paste the keys again. They stay in the database until then.',
  ];
}

/** Files that were in a bucket are there still, or nowhere. */
function elsewhere({ bucket }: Manifest, place: string): string[] {
  if (!bucket || bucket.count === 0 || bucket.place === place) return [];
  return [
    `Its ${counted(bucket.count, 'file')} stayed in ${bucket.place}, but the configuration looks for them in ${place}.`,
  ];
}

/** Nothing is done twice without a word: whoever restores is told what is about to be. */
function goesOn(tasks: number, deliveries: number): string[] {
  if (tasks + deliveries === 0) return [];
  return [
    `Its service will continue ${tasks} unfinished tasks and send ${deliveries} webhooks, including those that the original has`,
    'handled since: stop the original first. With MEDLEY_ROLE=api the copy can be viewed and does neither.',
  ];
}

/** The jobs of another version's engine cannot be read: whatever is not over gets a new one, as after a loss. */
async function giveJobs(app: SweepParts & RescueParts): Promise<void> {
  while ((await rescueTasks(app, 0)).resent > 0);
  while ((await rescueDeliveries(app, 0)) > 0);
}
