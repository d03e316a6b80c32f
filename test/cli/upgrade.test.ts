import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import package_json from '../../package.json' with { type: 'json' };
import { appliedMigrations, migrate, pendingMigrations } from '../../src/db/migrate.ts';
import { applyEarlier } from '../db/earlier.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { temporaryFolder } from '../helpers/embedded.ts';
import { functionTexts } from '../helpers/schema.ts';
import { medleySoon } from './medley.ts';

const report_type = Type.Object({
  ok: Type.Boolean(),
  needed: Type.Boolean(),
  version: Type.String(),
  database: Type.Union([
    Type.Null(),
    Type.Object({ version: Type.Union([Type.Null(), Type.String()]), migrations: Type.Number() }),
  ]),
  migrations: Type.Array(
    Type.Object({
      name: Type.String(),
      work: Type.String(),
      tables: Type.Array(Type.Object({ name: Type.String(), rows: Type.Number(), size_bytes: Type.Number() })),
    }),
  ),
  functions: Type.Object({
    added: Type.Array(Type.String()),
    changed: Type.Array(Type.String()),
    removed: Type.Array(Type.String()),
  }),
  configuration: Type.Object({
    problems: Type.Array(Type.String()),
    without_model: Type.Array(Type.String()),
    retiring: Type.Array(Type.String()),
  }),
  backup: Type.Object({ needs_bytes: Type.Number(), free_bytes: Type.Number() }),
  nodes: Type.Array(Type.Object({ host: Type.String(), version: Type.String() })),
  obstacles: Type.Array(Type.String()),
  steps: Type.Array(Type.String()),
});

const folder = temporaryFolder(0o755);
const data = join(folder, 'data');
let database: TestDatabase;
beforeAll(async () => {
  mkdirSync(data);
  database = await testDatabase({ state: 'empty' });
});
afterAll(() => database.drop());

/** Runs the command against the database of the test. */
async function check(env: Record<string, string> = {}) {
  const result = await medleySoon(['upgrade', '--check', '--json'], {
    DATABASE_URL: database.url,
    MEDLEY_DATA: data,
    ...env,
  });
  return { code: result.code, report: Value.Parse(report_type, JSON.parse(result.out)), error: result.error };
}

describe('medley upgrade --check', () => {
  it('tells of a database that no service has used that its first start makes it', async () => {
    const { code, report } = await check();
    expect(code).toBe(0);
    expect(report).toMatchObject({ ok: true, obstacles: [] });
    expect(await appliedMigrations(database.db).catch(() => 'no table')).toBe('no table');
  });

  it('names the migrations and functions of an older database, what they take, and changes nothing', async () => {
    const { db } = database;
    await applyEarlier(db);
    await db.query(`insert into accounts values ('acct_1', 'Old', 'USD', 'active', 'whsec_x', now())`);
    await db.query('analyze accounts');
    const before = [await appliedMigrations(db), await functionTexts(db)];
    const { code, report } = await check();
    expect({ code, ok: report.ok, needed: report.needed }).toEqual({ code: 0, ok: true, needed: true });
    expect(report.migrations.map(({ name }) => name)).toEqual(
      (await pendingMigrations(db)).filter((name) => name !== '0100_baseline.sql'),
    );
    const byName = (name: string) => report.migrations.find((each) => each.name === name);
    expect(byName('0101_any_style.sql')).toMatchObject({ work: 'reads', tables: [{ name: 'chat_calls' }] });
    expect(byName('0107_checks_of_the_books.sql')).toMatchObject({ work: 'quick', tables: [] });
    expect(report.functions.added.length).toBeGreaterThan(20);
    expect(report.backup.needs_bytes).toBeGreaterThan(1_000_000);
    expect(report.steps.join(' ')).toMatch(/Make a backup.*quiet hour.*Start this version/);
    expect([await appliedMigrations(db), await functionTexts(db)]).toEqual(before);
  });

  it('has nothing to do after a start, and names what is removed, retiring or of another version', async () => {
    const { db } = database;
    await migrate(db);
    const now = await check();
    expect(now.report).toMatchObject({ ok: true, needed: false, steps: ['Nothing: the database is current.'] });
    expect(now.report.database?.version).toBe(package_json.version);
    await db.query(`insert into model_overrides (model, is_off, updated_at) values ('gone/model', true, now())`);
    await db.query(
      `insert into nodes (id, host, pid, role, version, started_at, seen_at, running) values
        ('n1', 'one', 1, 'api', '0.0.9', now(), now() + interval '10 minutes', '{}'), ('n2', 'dead', 2, 'api', '0.0.8', now(), now() - interval '1 hour', '{}')`,
    );
    await db.query(`create function public.left_over() returns int language sql as 'select 1'`);
    await db.query(`comment on function public.left_over is 'medley 0.0.9 abc'`);
    const later = await check();
    expect(later.report.configuration.without_model).toEqual(['gone/model']);
    expect(later.report.nodes).toEqual([{ host: 'one', pid: 1, role: 'api', version: '0.0.9' }]);
    expect(later.report.functions.removed).toEqual(['left_over']);
    expect(later.report.steps.join(' ')).toContain('1 node of another version may go on meanwhile');
  });

  it('names keys of medley.yaml that this version does not have, with their lines, and ends with 1', async () => {
    const file = join(folder, 'medley.yaml');
    writeFileSync(file, 'version: 1\nretention: { sessions: 1d, former_key: 2d }\n');
    const { code, report } = await check({ MEDLEY_CONFIG: file });
    expect(code).toBe(1);
    expect(report.obstacles.join()).toMatch(/medley\.yaml:2:\d+ retention.*former_key/);
  });

  it('says why a start would refuse a newer database, and ends with 1', async () => {
    await database.db.query(`insert into migrations (number, name, checksum) values (9999, '9999_later.sql', 'x')`);
    const { code, report } = await check();
    expect(code).toBe(1);
    expect(report.obstacles).toEqual([
      'The database has migration 9999_later.sql, which this version does not know: start a newer Medley.',
    ]);
  });

  it('without --check says what an upgrade is, and ends with 2', async () => {
    const result = await medleySoon(['upgrade'], { DATABASE_URL: database.url, MEDLEY_DATA: data });
    expect(result).toMatchObject({ code: 2, out: '' });
    expect(result.error).toContain('`upgrade --check` tells what that would change');
  });
});
