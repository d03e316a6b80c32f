import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { recordText } from '../../src/db/record.ts';
import { deleteKey } from '../../src/accounts/keys.ts';
import { close, hold } from '../../src/money/holds.ts';
import { credit, setLimit } from '../../src/money/ledger.ts';
import { money_max } from '../../src/money/money.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, noon, openKey, openWallet, standingOf } from './setup.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => expectExactBooks(database.db));
afterAll(() => database.drop());

describe('a hold', () => {
  test('reserves what is available, to the last millionth and not one more', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000_001n });
    expect(await hold(db, holdOf(wallet, 'a', 1_000_000n), noon)).toEqual({
      outcome: 'held',
      available: 1n,
      remaining: null,
    });
    expect((await hold(db, holdOf(wallet, 'b', 2n), noon)).outcome).toBe('insufficient');
    expect((await hold(db, holdOf(wallet, 'c', 1n), noon)).outcome).toBe('held');
    expect((await hold(db, holdOf(wallet, 'd', 0n), noon)).outcome).toBe('held');
    expect(await standingOf(db, wallet)).toMatchObject({ amount: 1_000_001n, held: 1_000_001n, key_held: 1_000_001n });
  });

  test('is refused with 402 before 403, and a refusal leaves nothing behind', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n, limit: 50n });
    expect(await hold(db, holdOf(wallet, 'a', 101n), noon)).toEqual({
      outcome: 'insufficient',
      available: 100n,
      remaining: 50n,
    });
    expect(await hold(db, holdOf(wallet, 'a', 51n), noon)).toEqual({
      outcome: 'over_limit',
      available: 100n,
      remaining: 50n,
    });
    expect(await hold(db, holdOf(wallet, 'a', 50n), noon)).toEqual({ outcome: 'held', available: 50n, remaining: 0n });
  });

  test('of a ref that has one, open or closed, changes nothing, whatever the amount and the balance', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n });
    await hold(db, holdOf(wallet, 'a', 100n), noon);
    expect((await hold(db, holdOf(wallet, 'a', 100n), noon)).outcome).toBe('exists');
    await close(db, closeOf(wallet, 'a', 30n), noon);
    expect((await hold(db, holdOf(wallet, 'a', 5n), noon)).outcome).toBe('exists');
    expect(await standingOf(db, wallet)).toMatchObject({ amount: 70n, held: 0n, spent: 30n });
  });

  test('of more than a bigint is refused like any other that nobody can pay', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: money_max });
    expect((await hold(db, holdOf(wallet, 'a', 2n ** 63n), noon)).outcome).toBe('insufficient');
    expect((await hold(db, holdOf(wallet, 'b', 10n ** 300n), noon)).outcome).toBe('insufficient');
    expect((await hold(db, holdOf(wallet, 'c', money_max), noon)).outcome).toBe('held');
  });

  test('below zero, of an unknown account, an unknown key or the key of another account is an error', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n });
    const other = await openWallet(db, { credit: 100n });
    await expect(hold(db, holdOf(wallet, 'a', -1n), noon)).rejects.toThrow('never below zero');
    await expect(
      db.query('select hold_money($1, null, $2, null)', [noon, JSON.stringify({ ...wallet, ref: 'a', amount: -1 })]),
    ).rejects.toThrow('a hold of -1 is not an amount');
    for (const wrong of [
      { ...wallet, account_id: 'acct_none' },
      { ...wallet, key_id: 'key_none' },
      { ...wallet, key_id: other.key_id },
    ]) {
      await expect(hold(db, holdOf(wrong, 'a', 1n), noon)).rejects.toThrow('there is no account');
    }
    expect(await standingOf(db, other)).toMatchObject({ held: 0n, key_held: 0n });
  });

  test('counts against its own key only', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n, limit: 10n });
    const second = { ...wallet, key_id: await openKey(db, wallet.account_id, 20n) };
    expect((await hold(db, holdOf(wallet, 'a', 10n), noon)).outcome).toBe('held');
    expect((await hold(db, holdOf(second, 'b', 20n), noon)).outcome).toBe('held');
    expect((await hold(db, holdOf(wallet, 'c', 1n), noon)).outcome).toBe('over_limit');
    expect((await hold(db, holdOf(second, 'd', 1n), noon)).outcome).toBe('over_limit');
  });

  test('obeys a changed limit at once, also one below the spent amount', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n, limit: 10n });
    await hold(db, holdOf(wallet, 'a', 10n), noon);
    await close(db, closeOf(wallet, 'a', 10n), noon);
    expect(await setLimit(db, wallet.key_id, 5n)).toBe(true);
    expect(await hold(db, holdOf(wallet, 'b', 0n), noon)).toMatchObject({ outcome: 'over_limit', remaining: -5n });
    await setLimit(db, wallet.key_id, 11n);
    expect((await hold(db, holdOf(wallet, 'b', 1n), noon)).outcome).toBe('held');
    await setLimit(db, wallet.key_id, null);
    expect(await hold(db, holdOf(wallet, 'c', 89n), noon)).toMatchObject({ outcome: 'held', remaining: null });
    expect(await setLimit(db, 'key_none', 1n)).toBe(false);
    await expect(setLimit(db, wallet.key_id, -1n)).rejects.toThrow('from zero to money_max');
  });
});

