import { isatty } from 'node:tty';
import type { Command } from 'commander';
import package_json from '../../package.json' with { type: 'json' };
import { openLog, withDatabase, type App } from '../app.ts';
import { makeBackup } from '../backup/backup.ts';
import type { Manifest } from '../backup/manifest.ts';
import { megabytes, openProgress } from '../backup/progress.ts';
import { checkBackup, restoreBackup, type Restored } from '../backup/restore.ts';
import { openCatalog } from '../catalog/catalog.ts';
import { service_rules } from '../chat/books.ts';
import { readConfig } from '../config.ts';
import { checkBooks } from '../money/books.ts';
import { adapterFacts } from '../providers/facts.ts';
import { adapters } from '../providers/index.ts';
import { openDiskStorage } from '../storage/disk.ts';
import { tasksOverview } from '../tasks/overview.ts';
import { rescueTasks } from '../tasks/sweep.ts';
import { countWaiting } from '../webhooks/delivery.ts';
import { rescueDeliveries } from '../webhooks/rescue.ts';
import { CommandError, says, withEngine, type Said } from './command.ts';

export function backupCommands(program: Command): void {
  says(
    program
      .command('backup <dir>')
      .description('copy database and files into a new folder, beside the running service'),
    (dir = '') => backUp(dir),
  );
  const restore = program.command('restore <dir>').description('put a backup into an empty database and data folder');
  restore.option('--check', 'only read the backup through; change nothing');
  says(restore, (dir = '') => (restore.opts()['check'] === true ? check(dir) : restoreFrom(dir)));
}

async function backUp(dir: string): Promise<Said> {
  const config = readConfig();
  const made = await withDatabase(config, async (db) =>
    makeBackup(
      {
        db,
        storage: await openDiskStorage(config.data_dir),
        product_version: package_json.version,
        secret_in_environment: config.secret !== undefined,
        progress: progressOnStderr(),
      },
      dir,
    ),
  );
  if (!made) throw new CommandError(`There is nothing to back up: ${config.data_dir} has no database.`);
  const { count, missing } = made.files;
  const all_missing = count === 0 && missing > 0;
  const text = [
    `${dir}: ${contentsOf(made)}`,
    ...(all_missing
      ? [`NONE OF THE ${missing} FILES that the rows tell of is in ${config.data_dir}: is MEDLEY_DATA right?`]
      : []),
    ...(missing > 0 && !all_missing
      ? [`${missing} files that the rows tell of were not there, or removed meanwhile.`]
      : []),
    'Keep it like a password: webhook secrets, sessions and what callers have sent are in it.',
  ];
  return { json: { dir, ...summaryOf(made) }, text: text.join('\n'), exit_code: all_missing ? 1 : 0 };
}

async function check(dir: string): Promise<Said> {
  const manifest = await checkBackup(dir, progressOnStderr());
  return { json: { dir, ok: true, ...summaryOf(manifest) }, text: `${dir} is whole: ${contentsOf(manifest)}` };
}

function summaryOf({ created_at, product, tables, files }: Manifest) {
  return {
    created_at,
    version: product.version,
    tables: tables.length,
    rows: tables.reduce((sum, { rows }) => sum + rows, 0),
    files: files.count,
    files_missing: files.missing,
    size_bytes: sizeOf({ tables, files }),
  };
}

function contentsOf(manifest: Manifest): string {
  const { tables, rows, files, size_bytes, created_at, version } = summaryOf(manifest);
  return `${tables} tables, ${rows} rows, ${files} files, ${megabytes(size_bytes)}, as of ${created_at}, by Medley ${version}`;
}

function sizeOf({ tables, files }: Pick<Manifest, 'tables' | 'files'>): number {
  return tables.reduce((sum, { size_bytes }) => sum + size_bytes, files.list.size_bytes + files.size_bytes);
}

async function restoreFrom(dir: string): Promise<Said> {
  const config = readConfig();
  await openCatalog({ config_file: config.config_file, ...adapterFacts(adapters) }); // a mistake in it is told before anything changes
  const progress = progressOnStderr();
  const manifest = await checkBackup(dir, progress);
  const restored = await withDatabase(
    config,
    async (db) =>
      restoreBackup(
        { db, storage: await openDiskStorage(config.data_dir), log: openLog('silent'), progress },
        dir,
        manifest,
      ),
    { made: true },
  );
  return withEngine((app) => lookAt(app, dir, manifest, restored));
}

/** What is there now, and what the service will do with it when it starts. */
async function lookAt(app: App, dir: string, manifest: Manifest, restored: Restored | undefined): Promise<Said> {
  if (!restored?.has_jobs) await giveJobs(app);
  const books = await checkBooks(app.db, { full: true, more: service_rules });
  const { queued, running } = await tasksOverview(app.db, new Date(app.clock.now()));
  const waiting_deliveries = await countWaiting(app.db);
  const secret_is_missing = manifest.secret_in_environment && app.config.secret === undefined;
  const { migrated = [], left_out = [] } = restored ?? {};
  const text = [
    `Restored: ${contentsOf(manifest)}`,
    `The books ${books.ok ? 'are exact' : 'DO NOT ADD UP: see `medley books`'}.`,
    ...goesOn(queued + running, waiting_deliveries),
    ...(secret_is_missing
      ? ['MEDLEY_SECRET was set where the backup was made: set the same one, or its links and sign-ins end.']
      : []),
    ...(left_out.length > 0 ? [`Not of Medley and left in the backup: ${left_out.join(', ')}.`] : []),
  ];
  const json = {
    dir,
    ...summaryOf(manifest),
    migrated,
    left_out,
    unfinished_tasks: queued + running,
    waiting_deliveries,
    secret_is_missing,
    books,
  };
  return { json, text: text.join('\n'), exit_code: books.ok ? 0 : 1 };
}

/** Nothing is done twice without a word: whoever restores is told what is about to be. */
function goesOn(tasks: number, deliveries: number): string[] {
  if (tasks + deliveries === 0) return [];
  return [
    `Its service will go on with ${tasks} unfinished tasks and send ${deliveries} webhooks, also those that the original has`,
    'dealt with since: stop that one first. With MEDLEY_ROLE=api you can look at the copy, and it does neither.',
  ];
}

/** The jobs of another version's engine cannot be read: whatever is not over gets a new one, as after a loss. */
async function giveJobs(app: App): Promise<void> {
  while ((await rescueTasks(app, 0)).resent > 0);
  while ((await rescueDeliveries(app, 0)) > 0);
}

function progressOnStderr() {
  const is_terminal = isatty(2);
  const write = (line: string) => process.stderr.write(is_terminal ? `\r\x1b[K${line}\r` : `${line}\n`);
  return openProgress(write, is_terminal);
}
