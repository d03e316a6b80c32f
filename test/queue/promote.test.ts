import { afterAll, beforeAll, expect, it } from 'vitest';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { testEngine, until } from './engine.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

it('deferred jobs of the promoted keys start at once, and no others', async () => {
  const { db } = database;
  const engine = await testEngine(db, ['a', 'b']);
  const begun: unknown[] = [];
  for (const queue of ['a', 'b']) {
    engine.work(queue, {
      slots: 5,
      handler: async (job) => {
        begun.push(job.data['name']);
        return 'done';
      },
    });
  }
  for (const key of ['one', 'two', 'three']) await engine.send(db, 'a', { name: key }, { key, after_ms: 600_000 });
  await engine.send(db, 'a', { name: 'nameless' }, { after_ms: 600_000 });
  await engine.send(db, 'b', { name: 'other' }, { key: 'one', after_ms: 600_000 });
  expect(await engine.promote('a', ['one', 'three', 'four'])).toEqual(new Set(['one', 'three']));
  await until('both have begun', 60_000, () => begun.length === 2);
  expect(begun.toSorted()).toEqual(['one', 'three']);
  await until('both are over', 60_000, async () => !(await engine.liveKeys(['three'])).has('three'));
  expect(await engine.promote('a', ['one', 'three'])).toEqual(new Set());
  expect(await engine.promote('a', [])).toEqual(new Set());
  expect(await engine.liveKeys(['one', 'two', 'three'])).toEqual(new Set(['one', 'two'])); // of b, and what was left alone
  await engine.stop();
  expect(begun).toHaveLength(2);
});
