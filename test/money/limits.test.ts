import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Db } from '../../src/db/database.ts';
import { close, commit, hold, makeHoldBatcher, type CloseAnswer, type CloseRequest } from '../../src/money/holds.ts';
import { setLimit } from '../../src/money/ledger.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, noon, openWallet, standingOf, type Wallet } from './setup.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => expectExactBooks(database.db));
afterAll(() => database.drop());

/** The three ways in which a call of `held` millionths may end. */
type Way = (db: Db, wallet: Wallet, held: bigint, end: CloseRequest) => Promise<CloseAnswer>;

const closed: Way = async (db, wallet, held, end) => {
  await hold(db, holdOf(wallet, end.ref, held), noon);
  return close(db, end, noon);
};
const committed: Way = (db, wallet, held, end) => commit(db, { hold: holdOf(wallet, end.ref, held), end }, noon);
const committedWithOthers: Way = async (db, wallet, held, end) => {
  const batcher = makeHoldBatcher(db, () => noon);
  const request = holdOf(wallet, end.ref, held);
  const [answer] = await Promise.all([
    batcher.commit({ hold: request, end }),
    batcher.close(closeOf(wallet, `${end.ref} none`, null)),
  ]);
  return answer;
};
const closedWithOthers: Way = async (db, wallet, held, end) => {
  await hold(db, holdOf(wallet, end.ref, held), noon);
  const batcher = makeHoldBatcher(db, () => noon);
  const [answer] = await Promise.all([batcher.close(end), batcher.close(closeOf(wallet, `${end.ref} none`, null))]);
  return answer;
};

describe.each([
  ['closed', closed],
  ['closed in a batch', closedWithOthers],
  ['reserved and settled at once', committed],
  ['reserved and settled in a batch', committedWithOthers],
] as const)('a call that is %s', (_, end) => {
  test('is charged beyond its hold up to the limit of its key, and the rest is the loss of the operator', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000n, limit: 100n });
    await hold(db, holdOf(wallet, 'other', 30n), noon);
    const answer = await end(db, wallet, 20n, closeOf(wallet, 'a', 500n, true));
    expect(answer).toMatchObject({ outcome: 'settled', charged: 70n });
    expect(await standingOf(db, wallet)).toMatchObject({ amount: 930n, spent: 70n, key_held: 30n });
    expect((await close(db, closeOf(wallet, 'other', 30n, true), noon)).charged).toBe(30n);
    expect(await standingOf(db, wallet)).toMatchObject({ spent: 100n, key_held: 0n });
  });

  test('is charged up to the balance when its key has no limit or a higher one', async () => {
    const { db } = database;
    for (const limit of [null, 5_000n]) {
      const wallet = await openWallet(db, { credit: 100n, limit });
      const answer = await end(db, wallet, 20n, closeOf(wallet, 'a', 500n, true));
      expect(answer).toMatchObject({ charged: 100n, available: 0n });
    }
  });
});

test('a call that is held when its limit is lowered is charged its hold and nothing beyond', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000n, limit: 100n });
  await hold(db, holdOf(wallet, 'a', 60n), noon);
  await hold(db, holdOf(wallet, 'b', 40n), noon);
  await close(db, closeOf(wallet, 'b', 40n), noon);
  await setLimit(db, wallet.key_id, 10n);
  expect((await close(db, closeOf(wallet, 'a', 90n, true), noon)).charged).toBe(60n);
  expect(await standingOf(db, wallet)).toMatchObject({ spent: 100n });
  // What was reserved but not written when the limit was lowered has no hold yet: it gets none above the limit.
  const end = closeOf(wallet, 'c', 5n, true);
  const answer = await commit(db, { hold: holdOf(wallet, 'c', 5n), end }, noon);
  expect(answer).toMatchObject({ outcome: 'settled', charged: 0n, remaining: -90n });
});

test('the table refuses a budget that spends or holds more than its limit', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000n, limit: 100n });
  const spend = db.query('update budgets set spent = 101 where key_id = $1', [wallet.key_id]);
  await expect(spend).rejects.toThrow('budgets_are_sound');
  const spendAndHold = db.query('update budgets set spent = 60, held = 41 where key_id = $1', [wallet.key_id]);
  await expect(spendAndHold).rejects.toThrow('budgets_are_sound');
});
