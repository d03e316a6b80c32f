import { expect, it } from 'vitest';
import { withConnection } from '../../src/db/database.ts';
import { effectsOf } from '../../src/db/migration-effects.ts';
import { readMigrations } from '../../src/db/sql-files.ts';
import { testDatabase } from '../helpers/database.ts';

const effectOf = (...texts: string[]) =>
  effectsOf(texts.map((sql, at) => ({ name: `${at}`, sql }))).map(({ work, tables }) => [work, ...tables].join(' '));

it.each([
  ['alter table tasks add column note text', 'quick'],
  ['alter table tasks add column n bigint not null default 0, add column at timestamptz default now()', 'quick'],
  ['alter table tasks add column id uuid default gen_random_uuid()', 'rewrites tasks'],
  ['ALTER TABLE tasks ALTER COLUMN cost TYPE numeric', 'rewrites tasks'],
  ['alter table public.tasks alter column cost set not null', 'reads public.tasks'],
  ["alter table files add constraint k check (kind in ('a; update tasks'))", 'reads files'],
  ['alter table files add constraint k check (kind > 0) not valid', 'quick'],
  ['alter table files drop constraint k; alter table files rename column a to b', 'quick'],
  ['create index on tasks (model)', 'reads tasks'],
  [
    'create unique index if not exists x on only tasks using btree (a); update deliveries set a = 1',
    'rewrites deliveries tasks',
  ],
  ['update tasks -- all of them\n set cost = 0', 'rewrites tasks'],
  ['delete from tasks where cost = 0', 'rewrites tasks'],
  ['create table x (a int); create index on x (a); insert into x values (1)', 'quick'],
  ['insert into x select a from tasks', 'reads tasks'],
  ['create function f() returns int language sql as $$ update tasks set a = 1 $$', 'quick'],
  ['do $$ begin update tasks set a = 1; end $$', 'reads'],
])('%s: %s', (sql, expected) => {
  const [effect] = effectOf(sql);
  expect(effect).toBe(expected);
});

it('takes a table that an earlier migration makes for empty, under its later name too', () => {
  const texts = ['create table x (a int)', 'alter table x rename to y', 'alter table y alter column a set not null'];
  expect(effectOf(...texts)).toEqual(['quick', 'quick', 'quick']);
});

it('says of every migration that PostgreSQL writes a table again for that it does', async () => {
  const database = await testDatabase({ state: 'empty' });
  try {
    const migrations = readMigrations();
    const effects = migrations.flatMap((migration) => effectsOf([migration])); // each by itself: its tables are old
    await withConnection(database.db, async (client) => {
      const nodesOf = async () => {
        const { rows } = await client.query<{ name: string; node: number }>(
          `select relname as name, relfilenode::int as node from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
        );
        return new Map(rows.map(({ name, node }) => [name, node]));
      };
      for (const [at, { name, sql }] of migrations.entries()) {
        const before = await nodesOf();
        await client.query(sql);
        const after = await nodesOf();
        const written = [...before].filter(([table, node]) => after.has(table) && after.get(table) !== node);
        const effect = effects[at];
        const unsaid = written.filter(([table]) => effect?.work !== 'rewrites' || !effect.tables.includes(table));
        expect({ name, unsaid }).toEqual({ name, unsaid: [] });
      }
    });
  } finally {
    await database.drop();
  }
});

it('sees what PostgreSQL writes again: the test before this one could fail', async () => {
  const database = await testDatabase({ state: 'migrated' });
  try {
    const nodeOf = async () =>
      (await database.db.query<{ node: number }>(`select pg_relation_filenode('tasks')::int as node`))[0]?.node;
    const before = await nodeOf();
    const quick = 'alter table tasks add column added bigint not null default 0';
    await database.db.query(quick);
    expect(await nodeOf()).toBe(before);
    const slow = `alter table tasks add column other float8 not null default random()`;
    await database.db.query(slow);
    expect(await nodeOf()).not.toBe(before);
    expect(effectOf(quick, slow)).toEqual(['quick', 'rewrites tasks']);
  } finally {
    await database.drop();
  }
});
