import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isUnavailable, openDatabase, withConnection, type Db } from '../../src/db/database.ts';
import { retryWhileUnavailable } from '../../src/db/retry-while-unavailable.ts';
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

it('a server that stops while the pool is closed logs no error', async () => {
  const messages: string[] = [];
  const db = openDatabase({ connection: server.connection, onError: (error) => messages.push(error.message) });
  await Promise.all([db.query('select 1'), db.query('select 1')]);
  let gone = 0;
  db.pool.on('remove', () => gone++);
  await db.close();
  await expect.poll(() => gone).toBeGreaterThanOrEqual(2); // the pool removes one twice if its error comes after its end
  expect([server.farewells(), messages]).toEqual([2, []]);
});

it('a server that stops while a connection of its own is closed does not end the process', async () => {
  const db = openDatabase({ connection: server.connection });
  const answer = await withConnection(db, async (client) => (await client.query('select 1 as one')).rows);
  expect(answer).toEqual([{ one: 1 }]);
  await db.close();
});

it('a server that dies while a caller has a connection without a statement does not end the process', async () => {
  const db = openDatabase({ connection: { connectionString: database.url }, connections_max: 1 });
  // The second caller gets the connection in the moment in which the answer of the first is read.
  const [, client] = await Promise.all([db.pool.query('select 1'), db.pool.connect()]);
  expect(client.listenerCount('error')).toBeGreaterThan(0);
  client.release();
  await db.close();
});

describe('a database that is away', () => {
  const failure = (code: string) => Object.assign(new Error(`getaddrinfo ${code} db.example`), { code });

  it.each([
    'ENOTFOUND',
    'EAI_AGAIN',
    'ECONNREFUSED',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ETIMEDOUT',
    '25006',
    '53100',
    '57P03',
  ])('is retried until it is back where that is safe: %s', async (code) => {
    const fails = [failure(code), failure(code)];
    const call = async () => {
      const error = fails.shift();
      if (error) throw error;
      return 'written';
    };
    expect(await retryWhileUnavailable(call)).toBe('written');
  });

  it('includes a database with an unknown host name', async () => {
    const db = openDatabase({ connection: { host: 'database.invalid', port: 5432, user: 'u', database: 'd' } });
    expect(isUnavailable(await db.query('select 1').catch((error: unknown) => error))).toBe(true);
    await db.close();
  });

  it('includes a missing socket, but no missing file', async () => {
    const db = openDatabase({ connection: { host: '/nowhere', user: 'u', database: 'd' } });
    const socket = await db.query('select 1').catch((error: unknown) => error);
    expect(socket).toMatchObject({ code: 'ENOENT' });
    expect(isUnavailable(socket)).toBe(true);
    const file = await readFile('/nowhere').catch((error: unknown) => error);
    expect(file).toMatchObject({ code: 'ENOENT' });
    expect(isUnavailable(file)).toBe(false);
    await db.close();
  });

  it.each<[string, (db: Db) => Promise<unknown>]>([
    ['statement', (db) => db.query('create table written ()')],
    ['transaction', (db) => db.tx((tx) => tx.query('create table written ()'))],
  ])('includes one that is read-only, and the next %s has another connection', async (_what, write) => {
    const db = openDatabase({ connection: server.connection, connections_max: 1 });
    await db.query('set default_transaction_read_only = on'); // as a standby is, behind an address that changes hands
    const error = await write(db).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: '25006' });
    expect(isUnavailable(error)).toBe(true);
    await write(db);
    await db.query('drop table written');
    await db.close();
  });

  it('does not include one that rejects a statement', async () => {
    const db = openDatabase({ connection: server.connection });
    let calls = 0;
    const wrong = retryWhileUnavailable(() => {
      calls += 1;
      return db.query('select 1 / 0');
    });
    await expect(wrong).rejects.toMatchObject({ code: '22012' });
    expect(calls).toBe(1);
    await db.close();
  });
});
