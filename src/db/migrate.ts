import type pg from 'pg';
import { withConnection, type Db, type Queryable } from './database.ts';
import { applyFunctions } from './functions.ts';
import { readMigrations, type Migration } from './sql-files.ts';
import { earlier_migrations, version_before } from './taken-over.ts';

/** The database is newer than this program, too old for it, or an applied file was edited: nothing was changed. */
export class MigrationError extends Error {
  override name = 'MigrationError';
}

/** Any number will do, as long as it is ours: two starting processes wait for each other on it. */
const advisory_lock = 7_633_529_001;

/**
 * Brings the schema and its functions up to date, in one transaction, and returns the names of the migrations applied
 * now. Two processes that start together wait for each other. Throws MigrationError if the database knows a
 * migration that this program does not, or one whose text has changed since.
 */
export async function migrate(db: Db): Promise<string[]> {
  return withConnection(db, async (client) => {
    await lockMigrations(client);
    for (let tries = 1; ; tries++) {
      try {
        await client.query('begin');
        const names = await migrateWithin(client);
        await client.query('commit');
        return names;
      } catch (error) {
        await client.query('rollback');
        if (!isDeadlock(error) || tries >= tries_max) throw explain(error);
      }
    }
  });
}

/** Nodes that are at work take locks of tables in another order than migrations do: one of the two is refused then. */
const tries_max = 5;

function isDeadlock(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '40P01';
}

/** PostgreSQL's code 42501: insufficient_privilege. Since version 15 only its owner may make tables in a database. */
function explain(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || error.code !== '42501') return error;
  return new MigrationError(
    `The user of DATABASE_URL may not make tables in that database (${error.message}). Let it own the database: alter database NAME owner to USER.`,
  );
}

/** A migration as a backup names it. */
export type MigrationName = Pick<Migration, 'name' | 'checksum'>;

/**
 * Applies what the database lacks, tables and functions, within the caller's transaction. Returns the names of the
 * migrations. Throws MigrationError if the database has others. The caller holds the lock of `lockMigrations`.
 */
export async function migrateWithin(client: pg.Client): Promise<string[]> {
  const names = await applyMigrations(client, readMigrations());
  await applyFunctions(client);
  return names;
}

/** The same for some migrations alone, without any function: the tables are as a backup of that time has them. */
export async function applyMigrations(client: pg.Client, migrations: readonly Migration[]): Promise<string[]> {
  await client.query(`create table if not exists migrations (
    number int primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())`);
  const { rows } = await client.query<NumberedName>('select number, name, checksum from migrations order by number');
  const is_taken_over = checkEarlier(rows);
  for (const row of rows) if (!isEarlier(row)) checkKnown(row, migrations);
  const missing = migrations.filter((migration) => !rows.some(({ number }) => number === migration.number));
  refuseBroken((await client.query<{ name: string }>(broken_indexes, [indexesOf(missing)])).rows);
  for (const migration of missing) {
    if (!is_taken_over || migration.number !== baseline) await client.query(migration.sql);
    const { number, name, checksum } = migration;
    await client.query('insert into migrations (number, name, checksum) values ($1, $2, $3)', [number, name, checksum]);
  }
  return missing.map((migration) => migration.name);
}

type NumberedName = { number: number; name: string; checksum: string };

/** The number of the migration that makes what all earlier ones made. */
const baseline = 100;

function isEarlier({ number }: NumberedName): boolean {
  return number < baseline;
}

/**
 * Returns true if the database has every migration that the baseline replaces, so that only its name is missing; false
 * if it has none. Throws MigrationError if it has a part of them.
 */
function checkEarlier(applied: readonly NumberedName[]): boolean {
  const rows = applied.filter(isEarlier);
  for (const row of rows) checkKnown(row, earlier_migrations);
  const [last] = rows.slice(-1);
  if (!last) return false;
  if (rows.length === earlier_migrations.length) return true;
  throw new MigrationError(
    `The database is too old for this version (its last migration is ${last.name}): start ${version_before} on it once, then this version.`,
  );
}

function checkKnown(row: NumberedName, migrations: readonly NumberedName[]): void {
  const ours = migrations.find((migration) => migration.number === row.number);
  if (!ours) {
    throw new MigrationError(
      `The database has migration ${row.name}, which this version does not know: start a newer Medley.`,
    );
  }
  if (ours.checksum !== row.checksum) {
    throw new MigrationError(`Migration ${ours.name} has been changed since it was applied; add a new file instead.`);
  }
}

/** Indexes that are being made, or that were to be made beside the service (`concurrently`) and could not: of these names, or all. */
const broken_indexes = `select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
  where not i.indisvalid and pg_table_is_visible(c.oid) and ($1::text[] is null or c.relname = any($1)) order by 1`;

