import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase, withConnection } from '../../src/db/database.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { stoppingServer } from '../helpers/farewell.ts';

let database: TestDatabase;
let server: Awaited<ReturnType<typeof stoppingServer>>;
beforeAll(async () => {
  database = await testDatabase({ state: 'empty' });
  server = await stoppingServer(database.url);
});
afterAll(async () => {
  await server.close();
  await database.drop();
});

it('a server that stops while the pool is closed is not told of', async () => {
  const told: string[] = [];
  const db = openDatabase({ connection: server.connection, onError: (error) => told.push(error.message) });
  await Promise.all([db.query('select 1'), db.query('select 1')]);
  const gone = new Promise((resolve) => db.pool.on('remove', resolve));
  await db.close();
  await gone;
  expect([server.farewells(), told]).toEqual([2, []]);
});

it('a server that stops while a connection of its own is closed does not end the process', async () => {
  const db = openDatabase({ connection: server.connection });
  const answer = await withConnection(db, async (client) => (await client.query('select 1 as one')).rows);
  expect(answer).toEqual([{ one: 1 }]);
  await db.close();
});
