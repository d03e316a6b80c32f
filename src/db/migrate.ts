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
    await client.query('select pg_advisory_lock($1)', [advisory_lock]);
    await client.query(`create table if not exists migrations (
      number int primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())`);
    return applyMissing(client);
  });
}

async function applyMissing(client: pg.Client): Promise<string[]> {
  const known = readMigrations();
  const { rows } = await client.query<{ number: number; name: string; checksum: string }>('select * from migrations');
  const applied = new Map(rows.map((row) => [row.number, row]));
  for (const row of rows) checkKnown(row, known);
  const missing = known.filter((migration) => !applied.has(migration.number));
  for (const migration of missing) await applyOne(client, migration);
  return missing.map((migration) => migration.name);
}

function checkKnown(row: { number: number; name: string; checksum: string }, known: Migration[]): void {
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

async function applyOne(client: pg.Client, migration: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(migration.sql);
    await client.query('insert into migrations (number, name, checksum) values ($1, $2, $3)', [
      migration.number,
      migration.name,
      migration.checksum,
    ]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
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
