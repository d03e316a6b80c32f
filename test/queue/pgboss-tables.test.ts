import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { relied_on } from '../../src/queue/pgboss-tables.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { testEngine } from './engine.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  const engine = await testEngine(database.db, ['any']); // pg-boss makes its schema
  await engine.stop();
});
afterAll(() => database.drop());

type Column = { table: string; column: string; type: string };

async function columns(): Promise<Column[]> {
  return database.db.query<Column>(
    `select table_name as table, column_name as column,
            case data_type when 'USER-DEFINED' then udt_name else data_type end as type
       from information_schema.columns where table_schema = 'pgboss'`,
  );
}

/** Each text that has SQL on pg-boss's tables: one file of ours, and functions of the database. */
async function texts(): Promise<string[]> {
  const file = readFileSync(join(import.meta.dirname, '../../src/queue/pgboss-tables.ts'), 'utf8');
  const functions = await database.db.query<{ prosrc: string }>(
    `select prosrc from pg_proc where pronamespace = 'public'::regnamespace and prosrc ~ '\\ypgboss\\.'`,
  );
  expect(functions.length).toBeGreaterThan(3);
  return [file.replace(/export const relied_on = [^]*?\n\} as const;/, ''), ...functions.map(({ prosrc }) => prosrc)];
}

it("pg-boss's tables have each column that we rely on, of its type", async () => {
  const there = new Map((await columns()).map(({ table, column, type }) => [`${table}.${column}`, type]));
  const relied = Object.entries(relied_on.columns).flatMap(([table, types]) =>
    Object.entries(types).map(([column, type]) => [`${table}.${column}`, type] as const),
  );
  expect(relied.map(([name]) => [name, there.get(name)])).toEqual(relied);
});

it("the list of what we rely on has each table and column of pg-boss's that our SQL names", async () => {
  const all = await columns();
  const lists: Record<string, object> = relied_on.columns;
  const missing = (await texts()).flatMap((text) => {
    const tables = [...text.matchAll(/\bpgboss\.(\w+)(?!\w*\()/g)].map((match) => match[1] ?? '');
    const there = all.filter(({ table }) => tables.includes(table));
    // Of a word that is a column of two of these tables, one of both is meant.
    return [...new Set(text.match(/\w+/g))].filter((word) => {
      const owners = there.filter(({ column }) => column === word);
      return owners.length > 0 && !owners.some(({ table }) => word in (lists[table] ?? {}));
    });
  });
  expect(missing).toEqual([]);
});

it("pg-boss's states are in the order that we rely on", async () => {
  const [row] = await database.db.query<{ states: string[] }>(
    `select enum_range(null::pgboss.job_state)::text[] as states`,
  );
  expect(row?.states).toEqual(relied_on.states);
});

it('pg-boss has each function and index that we rely on', async () => {
  const functions = await database.db.query<{ text: string }>(
    `select proname || '(' || pg_get_function_identity_arguments(oid) || ') ' || pg_get_function_result(oid) as text
       from pg_proc where pronamespace = 'pgboss'::regnamespace`,
  );
  expect(functions.map(({ text }) => text)).toEqual(expect.arrayContaining([...relied_on.functions]));
  const indexes = await database.db.query<{ indexdef: string }>(
    `select indexdef from pg_indexes where schemaname = 'pgboss' and tablename = 'job_common'`,
  );
  const definitions = indexes.map(({ indexdef }) =>
    indexdef.replace(/^CREATE (UNIQUE )?INDEX .* USING btree /, '$1').replaceAll(/::(?:pgboss\.job_state|text)\b/g, ''),
  );
  expect(definitions).toEqual(expect.arrayContaining([...relied_on.indexes]));
});
