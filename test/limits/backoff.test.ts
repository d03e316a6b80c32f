import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { removeOldTries, sharedBackoff, type Backoff } from '../../src/limits/backoff.ts';
import { testClock } from '../helpers/clock.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

const clock = testClock();
let database: TestDatabase;
let tries: Backoff;

/** That of another node. */
let elsewhere: Backoff;

beforeAll(async () => {
  database = await testDatabase();
  tries = sharedBackoff({ db: database.db, clock });
  elsewhere = sharedBackoff({ db: database.db, clock });
});

beforeEach(async () => {
  clock.stop('2026-06-01T12:00:00Z');
  await database.db.query('delete from sign_in_tries');
});

afterAll(() => database.drop());

async function useFree(name: string): Promise<void> {
  for (let free = 0; free < 5; free++) expect(await tries.take(name)).toBe(0);
}

it('five tries are free, then each waits twice as long as the one before, up to 15 minutes, on every node', async () => {
  await useFree('anna');
  const waits = [];
  for (let more = 0; more < 13; more++) {
    const wait_ms = await elsewhere.take('anna');
    waits.push(wait_ms / 1000);
    clock.pass(wait_ms - 1);
    expect(await tries.take('anna')).toBe(1);
    clock.pass(1);
    expect(await tries.take('anna')).toBe(0);
  }
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
});

it('of many tries at once on two nodes exactly five go on', async () => {
  for (const name of ['anna', 'ben', 'carla']) {
    const waits = await Promise.all(Array.from({ length: 40 }, (_, i) => (i % 2 ? tries : elsewhere).take(name)));
    expect(waits.filter((wait_ms) => wait_ms === 0)).toHaveLength(5);
  }
});

it('a refused try neither counts nor lengthens the wait', async () => {
  await useFree('anna');
  for (let again = 0; again < 20; again++) expect(await tries.take('anna')).toBe(1_000);
  clock.pass(1_000);
  expect(await tries.take('anna')).toBe(0);
});

it('a right try forgives, one that nobody looked at does not count, and names are apart', async () => {
  await useFree('anna');
  expect(await tries.take('ben')).toBe(0);
  await elsewhere.undo('anna');
  expect(await tries.take('anna')).toBe(0);
  expect(await tries.take('anna')).toBe(1_000);
  await elsewhere.forgive('anna');
  await useFree('anna');
  await tries.undo('ben');
  await tries.undo('nobody');
  expect(await database.db.query('select count from sign_in_tries')).toEqual([{ count: 5 }]);
});

it('tries of more than an hour ago are forgotten, and their rows removed', async () => {
  await useFree('anna');
  expect(await tries.take('anna')).toBeGreaterThan(0);
  clock.pass(3_600_000);
  await useFree('anna');
  await tries.take('ben');
  clock.pass(3_599_999);
  await tries.take('ben');
  await removeOldTries(database.db, new Date(clock.now()));
  expect(await database.db.query('select count from sign_in_tries order by count')).toEqual([
    { count: 2 },
    { count: 5 },
  ]);
  clock.pass(1);
  await removeOldTries(database.db, new Date(clock.now()));
  expect(await database.db.query('select count from sign_in_tries')).toEqual([{ count: 2 }]);
});
