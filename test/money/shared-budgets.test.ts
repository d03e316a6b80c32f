import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { close, commit, databaseHolds, hold, makeHoldBatcher, type HoldRequest } from '../../src/money/holds.ts';
import { budgetsOf, setLimit } from '../../src/money/ledger.ts';
import { reserveInMemory } from '../../src/money/reservations.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testLiveness } from '../helpers/liveness.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, noon, openWallet, rotated, type Wallet } from './setup.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => expectExactBooks(database.db));
afterAll(() => database.drop());

/** A key with a limit of 100, of which 60 are spent and 20 held, the key after it, and the key after that. */
async function openKeys(): Promise<Wallet[]> {
  const { db } = database;
  const first = await openWallet(db, { credit: 1_000n, limit: 100n });
  await hold(db, holdOf(first, 'spent', 60n), noon);
  await close(db, closeOf(first, 'spent', 60n), noon);
  await hold(db, holdOf(first, 'open', 20n), noon);
  const second = await rotated(db, first);
  return [first, second, await rotated(db, second)];
}

async function budgetOf({ account_id, key_id }: Wallet) {
  const [budget] = await budgetsOf(database.db, account_id, noon, [key_id]);
  return budget && { limit: budget.limit_month, spent: budget.spent, held: budget.held };
}

async function holdInBatch(request: HoldRequest, none: Wallet) {
  const batcher = makeHoldBatcher(database.db, () => noon);
  return (await Promise.all([batcher.hold(request), batcher.close(closeOf(none, 'none', null))]))[0];
}

describe.each([
  ['by the plain call', (request: HoldRequest) => hold(database.db, request, noon)],
  ['in a batch', (request: HoldRequest) => holdInBatch(request, request)],
] as const)('a key that is rotated, %s,', (_, take) => {
  test('continues with what the previous key has spent and holds, under the same limit', async () => {
    const { db } = database;
    const keys = await openKeys();
    for (const key of keys) {
      expect(await budgetOf(key)).toEqual({ limit: 100n, spent: 60n, held: 20n });
      expect(await take(holdOf(key, `${key.key_id} too much`, 21n))).toMatchObject({
        outcome: 'over_limit',
        remaining: 20n,
      });
    }
    const [first, second, third] = keys;
    if (!first || !second || !third) throw new Error('there are three');
    expect(await take(holdOf(third, 'a', 15n))).toMatchObject({ outcome: 'held', remaining: 5n });
    expect(await take(holdOf(first, 'b', 6n))).toMatchObject({ outcome: 'over_limit', remaining: 5n });
    expect(await close(db, closeOf(third, 'a', 40n, true), noon)).toMatchObject({ charged: 20n });
    const end = closeOf(second, 'c', 5n, true);
    expect(await commit(db, { hold: holdOf(second, 'c', 5n), end }, noon)).toMatchObject({
      charged: 0n,
      remaining: 0n,
    });
    for (const key of keys) expect(await budgetOf(key)).toEqual({ limit: 100n, spent: 80n, held: 20n });
  });
});

test('a limit that is changed on one key of a budget applies to all its keys', async () => {
  const [first, second, third] = await openKeys();
  if (!first || !second || !third) throw new Error('there are three');
  expect(await setLimit(database.db, third.key_id, 90n)).toBe(true);
  expect(await budgetOf(first)).toEqual({ limit: 90n, spent: 60n, held: 20n });
  expect(await hold(database.db, holdOf(second, 'a', 11n), noon)).toMatchObject({ outcome: 'over_limit' });
  expect(await setLimit(database.db, first.key_id, null)).toBe(true);
  expect(await hold(database.db, holdOf(third, 'a', 500n), noon)).toMatchObject({ outcome: 'held', remaining: null });
});

test('keys of one budget reserve from it also in memory: no call is lost and no limit exceeded', async () => {
  const { db } = database;
  const first = await openWallet(db, { credit: 100_000n, limit: 1_000n });
  const keys = [first, await rotated(db, first)];
  const liveness = testLiveness(db, 'one');
  await liveness.ensure();
  const holds = reserveInMemory(databaseHolds(makeHoldBatcher(db, () => noon, { node_id: 'one' })), () =>
    liveness.now(),
  );
  let charged = 0n;
  const call = async (i: number) => {
    const key = keys[i % 2] ?? first;
    const request = holdOf(key, `call ${i}`, 10n);
    const { outcome } = await holds.hold(request);
    if (outcome !== 'held') return;
    const end = await holds.settle(closeOf(key, `call ${i}`, 10n, true), request);
    expect(end.charged).toBe(10n);
    charged += end.charged;
  };
  await call(0);
  await call(1);
  for (let round = 0; round < 20; round++) {
    await Promise.all(Array.from({ length: 20 }, (_, i) => call(2 + round * 20 + i)));
  }
  holds.stop();
  expect(charged).toBe(1_000n);
  expect(await budgetOf(first)).toEqual({ limit: 1_000n, spent: 1_000n, held: 0n });
});
