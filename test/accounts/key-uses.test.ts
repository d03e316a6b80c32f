import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey, findKey } from '../../src/accounts/keys.ts';
import { openKeyUses } from '../../src/accounts/key-uses.ts';
import type { Queryable } from '../../src/db/database.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

/** Times of the last uses of keys, by nodes that each note what they see. */

const begin = new Date('2026-11-29T12:00:00Z');

let database: TestDatabase;
let key_id: string;
let others: string[];
let now_ms: number;
let written: number;
let warned: number;
let is_down: boolean;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  now_ms = begin.getTime();
  [written, warned, is_down] = [0, 0, false];
  const { db } = database;
  const { id } = await createAccount(db, { name: 'a', currency: 'USD', initial_credit: 0n }, begin);
  const make = async () => (await createKey(db, { account_id: id, name: 'k', limit_month: null }, begin)).key.id;
  key_id = await make();
  others = [await make(), await make()];
});

function node() {
  const db: Queryable = {
    query: (...args) => {
      written += 1;
      return is_down ? Promise.reject(new Error('down')) : database.db.query(...args);
    },
  };
  return openKeyUses({ db, clock: { now: () => now_ms }, log: { warn: () => void (warned += 1) } });
}

const lastUse = async (id = key_id) => (await findKey(database.db, id))?.last_used_at?.toISOString();

test('a thousand uses are one statement, and the time is that of the first', async () => {
  const uses = node();
  for (let i = 0; i < 1_000; i++) {
    uses.note(key_id);
    now_ms += 1;
  }
  for (const id of others) uses.note(id);
  expect(written).toBe(0);
  await uses.close();
  expect(written).toBe(1);
  expect(await lastUse()).toBe(begin.toISOString());
  expect(await lastUse(others[1])).toBe('2026-11-29T12:00:01.000Z');
});

test('a key is written again after a minute', async () => {
  const uses = node();
  uses.note(key_id);
  await uses.close();
  now_ms += 59_999;
  uses.note(key_id);
  await uses.close();
  expect(written).toBe(1);
  now_ms += 1;
  uses.note(key_id);
  await uses.close();
  expect(written).toBe(2);
  expect(await lastUse()).toBe('2026-11-29T12:01:00.000Z');
});

describe('a second node', () => {
  test('changes nothing that is half a minute old, and does not put a time back', async () => {
    const [first, second] = [node(), node()];
    first.note(key_id);
    await first.close();
    now_ms += 29_000;
    second.note(key_id);
    await second.close();
    expect(await lastUse()).toBe(begin.toISOString());
    const late = node();
    now_ms -= 60_000;
    late.note(key_id);
    await late.close();
    expect(await lastUse()).toBe(begin.toISOString());
  });

  test('that writes the same keys at the same moment waits, and both go on', async () => {
    const nodes = Array.from({ length: 8 }, node);
    const ids = [key_id, ...others];
    for (const [i, uses] of nodes.entries()) {
      now_ms += 31_000;
      for (const id of i % 2 === 0 ? ids : ids.toReversed()) uses.note(id);
    }
    await Promise.all(nodes.map((uses) => uses.close()));
    expect(warned).toBe(0);
    expect(await lastUse()).toBeDefined();
  });
});

test('what could not be written is noted again by the next use', async () => {
  const uses = node();
  is_down = true;
  uses.note(key_id);
  await uses.close();
  expect([warned, await lastUse()]).toEqual([1, undefined]);
  is_down = false;
  now_ms += 1_000;
  uses.note(key_id);
  await uses.close();
  expect(await lastUse()).toBe('2026-11-29T12:00:01.000Z');
});

test('a use does not count as a change of keys, for which all nodes ask anew', async () => {
  const version = async () => database.db.query('select version from callers_version');
  const before = await version();
  const uses = node();
  uses.note(key_id);
  await uses.close();
  expect(await lastUse()).toBeDefined();
  expect(await version()).toEqual(before);
});
