import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type pg from 'pg';
import { withConnection, type Db } from './database.ts';

/** One file of migrations/, in the order of its number. */
export type Migration = { number: number; name: string; sql: string; checksum: string };

/** The database is newer than this program, or an applied file was edited: nothing was changed. */
export class MigrationError extends Error {
  override name = 'MigrationError';
}

const folder = new URL('../../migrations/', import.meta.url);

/** All migrations of this program, lowest number first. */
function readMigrations(): Migration[] {
  return readdirSync(folder)
    .filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name))
    .toSorted()
    .map((name) => {
      const sql = readFileSync(new URL(name, folder), 'utf8');
      return {
        number: Number(name.slice(0, 4)),
        name,
        sql,
        checksum: createHash('sha256').update(sql).digest('hex'),
      };
    });
}

/** Any number will do, as long as it is ours: two starting processes wait for each other on it. */
const advisory_lock = 7_633_529_001;

/**
 * Brings the schema up to date and returns the names of the files applied now. Each file is one
 * transaction; two processes that start together wait for each other. Throws MigrationError if the
 * database knows a migration that this program does not, or one whose text has changed since.
 */
export async function migrate(db: Db): Promise<string[]> {
  return withConnection(db, async (client) => {
    await lockMigrations(client);
    return applyMissing(client, readMigrations(), async (migration) => {
      await client.query('begin');
      try {
        await applyOne(client, migration);
        await client.query('commit');
      } catch (error) {
        await client.query('rollback');
        throw error;
      }
    });
  }).catch((error: unknown) => {
    throw explain(error);
  });
}

/** PostgreSQL's code 42501: insufficient_privilege. Since version 15 only its owner may make tables in a database. */
function explain(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || error.code !== '42501') return error;
  return new MigrationError(
    `The user of DATABASE_URL may not make tables in that database (${error.message}). Let it own the database: alter database NAME owner to USER.`,
  );
}

async function applyMissing(
  client: pg.Client,
  wanted: readonly Migration[],
  apply: (migration: Migration) => Promise<void>,
): Promise<string[]> {
  await client.query(`create table if not exists migrations (
    number int primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())`);
  const { rows } = await client.query<{ number: number; name: string; checksum: string }>('select * from migrations');
  const applied = new Map(rows.map((row) => [row.number, row]));
  for (const row of rows) checkKnown(row, wanted);
  const missing = wanted.filter((migration) => !applied.has(migration.number));
  for (const migration of missing) await apply(migration);
  return missing.map((migration) => migration.name);
}

function checkKnown(row: { number: number; name: string; checksum: string }, known: readonly Migration[]): void {
  const ours = known.find((migration) => migration.number === row.number);
  if (!ours) {
    throw new MigrationError(
      `The database has migration ${row.name}, which this version does not know: start a newer Medley.`,
    );
  }
  if (ours.checksum !== row.checksum) {
    throw new MigrationError(`migrations/${ours.name} has been changed since it was applied; add a new file instead.`);
  }
}

async function applyOne(client: pg.Client, { sql, number, name, checksum }: Migration): Promise<void> {
  await client.query(sql);
  await client.query('insert into migrations (number, name, checksum) values ($1, $2, $3)', [number, name, checksum]);
}

/** A migration as a backup names it. */
export type MigrationName = Pick<Migration, 'name' | 'checksum'>;

/** This program's migrations of these names. Throws MigrationError for one that it does not have, or has in another form. */
export function findMigrations(names: readonly MigrationName[]): Migration[] {
  const migrations = readMigrations();
  return names.map(({ name, checksum }) => {
    const match = migrations.find((migration) => migration.name === name && migration.checksum === checksum);
    if (match) return match;
    throw new MigrationError(
      `It has the migration ${name}, which this version does not know in this form: use a newer Medley.`,
    );
  });
}

/**
 * Applies what of `wanted`, or of all migrations, the database lacks, within the caller's transaction. Returns the
 * names. Throws MigrationError if the database has others. The caller holds the lock of `lockMigrations`.
 */
export async function migrateWithin(
  client: pg.Client,
  wanted: readonly Migration[] = readMigrations(),
): Promise<string[]> {
  return applyMissing(client, wanted, (migration) => applyOne(client, migration));
}

/** Until the session of `client` ends, nobody else changes the schema. */
export async function lockMigrations(client: pg.Client): Promise<void> {
  await client.query('select pg_advisory_lock($1)', [advisory_lock]);
}

/** Nobody changes the schema while `work` runs; others may look at it in the same way. */
export async function withSteadySchema<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query('select pg_advisory_lock_shared($1)', [advisory_lock]);
  try {
    return await work();
  } finally {
    await client.query('select pg_advisory_unlock_shared($1)', [advisory_lock]);
  }
}

/** What the database has, lowest number first, as a backup names it; null where there was never a service. */
export async function namedMigrations(client: pg.Client): Promise<MigrationName[] | null> {
  const { rows: found } = await client.query<{ there: boolean }>(
    `select to_regclass('migrations') is not null as there`,
  );
  if (!found[0]?.there) return null;
  return (await client.query<MigrationName>('select name, checksum from migrations order by number')).rows;
}

/** Names of migrations that this program has and the database has not; [] when it is current. */
export async function pendingMigrations(db: Db): Promise<string[]> {
  const exists = await db.query<{ found: string | null }>(`select to_regclass('migrations')::text as found`);
  if (exists[0]?.found == null) return readMigrations().map((migration) => migration.name);
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
