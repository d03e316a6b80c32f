import { expect, it } from 'vitest';
import { openDatabase } from '../../src/db/database.ts';
import { testDatabase } from '../helpers/database.ts';
import { stoppingServer } from '../helpers/farewell.ts';
import { testEngine, until } from './engine.ts';

it('a database server that stops with the queue logs no error', async () => {
  const database = await testDatabase();
  const server = await stoppingServer(database.url);
  const db = openDatabase({ connection: server.connection });
  const engine = await testEngine(db, ['a']);
  engine.work('a', { slots: 1, handler: async () => 'done' });
  await until('the engine has looked for jobs', 60_000, async () => (await jobsLookedFor(database)) > 0);
  const before = server.farewells();
  await engine.stop();
  await until('its connections have said good-bye', 60_000, () => server.farewells() > before + 1);
  await db.close();
  await server.close();
  expect(engine.lines).toEqual([]);
  await database.drop();
});

async function jobsLookedFor({ db, name }: Awaited<ReturnType<typeof testDatabase>>): Promise<number> {
  const rows = await db.query<{ count: bigint }>(
    `select count(*) from pg_stat_activity where datname = $1 and application_name = 'medley engine'`,
    [name],
  );
  return Number(rows[0]?.count);
}
