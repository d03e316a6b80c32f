import type pg from 'pg';
import { copyIn, copy_settings } from '../db/copy.ts';
import { openConnection, type Db } from '../db/database.ts';
import { applyMigrations, findMigrations, lockMigrations, migrateWithin, MigrationError } from '../db/migrate.ts';
import { listTables, sqlColumns, sqlName, type Table } from '../db/tables.ts';
import { makeEngineTables } from '../queue/backup.ts';
import { engineVersion, preserved_tables } from '../queue/pgboss-tables.ts';
import type { EngineLog } from '../queue/throttled-log.ts';
import type { Storage } from '../storage/storage.ts';
import { BackupError, readManifest, type Manifest } from './manifest.ts';
import { checkPart, openPart } from './parts.ts';
import type { Progress } from './progress.ts';
import { checkFiles, restoreFiles } from './stored-files.ts';

export type RestoreParts = { db: Db; storage: Storage; log: EngineLog; progress: Progress };

export type RestoreResult = {
  /** Migrations that the backup did not have yet. */
  migrated: string[];
  /** False if the jobs are another version's: the tasks and deliveries are to get new ones. */
  has_jobs: boolean;
  /** Tables of others that lay among ours; their rows stay in the backup. */
  left_out: string[];
};

/** Reads every byte of a backup. Throws BackupError unless it is whole and this version can restore it. */
export async function checkBackup(folder: string, progress: Progress): Promise<Manifest> {
  const manifest = await readManifest(folder);
  try {
    findMigrations(manifest.schema.migrations);
  } catch (error) {
    if (!(error instanceof MigrationError)) throw error;
    throw new BackupError(
      `The backup in ${folder} is of another version (${manifest.product.version}). ${error.message}`,
    );
  }
  for (const table of manifest.tables) {
    progress.say(`${table.name} is checked`);
    await checkPart(folder, table, progress);
  }
  await checkPart(folder, manifest.files.list, progress);
  if (manifest.bucket) await checkPart(folder, manifest.bucket.list, progress);
  await checkFiles(folder, manifest.files, progress);
  return manifest;
}

/**
 * Puts a checked backup into a database without data: first the files, which nothing tells of yet, then
 * schema, rows and later migrations in one transaction. Throws BackupError, and has changed no table then,
 * if the database has data or is in use.
 */
export async function restoreBackup(parts: RestoreParts, folder: string, manifest: Manifest): Promise<RestoreResult> {
  const client = await openConnection(parts.db, 'medley restore');
  try {
    await client.query(copy_settings);
    await lockMigrations(client);
    await refuseData(client);
    await refuseCompany(client);
    await restoreFiles(parts.storage, folder, manifest.files, parts.progress);
    await makeEngineTables(parts.db, parts.log);
    await client.query('begin');
    const restored = await restoreTables(client, folder, manifest, parts.progress);
    await client.query('commit');
    await client.query('analyze'); // until then the planner takes every table for an empty one
    return restored;
  } finally {
    await client.end(); // what was not committed is not
  }
}

/** Tables that migrations, starts and commands fill in a database without accounts. */
const seeded_tables = [
  'public.migrations',
  'public.settings',
  'public.callers_version',
  'public.nodes',
  ...preserved_tables,
];

async function refuseData(client: pg.Client): Promise<void> {
  const tables = (await filledTables(client)).filter(({ name }) => !seeded_tables.includes(name));
  if (tables.length === 0) return;
  const names = tables.map(({ name }) => name.replace(/^public\./, ''));
  throw new BackupError(
    `The database has data already (${names.slice(0, 5).join(', ')}${names.length > 5 ? ', …' : ''}). ` +
      'Restore into an empty one: name another data folder by MEDLEY_DATA, or another database by DATABASE_URL.',
  );
}

/** A service keeps in memory what a restore changes, such as the secret that signs links. */
async function refuseCompany(client: pg.Client): Promise<void> {
  const { rows } = await client.query(
    `select from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and application_name like 'medley%' limit 1`,
  );
  if (rows.length > 0) throw new BackupError('A service or a command uses this database: stop it first, then restore.');
}

async function restoreTables(
  client: pg.Client,
  folder: string,
  manifest: Manifest,
  progress: Progress,
): Promise<RestoreResult> {
  const { migrations, engine } = manifest.schema;
  await migrateTo(client, migrations);
  const filled = await filledTables(client);
  if (filled.length > 0) await client.query(`truncate ${filled.map(sqlName).join(', ')} cascade`);
  const has_jobs = engine !== null && engine === (await engineVersion(client));
  const tables = (await listTables(client, preserved_tables)).filter(
    ({ name }) => has_jobs || !preserved_tables.includes(name),
  );
  for (const { name } of tables) {
    const part = manifest.tables.find((candidate) => candidate.name === name);
    if (!part) continue; // the engine's, of a backup from before its first start
    progress.say(`${name} is restored`);
    await restoreTable(client, folder, part);
  }
  const table_names = [...tables.map(({ name }) => name), ...preserved_tables];
  const left_out = manifest.tables.map(({ name }) => name).filter((name) => !table_names.includes(name));
  return { migrated: await migrateWithin(client), has_jobs, left_out };
}

/** An empty database that is older than the backup becomes as new as it. */
async function migrateTo(client: pg.Client, migrations: Manifest['schema']['migrations']): Promise<void> {
  try {
    await applyMigrations(client, findMigrations(migrations));
  } catch (error) {
    if (!(error instanceof MigrationError)) throw error;
    throw new BackupError(
      'The database is empty, but its schema is newer than the backup. Restore into one that no service has used: ' +
        'name another data folder by MEDLEY_DATA, or another database by DATABASE_URL.',
    );
  }
}

async function restoreTable(client: pg.Client, folder: string, part: Manifest['tables'][number]): Promise<void> {
  const rows = await copyIn(client, `copy ${sqlName(part)} (${sqlColumns(part)}) from stdin`, openPart(folder, part));
  if (rows === part.rows) return;
  throw new BackupError(`${part.file} has ${rows} rows instead of ${part.rows}. Nothing was changed.`);
}

async function filledTables(client: pg.Client): Promise<Table[]> {
  const tables = await listTables(client, preserved_tables);
  const filled: Table[] = [];
  for (const table of tables) {
    const { rows } = await client.query(`select from ${sqlName(table)} limit 1`);
    if (rows.length > 0) filled.push(table);
  }
  return filled;
}