/** Lists the indexes that serve no statement: one is being made, or making it has failed. */
export async function brokenIndexes(db: Queryable): Promise<string[]> {
  return (await db.query<{ name: string }>(broken_indexes, [null])).map(({ name }) => name);
}

/** Returns the names of the indexes that these migrations leave as they are where they are there. */
function indexesOf(migrations: readonly Migration[]): string[] {
  const statement = /^create (?:unique )?index if not exists (\w+)/gm;
  return migrations.flatMap(({ sql }) => [...sql.matchAll(statement)].map(([, name = '']) => name));
}

/** Throws MigrationError: `if not exists` would take such an index for made, and nobody would make it any more. */
function refuseBroken([index]: readonly { name: string }[]): void {
  if (!index) return;
  throw new MigrationError(
    `The index ${index.name} is there, but is not complete: "create index concurrently" still runs, or has failed. Wait for its end, or remove the index (drop index concurrently ${index.name}) and make it again; then start.`,
  );
}

/**
 * Returns this program's migrations of these names; the baseline for those that it replaces. Throws MigrationError for
 * one that it does not have, or has in another form.
 */
export function findMigrations(names: readonly MigrationName[]): Migration[] {
  const migrations = readMigrations();
  const isSame = (a: MigrationName) => (b: MigrationName) => a.name === b.name && a.checksum === b.checksum;
  const earlier = names.filter((name) => earlier_migrations.some(isSame(name)));
  if (earlier.length > 0 && earlier.length < earlier_migrations.length) {
    throw new MigrationError(`Restore it with ${version_before}, start this version there, and take another backup.`);
  }
  const later = names
    .filter((name) => !earlier.includes(name))
    .map((name) => {
      const match = migrations.find(isSame(name));
      if (match) return match;
      throw new MigrationError(
        `It has the migration ${name.name}, which this version does not know in this form: use a newer Medley.`,
      );
    });
  return later.length > 0 || earlier.length === 0 ? later : migrations.filter(({ number }) => number === baseline);
}

/** Locks the schema until the session of `client` ends: nobody else changes it. */
export async function lockMigrations(client: pg.Client): Promise<void> {
  await client.query('select pg_advisory_lock($1)', [advisory_lock]);
}

/** Runs `work` while nobody changes the schema; others may look at it in the same way. */
export async function withSteadySchema<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query('select pg_advisory_lock_shared($1)', [advisory_lock]);
  try {
    return await work();
  } finally {
    await client.query('select pg_advisory_unlock_shared($1)', [advisory_lock]);
  }
}

/** Lists the database's migrations, lowest number first, as a backup names them; null if it never had a service. */
export async function namedMigrations(client: pg.Client): Promise<MigrationName[] | null> {
  const { rows } = await client.query<{ there: boolean }>(`select to_regclass('migrations') is not null as there`);
  if (!rows[0]?.there) return null;
  return (await client.query<MigrationName>('select name, checksum from migrations order by number')).rows;
}

/**
 * Compares the migrations of a database with those of this program, and changes nothing. `problem`: why a start would
 * refuse this database, in the start's own words.
 */
export async function compareMigrations(
  db: Db,
): Promise<{ applied: string[]; pending: Migration[]; problem?: string }> {
  const exists = await db.query<{ table_name: string | null }>(`select to_regclass('migrations')::text as table_name`);
  if (exists[0]?.table_name == null) return { applied: [], pending: readMigrations() };
  const rows = await db.query<NumberedName>('select number, name, checksum from migrations order by number');
  const applied = rows.map(({ name }) => name);
  const migrations = readMigrations();
  try {
    const is_taken_over = checkEarlier(rows);
    for (const row of rows) if (!isEarlier(row)) checkKnown(row, migrations);
    const missing = migrations.filter(({ number }) => !rows.some((row) => row.number === number));
    refuseBroken(await db.query(broken_indexes, [indexesOf(missing)]));
    return { applied, pending: missing.filter(({ number }) => !is_taken_over || number !== baseline) };
  } catch (error) {
    if (!(error instanceof MigrationError)) throw error;
    return { applied, pending: [], problem: error.message };
  }
}

/** Names of migrations that this program has and the database has not; [] when it is current. */
export async function pendingMigrations(db: Db): Promise<string[]> {
  const exists = await db.query<{ table_name: string | null }>(`select to_regclass('migrations')::text as table_name`);
  if (exists[0]?.table_name == null) return readMigrations().map((migration) => migration.name);
  const rows = await db.query<{ number: number }>('select number from migrations');
  const applied = new Set(rows.map((row) => row.number));
  return readMigrations()
    .filter((migration) => !applied.has(migration.number))
    .map((migration) => migration.name);
}

/** Names of the migrations that the database has, lowest number first. */
export async function appliedMigrations(db: Db): Promise<string[]> {
  const rows = await db.query<{ name: string }>('select name from migrations order by number');
  return rows.map((row) => row.name);
}
