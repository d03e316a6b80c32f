import type pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { withConnection, type Db } from '../../src/db/database.ts';
import { applyFunctions } from '../../src/db/functions.ts';
import {
  appliedMigrations,
  brokenIndexes,
  compareMigrations,
  migrate,
  pendingMigrations,
} from '../../src/db/migrate.ts';
import { readFunctions, type FunctionFile } from '../../src/db/sql-files.ts';
import { earlier_migrations } from '../../src/db/taken-over.ts';
import { testDatabase, type TestDatabase, type TestDatabaseOptions } from '../helpers/database.ts';
import { functionTexts, schemaText } from '../helpers/schema.ts';
import { applyEarlier } from './earlier.ts';

const databases: TestDatabase[] = [];

afterEach(async () => {
  for (const database of databases.splice(0)) await database.drop();
});

async function openTestDatabase(state: TestDatabaseOptions['state'] = 'migrated'): Promise<Db> {
  const database = await testDatabase({ state });
  databases.push(database);
  return database.db;
}

/** A database as the version before the baseline left it, or one of the versions before that. */
async function earlierDatabase(count?: number): Promise<Db> {
  const db = await openTestDatabase('empty');
  await applyEarlier(db, count);
  return db;
}

describe('a database of the version before the baseline', () => {
  it('is taken over as it is, and has the schema and the functions of a new one then', async () => {
    const db = await earlierDatabase();
    await db.query(`insert into accounts values ('acct_1', 'Old', 'USD', 'active', 'whsec_x', now())`);
    const fresh = await openTestDatabase();
    expect(await migrate(db)).toEqual(await appliedMigrations(fresh));
    expect(await schemaText(db)).toBe(await schemaText(fresh));
    expect(await functionTexts(db)).toEqual(await functionTexts(fresh));
    expect(await db.query('select name from accounts')).toEqual([{ name: 'Old' }]);
    expect(await migrate(db)).toEqual([]);
  });

  it('keeps the names of its migrations, by which nodes of that version see that nothing is missing', async () => {
    const db = await earlierDatabase();
    await migrate(db);
    expect(await appliedMigrations(db)).toEqual([
      ...earlier_migrations.map(({ name }) => name),
      ...(await appliedMigrations(await openTestDatabase())),
    ]);
    expect(await pendingMigrations(db)).toEqual([]);
  });

  it('that lacks some of its migrations says in a sentence which version to start first, and stays as it is', async () => {
    const db = await earlierDatabase(earlier_migrations.length - 1);
    const names = await appliedMigrations(db);
    await expect(migrate(db)).rejects.toThrow(
      'The database is too old for this version (its last migration is 0067_delete_account.sql): ' +
        'start Medley 0.1.0 (commit 7689d1e) on it once, then this version.',
    );
    expect(await appliedMigrations(db)).toEqual(names);
  });
});

describe('a database', () => {
  it('with a migration of a later version is refused', async () => {
    const db = await openTestDatabase();
    await db.query(`insert into migrations (number, name, checksum) values (9999, '9999_later.sql', 'x')`);
    await expect(migrate(db)).rejects.toThrow(
      'The database has migration 9999_later.sql, which this version does not know: start a newer Medley.',
    );
  });

  it('with a migration whose text has changed since is refused', async () => {
    const db = await openTestDatabase();
    await db.query(`update migrations set checksum = 'x' where number = 100`);
    await expect(migrate(db)).rejects.toThrow('Migration 0100_baseline.sql has been changed since it was applied');
  });

  it('with an index that could not be made before the start is refused, and migrated once it is made again', async () => {
    const db = await openTestDatabase();
    const name = '0275_failed_calls_by_time.sql';
    await db.query(`insert into chat_calls (account_id, id, key_id, model, style, stream, status, attempts, input_tokens,
        cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, counted_here, cost, currency, total_ms, created_at)
      select 'acct_1', 'req_' || n, 'key_1', 'm', 'completions', false, 500, '[]', 0, 0, 0, 0, 0, false, 0, 'USD', 1, now()
        from generate_series(1, 2) n`);
    await db.query('drop index chat_calls_failed_by_time');
    await db.query('delete from migrations where name = $1', [name]);
    // Two equal rows end it, as a broken connection or a full disk does.
    const making = 'create unique index concurrently chat_calls_failed_by_time on chat_calls (account_id)';
    await expect(db.query(making)).rejects.toThrow('could not create unique index');
    const message = 'The index chat_calls_failed_by_time is there, but is not complete';
    await expect(migrate(db)).rejects.toThrow(message);
    expect((await compareMigrations(db)).problem).toContain(message);
    expect(await brokenIndexes(db)).toEqual(['chat_calls_failed_by_time']);
    await db.query('drop index concurrently chat_calls_failed_by_time');
    await db.query(
      'create index concurrently chat_calls_failed_by_time on chat_calls (created_at, status, error_type) where status >= 400',
    );
    expect(await migrate(db)).toEqual([name]);
    expect(await brokenIndexes(db)).toEqual([]);
  });

  it('that two processes migrate at once is migrated by one of them', async () => {
    const db = await openTestDatabase('empty');
    const names = await Promise.all([migrate(db), migrate(db)]);
    expect(names.map((each) => each.length > 0).toSorted()).toEqual([false, true]);
  });
});

