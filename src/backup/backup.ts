import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { copy_settings } from '../db/copy.ts';
import { openConnection, type Db } from '../db/database.ts';
import { namedMigrations, withSteadySchema } from '../db/migrate.ts';
import { listTables, sqlName, type Table } from '../db/tables.ts';
import { closed_entries, growing_entries } from '../money/ledger.ts';
import { engineVersion, preserved_tables } from '../queue/pgboss-tables.ts';
import type { Storage } from '../storage/storage.ts';
import { CopiedTables, keys_name, type Keys } from './copied-tables.ts';
import {
  areGrowing,
  eachPart,
  growing_tables,
  isGrowing,
  noteMoment,
  prepareMoment,
  type PartOptions,
} from './growing.ts';
import { BackupError, writeManifest, type Manifest } from './manifest.ts';
import type { Progress } from './progress.ts';
import { copyFiles, noFiles } from './stored-files.ts';

export type BackupParts = {
  db: Db;
  /** The files to copy, or the place of a bucket, whose own copies are its owner's affair. */
  files: { storage: Storage } | { bucket: string };
  product_version: string;
  secret_in_environment: boolean;
  progress: Progress;
  /** Of the tables that are read in parts. */
  part?: PartOptions;
  /** Called after the moment, before what grows is read. */
  onMoment?: () => Promise<void>;
};

/**
 * Writes all tables as of one moment, then the files that its rows tell of, then the manifest. One short snapshot shows
 * the moment and everything small; what grows with use is read after it in parts, without what came later. A long
 * snapshot would keep the database from cleaning up, which makes money slow (docs/decisions/0085).
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

type Files = Pick<Manifest, 'files' | 'bucket'>;
type Snapshot = Pick<Manifest, 'created_at' | 'schema' | 'tables'> & { keys: Keys };
type Moment = Omit<Snapshot, 'tables' | 'keys'> & { tables: Table[] };

async function backUpTables(parts: BackupParts, folder: string): Promise<Snapshot> {
  const client = await openConnection(parts.db, 'medley backup');
  try {
    await client.query(copy_settings);
    await prepareMoment(client);
    const moment = await openSnapshot(client);
    const copied = new CopiedTables(client, folder, moment.tables, parts.progress);
    try {
      await copyTables(client, copied, moment.tables, parts);
      if (JSON.stringify(await namedMigrations(client)) !== JSON.stringify(moment.schema.migrations))
        throw new BackupError('The schema was changed meanwhile: take another backup.');
      return { ...moment, ...(await copied.end()) };
    } finally {
      copied.abandon();
    }
  } finally {
    await client.end();
  }
}

/** Called in the snapshot of the moment, which it closes. */
async function copyTables(
  client: pg.Client,
  copied: CopiedTables,
  tables: readonly Table[],
  { part, onMoment }: BackupParts,
): Promise<void> {
  const growing = areGrowing(tables) ? growing_tables : [];
  if (growing.length > 0) await noteMoment(client);
  for (const table of growing) await copied.addChanging(table);
  for (const table of tables) if (growing.length === 0 || !isGrowing(table)) await copied.addTable(table);
  const closed = growing.length > 0 && (await closedEntries(client));
  await client.query('commit');
  await onMoment?.();
  for (const table of growing) {
    await eachPart(client, table, (rows) => copied.addGrown(table, rows), part);
    if (table === growing_entries && (await closedEntries(client)) !== closed)
      throw new BackupError('A month of the ledger was closed meanwhile: take another backup.');
  }
}

async function closedEntries(client: pg.Client): Promise<string | undefined> {
  const { rows } = await client.query<{ closed: string }>(closed_entries);
  return rows[0]?.closed;
}

/**
 * The tables are locked against changes of their form, as pg_dump locks them: a snapshot does not protect
 * from those. Reading and writing go on beside it.
 */
async function openSnapshot(client: pg.Client): Promise<Moment> {
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
