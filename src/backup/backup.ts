import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { copyOut, copy_settings } from '../db/copy.ts';
import { openConnection, type Db } from '../db/database.ts';
import { namedMigrations, withSteadySchema } from '../db/migrate.ts';
import { listTables, sqlColumns, sqlName, type Table } from '../db/tables.ts';
import { engineVersion, preserved_tables } from '../queue/pgboss-tables.ts';
import { stored_uploads } from '../files/files.ts';
import type { Storage } from '../storage/storage.ts';
import { stored_outputs } from '../tasks/files.ts';
import { BackupError, writeManifest, type Manifest, type Part } from './manifest.ts';
import { writePart } from './parts.ts';
import type { Progress } from './progress.ts';
import { copyFiles, noFiles } from './stored-files.ts';

export type BackupParts = {
  db: Db;
  /** The files to copy, or the place of a bucket, whose own copies are its owner's affair. */
  files: { storage: Storage } | { bucket: string };
  product_version: string;
  secret_in_environment: boolean;
  progress: Progress;
};

/** Name of the file with the keys of the stored files; it is removed once they are copied, and stays where they are not. */
const keys_name = 'files.keys';

/**
 * Writes all tables as one snapshot shows them, then the files that its rows tell of, then the manifest.
 * The snapshot is closed before the files are copied: a long one would keep the database from cleaning up.
 * Of files in a bucket there is only the list: whoever has a bucket copies it by its own means, such as versions.
 * Throws BackupError if `folder` has anything in it; what was written before a failure is removed again.
 */
export async function makeBackup(parts: BackupParts, folder: string): Promise<Manifest> {
  await claimFolder(folder);
  try {
    const { keys, ...snapshot } = await backUpTables(parts, folder);
    const files = await backUpFiles(parts, folder, keys);
    const { product_version: version, secret_in_environment } = parts;
    return await writeManifest(folder, {
      product: { name: 'medley', version },
      secret_in_environment,
      ...snapshot,
      ...files,
    });
  } catch (error) {
    for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true });
    throw error;
  }
}

async function backUpFiles({ files, progress }: BackupParts, folder: string, keys: Keys): Promise<Files> {
  if ('bucket' in files) return { files: await noFiles(folder, progress), bucket: { place: files.bucket, ...keys } };
  const keys_path = join(folder, keys_name);
  const copied = await copyFiles(files.storage, folder, keys_path, progress);
  await rm(keys_path);
  return { files: copied };
}

async function claimFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const names = await readdir(folder);
  if (names.length > 0) throw new BackupError(`${folder} is not empty: name a folder that is new or empty.`);
}

/** The keys of the stored files. */
type Keys = { list: Part; count: number };

type Files = Pick<Manifest, 'files' | 'bucket'>;
type Snapshot = Pick<Manifest, 'created_at' | 'schema' | 'tables'> & { keys: Keys };

async function backUpTables(parts: BackupParts, folder: string): Promise<Snapshot> {
  const client = await openConnection(parts.db, 'medley backup');
  try {
    await client.query(copy_settings);
    const { tables, ...snapshot } = await openSnapshot(client);
    const written: Snapshot['tables'] = [];
    for (const [i, table] of tables.entries()) {
      parts.progress.say(`${i + 1} of ${tables.length} tables, ${table.name}`);
      written.push(await backUpTable(client, folder, table, parts.progress));
    }
    const keys = await writeKeys(client, folder, tables, parts.progress);
    await client.query('commit');
    return { ...snapshot, tables: written, keys };
  } finally {
    await client.end();
  }
}

/**
 * The tables are locked against changes of their form, as pg_dump locks them: a snapshot does not protect
 * from those. Reading and writing go on beside it.
 */
async function openSnapshot(client: pg.Client): Promise<Omit<Snapshot, 'tables' | 'keys'> & { tables: Table[] }> {
  return withSteadySchema(client, async () => {
    await client.query('begin isolation level repeatable read read only');
    const migrations = await namedMigrations(client);
    if (!migrations) throw new BackupError('This database has nothing to back up: no service has ever used it.');
    const tables = await listTables(client, preserved_tables);
    await client.query(`lock table ${tables.map(sqlName).join(', ')} in access share mode`);
    const { rows } = await client.query<{ at: Date }>('select now() as at');
    return {
      created_at: rows[0]?.at.toISOString() ?? '',
      schema: { migrations, engine: await engineVersion(client) },
      tables,
    };
  });
}

async function backUpTable(
  client: pg.Client,
  folder: string,
  table: Table,
  progress: Progress,
): Promise<Manifest['tables'][number]> {
  const statement = `copy (select ${sqlColumns(table)} from ${sqlName(table)}) to stdout`;
  const file = `tables/${table.name}.copy.gz`;
  let part = { file, size_bytes: 0, sha256: '' };
  const rows = await copyOut(client, statement, async (lines) => {
    part = await writePart(folder, file, lines, progress, { compressed: true });
  });
  return { ...table, rows, ...part };
}

/** A database that waits for its migrations may not have all of the tables yet. */
async function writeKeys(
  client: pg.Client,
  folder: string,
  tables: readonly Table[],
  progress: Progress,
): Promise<Keys> {
  const sources = [stored_outputs, stored_uploads].filter(({ table }) => tables.some(({ name }) => name === table));
  const keys = ["(select '' as key where false)", ...sources.map((source) => source.keys)];
  const statement = `copy (${keys.map((each, i) => `select key from ${each} k${i}`).join(' union all ')}) to stdout`;
  let list: Part = { file: keys_name, size_bytes: 0, sha256: '' };
  const count = await copyOut(client, statement, async (lines) => {
    list = await writePart(folder, keys_name, lines, progress);
  });
  return { list, count };
}
