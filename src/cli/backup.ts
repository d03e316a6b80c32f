import { constants, setPriority } from 'node:os';
import { isatty } from 'node:tty';
import type { Command } from 'commander';
import package_json from '../../package.json' with { type: 'json' };
import { withDatabase } from '../app/data.ts';
import { makeBackup } from '../backup/backup.ts';
import type { Manifest } from '../backup/manifest.ts';
import { megabytes, openProgress } from '../backup/progress.ts';
import { readCommandConfig } from '../app/running.ts';
import { openCatalog } from '../catalog/catalog.ts';
import { adapterFacts } from '../providers/facts.ts';
import { adapters } from '../providers/index.ts';
import { openDiskStorage } from '../storage/disk.ts';
import { placeOf } from '../storage/settings.ts';
import { counted } from '../lib/counted.ts';
import { CommandError, says, type CommandResult } from './command.ts';

export function backupCommand(backup: Command): void {
  says(backup, (dir = '') => backUp(dir));
}

async function backUp(dir: string): Promise<CommandResult> {
  const config = readCommandConfig();
  const { current } = await openCatalog({ config_file: config.config_file, ...adapterFacts(adapters) });
  const { storage } = current.settings;
  const files =
    storage.type === 's3' ? { bucket: placeOf(storage) } : { storage: await openDiskStorage(config.data_dir) };
  const backup = await withDatabase(config, async (db) =>
    makeBackup(
      {
        db,
        files,
        product_version: package_json.version,
        secret_in_environment: config.secret !== undefined,
        progress: progressOnStderr(),
        onMoment: async () => giveWay(),
      },
      dir,
    ),
  );
  if (!backup) throw new CommandError(`There is nothing to back up: ${config.data_dir} has no database.`);
  const { count, missing } = backup.files;
  const all_missing = count === 0 && missing > 0;
  const text = [
    `${dir}: ${contentSummary(backup)}`,
    ...(all_missing
      ? [`NONE OF THE ${missing} FILES of the database is in ${config.data_dir}: is MEDLEY_DATA right?`]
      : []),
    ...(missing > 0 && !all_missing
      ? [`${counted(missing, 'file')} of the database ${missing === 1 ? 'was' : 'were'} missing, or removed meanwhile.`]
      : []),
    ...(backup.bucket ? [`The files stay in ${backup.bucket.place}: keep versions or a copy of that bucket.`] : []),
    'Protect it like a password: it contains webhook secrets, sessions and the data of callers.',
  ];
  return { json: { dir, ...summaryOf(backup) }, text: text.join('\n'), exit_code: all_missing ? 1 : 0 };
}

/**
 * Leaves processors to others, once no long snapshot is open any more: PostgreSQL sends no faster than this process
 * takes.
 */
function giveWay(): void {
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
}

/** Returns the summary of a backup for people. */
export function summaryOf({ created_at, product, tables, files, bucket }: Manifest) {
  return {
    created_at,
    version: product.version,
    tables: tables.length,
    rows: tables.reduce((sum, { rows }) => sum + rows, 0),
    files: files.count,
    files_missing: files.missing,
    ...(bucket && { bucket: { place: bucket.place, files: bucket.count } }),
    size_bytes: sizeOf({ tables, files }),
  };
}

/** The same in words. */
export function contentSummary(manifest: Manifest): string {
  const { tables, rows, files, bucket, size_bytes, created_at, version } = summaryOf(manifest);
  const files_text = bucket ? `a list of ${counted(bucket.files, 'file')}` : counted(files, 'file');
  return `${tables} tables, ${counted(rows, 'row')}, ${files_text}, ${megabytes(size_bytes)}, as of ${created_at}, by Medley ${version}`;
}

function sizeOf({ tables, files }: Pick<Manifest, 'tables' | 'files'>): number {
  return tables.reduce((sum, { size_bytes }) => sum + size_bytes, files.list.size_bytes + files.size_bytes);
}

/** Shows progress: one line that changes in a terminal, else a line now and then. */
export function progressOnStderr() {
  const is_terminal = isatty(2);
  const write = (line: string) => process.stderr.write(is_terminal ? `\r\x1b[K${line}\r` : `${line}\n`);
  return openProgress(write, is_terminal);
}
