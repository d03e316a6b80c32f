import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createAccount, findAccount, listAccounts, setAccountStatus } from '../../src/accounts/accounts.ts';
import { balanceOf, listEntries } from '../../src/money/ledger.ts';
import { money_max } from '../../src/money/money.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

const now = new Date('2026-11-15T12:00:00Z');

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => expectExactBooks(database.db));
afterAll(() => database.drop());

test('an account is created with its balance, a webhook secret of 32 bytes and a first top-up', async () => {
  const { db } = database;
  const account = await createAccount(db, { name: 'Ada', currency: 'PLN', initial_credit: 25_000_000n }, now);
  expect(account).toEqual({
    id: expect.stringMatching(/^acct_[0-9a-z]{26}$/),
    name: 'Ada',
    currency: 'PLN',
    status: 'active',
    webhook_secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
    webhook_secret_before: null,
    webhook_secret_rotated_at: null,
    keeps_responses: true,
    second_factor_required: false,
    created_at: now,
  });
  expect(await findAccount(db, account.id)).toEqual(account);
  expect(await balanceOf(db, account.id)).toEqual({
    account_id: account.id,
    currency: 'PLN',
    amount: 25_000_000n,
    held: 0n,
  });
  const { entries } = await listEntries(db, { account_id: account.id, limit: 10 });
  expect(entries).toMatchObject([{ type: 'topup', available: 25_000_000n, reason: 'initial credit' }]);
});

test('accounts are listed oldest first, each with a secret of its own', async () => {
  const { db } = database;
  const accounts = [];
  for (const [i, currency] of ['USD', 'PLN', 'USD'].entries()) {
    accounts.push(
      await createAccount(db, { name: `n${i}`, currency, initial_credit: 0n }, new Date(now.getTime() + 1_000 + i)),
    );
  }
  expect((await listAccounts(db)).slice(-3)).toEqual(accounts);
  expect(new Set(accounts.map((account) => account.webhook_secret)).size).toBe(3);
  const [first] = accounts;
  expect(await listEntries(db, { account_id: first?.id ?? '', limit: 10 })).toEqual({ entries: [], has_more: false });
});

test('an account that cannot be created leaves nothing behind', async () => {
  const { db } = database;
  const before = await listAccounts(db);
  for (const wrong of [
    { initial_credit: -1n },
    { initial_credit: money_max + 1n },
    { currency: 'usd' },
    { name: '' },
    { name: 'x'.repeat(201) },
  ]) {
    const account = { name: 'x', currency: 'USD', initial_credit: 0n, ...wrong };
    await expect(createAccount(db, account, now)).rejects.toThrow(
      /top-up is above zero|larger than money_max|violates check/,
    );
  }
  expect(await listAccounts(db)).toEqual(before);
});

test('an account is blocked and unblocked', async () => {
  const { db } = database;
  const { id } = await createAccount(db, { name: 'x', currency: 'USD', initial_credit: 0n }, now);
  expect(await setAccountStatus(db, id, 'blocked')).toBe(true);
  expect((await findAccount(db, id))?.status).toBe('blocked');
  expect(await setAccountStatus(db, id, 'active')).toBe(true);
  expect((await findAccount(db, id))?.status).toBe('active');
  expect(await setAccountStatus(db, 'acct_none', 'blocked')).toBe(false);
  expect(await findAccount(db, 'acct_none')).toBeUndefined();
});