describe('closing a hold', () => {
  test('settles it at the cost and releases the rest', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n, limit: 100n });
    await hold(db, holdOf(wallet, 'a', 60n), noon);
    expect(await close(db, closeOf(wallet, 'a', 25n), noon)).toEqual({
      outcome: 'settled',
      state: 'settled',
      charged: 25n,
      available: 75n,
      upstream_cost: null,
    });
    expect(await standingOf(db, wallet)).toMatchObject({ amount: 75n, held: 0n, spent: 25n, key_held: 0n });
  });

  test('releases all of it, which differs from settling at zero', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n });
    await hold(db, holdOf(wallet, 'a', 60n), noon);
    await hold(db, holdOf(wallet, 'b', 40n), noon);
    expect(await close(db, closeOf(wallet, 'a', null), noon)).toMatchObject({ outcome: 'released', charged: 0n });
    expect(await close(db, closeOf(wallet, 'b', 0n), noon)).toMatchObject({ outcome: 'settled', charged: 0n });
    expect(await standingOf(db, wallet)).toMatchObject({ amount: 100n, held: 0n, spent: 0n });
  });

  test('again changes nothing and returns the first outcome', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n });
    await hold(db, holdOf(wallet, 'a', 60n), noon);
    await hold(db, holdOf(wallet, 'b', 40n), noon);
    await close(db, closeOf(wallet, 'a', 7n), noon);
    await close(db, closeOf(wallet, 'b', null), noon);
    const closed = { outcome: 'closed', available: 93n, upstream_cost: null };
    expect(await close(db, closeOf(wallet, 'a', null), noon)).toEqual({ ...closed, state: 'settled', charged: 7n });
    expect(await close(db, closeOf(wallet, 'b', 40n), noon)).toEqual({ ...closed, state: 'released', charged: 0n });
    expect(await close(db, closeOf(wallet, 'c', 1n), noon)).toEqual({ ...closed, state: null, charged: 0n });
  });

  test('of a task charges at most the hold, and the rest is the loss of the operator', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n });
    await hold(db, holdOf(wallet, 'a', 60n), noon);
    expect(await close(db, closeOf(wallet, 'a', 61n), noon)).toMatchObject({ charged: 60n, available: 40n });
    expect(await lossOf(wallet.account_id)).toEqual({ revenue: 61n, loss: -1n });
  });

  test('of a chat call charges a cost beyond the hold to the available balance, and no more than that', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n });
    await hold(db, holdOf(wallet, 'a', 10n), noon);
    await hold(db, holdOf(wallet, 'other', 50n), noon);
    expect(await close(db, closeOf(wallet, 'a', 30n, true), noon)).toMatchObject({ charged: 30n, available: 20n });
    await hold(db, holdOf(wallet, 'b', 5n), noon);
    expect(await close(db, closeOf(wallet, 'b', money_max, true), noon)).toMatchObject({ charged: 20n, available: 0n });
    expect(await lossOf(wallet.account_id)).toEqual({ revenue: 30n + money_max, loss: 20n - money_max });
    expect((await close(db, closeOf(wallet, 'other', null), noon)).available).toBe(50n);
  });

  test('works for a key that has been deleted meanwhile', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n });
    await hold(db, holdOf(wallet, 'a', 60n), noon);
    await deleteKey(db, wallet.key_id, noon);
    expect((await close(db, closeOf(wallet, 'a', 25n), noon)).outcome).toBe('settled');
  });

  test('below zero, above money_max or of an unknown account is an error', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n });
    await hold(db, holdOf(wallet, 'a', 60n), noon);
    for (const cost of [-1n, money_max + 1n, 2n ** 63n]) {
      await expect(close(db, closeOf(wallet, 'a', cost), noon)).rejects.toThrow('from zero to money_max');
    }
    for (const cost of [-1n, money_max + 1n]) {
      await expect(
        db.query('select close_hold($1, $2)', [noon, recordText({ ...wallet, ref: 'a', cost })]),
      ).rejects.toThrow(`a cost of ${cost} is not an amount`);
    }
    await expect(close(db, closeOf({ ...wallet, account_id: 'acct_none' }, 'a', 1n), noon)).rejects.toThrow(
      'there is no account',
    );
    expect((await close(db, closeOf(wallet, 'a', 60n), noon)).outcome).toBe('settled');
  });

  test('in a transaction that is rolled back has no effect', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n });
    await hold(db, holdOf(wallet, 'a', 60n), noon);
    const thrown = db.tx(async (tx) => {
      await close(tx, closeOf(wallet, 'a', 60n), noon);
      await credit(tx, { account_id: wallet.account_id, type: 'topup', amount: 5n, ref: 'x', reason: 'x' }, noon);
      throw new Error('crash');
    });
    await expect(thrown).rejects.toThrow('crash');
    expect(await standingOf(db, wallet)).toMatchObject({ amount: 100n, held: 60n });
  });

  async function lossOf(account_id: string): Promise<{ revenue: bigint; loss: bigint } | undefined> {
    const rows = await database.db.query<{ revenue: bigint; loss: bigint }>(
      'select sum(revenue)::bigint as revenue, sum(loss)::bigint as loss from ledger_entries where account_id = $1',
      [account_id],
    );
    return rows[0];
  }
});

test('the view of holds shows each hold once with its state, amount and cost', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 100n });
  for (const ref of ['open', 'settled', 'released']) await hold(db, holdOf(wallet, ref, 10n), noon);
  await close(db, closeOf(wallet, 'settled', 4n), noon);
  await close(db, closeOf(wallet, 'released', null), noon);
  const rows = await db.query(
    'select ref, state, amount, cost, key_id, model, kind, closed_at from holds where account_id = $1 order by ref',
    [wallet.account_id],
  );
  const common = { amount: 10n, key_id: wallet.key_id, model: 'test/model', kind: 'chat' };
  expect(rows).toEqual([
    { ...common, ref: 'open', state: 'open', cost: null, closed_at: null },
    { ...common, ref: 'released', state: 'released', cost: null, closed_at: noon },
    { ...common, ref: 'settled', state: 'settled', cost: 4n, closed_at: noon },
  ]);
});