describe('the functions', () => {
  const files = readFunctions();

  it('are written again only where their text has changed', async () => {
    const db = await openTestDatabase();
    const before = await versionsOf(db);
    await migrate(db);
    expect(await versionsOf(db)).toEqual(before);
    await applyAll(
      db,
      files.map((file) => (file.name === 'month_of' ? changed(file) : file)),
    );
    const after = await versionsOf(db);
    expect(Object.keys(after).filter((name) => after[name] !== before[name])).toEqual(['month_of']);
  });

  it('are dropped when they have no file any more', async () => {
    const db = await openTestDatabase();
    await applyAll(db, [
      ...files,
      { path: '', name: 'old', sql: 'create function old() returns int return 1', checksum: 'x' },
    ]);
    expect(Object.keys(await versionsOf(db))).toContain('old');
    await db.query('create function of_the_operator() returns int return 1');
    await migrate(db);
    const names = Object.keys(await versionsOf(db));
    expect([names.includes('old'), names.includes('of_the_operator')]).toEqual([false, true]);
  });

  it('of a release take the place of those of its candidates, and not the other way round', async () => {
    const db = await openTestDatabase();
    const own = files.map((file) => (file.name === 'month_of' ? changed(file) : file));
    const writerAfter = async (version: string, of_version: typeof files) => {
      await applyAll(db, of_version, version);
      return (await versionsOf(db))['month_of'];
    };
    const of_candidate = await writerAfter('9.0.0-rc.2', own);
    expect(await writerAfter('9.0.0-rc.1', files)).toBe(of_candidate);
    const of_release = await writerAfter('9.0.0', files);
    expect(of_release).not.toBe(of_candidate);
    expect(await writerAfter('9.0.0-rc.10', own)).toBe(of_release);
  });

  it('of a newer version stay when a node of an older one starts', async () => {
    const db = await openTestDatabase();
    const newer = [
      ...files.slice(1).map(changed),
      { path: '', name: 'new', sql: 'create function new() returns int return 1', checksum: 'x' },
    ];
    await applyAll(db, newer, '0.10.0');
    const texts = await functionTexts(db);
    await applyAll(db, files, '0.9.9');
    expect(await functionTexts(db)).toEqual(texts);
    await applyAll(db, files, '0.10.0');
    expect(await functionTexts(db)).not.toEqual(texts);
  });

  it('with other parameters need another name, and nothing is changed without', async () => {
    const db = await openTestDatabase();
    const texts = await functionTexts(db);
    const sql = 'create or replace function month_of(p_now date) returns date return p_now';
    const other = files.map((file) => (file.name === 'month_of' ? { ...file, sql, checksum: 'x' } : file));
    await expect(applyAll(db, other)).rejects.toThrow(
      'sql/functions/money/month_of.sql: function name "public.month_of" is not unique',
    );
    expect(await functionTexts(db)).toEqual(texts);
  });

  it('have bodies that PostgreSQL accepts, in whatever order they are applied', async () => {
    const db = await openTestDatabase('engine');
    await withConnection(db, async (client) => {
      await client.query('begin');
      for (const { name, sql } of files.toReversed()) await expect(client.query(sql), name).resolves.toBeDefined();
      await client.query('rollback');
    });
  });

  it('are replaced while another node calls them, and no call fails', async () => {
    const db = await openTestDatabase();
    let is_over = false;
    const counts = [0, 0, 0];
    const calls = counts.map(async (_, caller) => {
      while (!is_over) {
        await db.query(`select month_of(now()), paused_until(now(), 'acct_1', 25), money_limit('key_1', null)`);
        counts[caller] = (counts[caller] ?? 0) + 1;
      }
    });
    const calling = Promise.all(calls).finally(() => (is_over = true));
    calling.catch(() => undefined); // it is awaited below
    for (let i = 0; !is_over && (i < 5 || Math.min(...counts) <= 5); i++)
      await applyAll(
        db,
        files.map((file) => ({ ...changed(file), checksum: String(i) })),
      );
    is_over = true;
    await expect(calling).resolves.toHaveLength(3);
  });
});

function changed(file: FunctionFile): FunctionFile {
  return { ...file, sql: `${file.sql}\n-- changed`, checksum: 'changed' };
}

async function applyAll(db: Db, files: readonly FunctionFile[], version?: string): Promise<void> {
  await withConnection(db, async (client: pg.Client) => {
    await client.query('begin');
    await applyFunctions(client, files, version);
    await client.query('commit');
  });
}

/** Which transaction wrote each function. */
async function versionsOf(db: Db): Promise<Record<string, string>> {
  const rows = await db.query<{ name: string; xmin: string }>(
    `select proname as name, xmin::text from pg_proc where pronamespace = 'public'::regnamespace`,
  );
  return Object.fromEntries(rows.map(({ name, xmin }) => [name, xmin]));
}
