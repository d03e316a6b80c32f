import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { close, hold } from '../../src/money/holds.ts';
import { balanceOf, credit, listEntries, type Credit } from '../../src/money/ledger.ts';
import type { UsageGroup } from '../../src/money/groups.ts';
import { usageOf } from '../../src/money/usage.ts';
import { million, money_max } from '../../src/money/money.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, noon, openKey, openWallet, type Wallet } from './setup.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => expectExactBooks(database.db));
afterAll(() => database.drop());

function creditOf(wallet: Wallet, amount: bigint, ref: string): Credit {
  return { account_id: wallet.account_id, type: amount > 0n ? 'topup' : 'adjustment', amount, ref, reason: 'test' };
}

describe('a credit', () => {
  test('books a top-up once per ref, also for a ref with colons', async () => {
    const { db } = database;
    const wallet = await openWallet(db);
    expect(await credit(db, creditOf(wallet, 50n, 'bank:1:a'), noon)).toEqual({ outcome: 'booked', available: 50n });
    expect(await credit(db, creditOf(wallet, 50n, 'bank:1:a'), noon)).toEqual({ outcome: 'exists', available: 50n });
    expect(await credit(db, creditOf(wallet, 50n, 'bank:1:b'), noon)).toEqual({ outcome: 'booked', available: 100n });
    const { entries } = await listEntries(db, { account_id: wallet.account_id, limit: 10 });
    expect(entries.map((entry) => entry.ref)).toEqual(['bank:1:b', 'bank:1:a']);
  });

  test('of a ref that was booked with another amount is a conflict', async () => {
    const { db } = database;
    const wallet = await openWallet(db);
    await credit(db, creditOf(wallet, 50n, 'a'), noon);
    expect(await credit(db, creditOf(wallet, 51n, 'a'), noon)).toEqual({ outcome: 'conflict', available: 50n });
    expect(await credit(db, creditOf(wallet, -1n, 'a'), noon)).toEqual({ outcome: 'booked', available: 49n });
  });

  test('that is negative withdraws what is available and not what is held', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n });
    await hold(db, holdOf(wallet, 'a', 30n), noon);
    expect(await credit(db, creditOf(wallet, -71n, 'a'), noon)).toEqual({ outcome: 'insufficient', available: 70n });
    expect(await credit(db, creditOf(wallet, -70n, 'b'), noon)).toEqual({ outcome: 'booked', available: 0n });
    expect(await balanceOf(db, wallet.account_id)).toMatchObject({ amount: 30n, held: 30n });
  });

  test('fills an account to a billion and not a millionth further', async () => {
    const { db } = database;
    const wallet = await openWallet(db);
    expect((await credit(db, creditOf(wallet, money_max, 'a'), noon)).outcome).toBe('booked');
    expect(await credit(db, creditOf(wallet, 1n, 'b'), noon)).toEqual({ outcome: 'too_large', available: money_max });
    expect((await credit(db, creditOf(wallet, money_max, 'c'), noon)).outcome).toBe('too_large');
    await hold(db, holdOf(wallet, 'h', money_max), noon);
    expect((await credit(db, creditOf(wallet, 1n, 'd'), noon)).outcome).toBe('too_large');
    expect(await credit(db, creditOf(wallet, -money_max, 'e'), noon)).toEqual({
      outcome: 'insufficient',
      available: 0n,
    });
  });

  test('of zero, of less than zero, of too much or of an unknown account is an error', async () => {
    const { db } = database;
    const wallet = await openWallet(db);
    const top_up = creditOf(wallet, 1n, 'a');
    for (const amount of [0n, -1n]) {
      await expect(credit(db, { ...top_up, amount }, noon)).rejects.toThrow('a top-up is above zero');
    }
    await expect(credit(db, creditOf(wallet, 0n, 'a'), noon)).rejects.toThrow('an adjustment is not zero');
    await expect(credit(db, creditOf(wallet, 2n ** 70n, 'a'), noon)).rejects.toThrow('larger than money_max');
    await expect(credit(db, creditOf(wallet, -(2n ** 70n), 'a'), noon)).rejects.toThrow('larger than money_max');
    await expect(credit(db, { ...top_up, account_id: 'acct_none' }, noon)).rejects.toThrow(
      'there is no account acct_none',
    );
    for (const values of ["'topup', 0", "'topup', -1", "'adjustment', 0", "'adjustment', null"]) {
      await expect(
        db.query(`select money_credit($1, $2, ${values}, 'a', 'r')`, [noon, wallet.account_id]),
      ).rejects.toThrow('is not an amount');
    }
    await expect(credit(db, { ...top_up, ref: '' }, noon)).rejects.toThrow('violates check constraint');
  });
});

test('entries are listed newest first, by pages in both directions and by type', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000n });
  const { account_id } = wallet;
  for (let i = 0; i < 5; i++) {
    await hold(db, holdOf(wallet, `r${i}`, 10n), noon);
    await close(db, closeOf(wallet, `r${i}`, i === 4 ? null : 7n), noon);
  }
  const numbers = async (filter: object) => {
    const page = await listEntries(db, { account_id, limit: 4, ...filter });
    return [page.entries.map((entry) => Number(entry.number)), page.has_more];
  };
  expect(await numbers({})).toEqual([[11, 10, 9, 8], true]);
  expect(await numbers({ after: 8n })).toEqual([[7, 6, 5, 4], true]);
  expect(await numbers({ after: 4n })).toEqual([[3, 2, 1], false]);
  expect(await numbers({ after: 1n })).toEqual([[], false]);
  expect(await numbers({ before: 5n })).toEqual([[9, 8, 7, 6], true]);
  expect(await numbers({ before: 8n })).toEqual([[11, 10, 9], false]);
  expect(await numbers({ type: 'topup' })).toEqual([[1], false]);
  const { entries } = await listEntries(db, { account_id, limit: 2 });
  expect(entries).toEqual([
    expect.objectContaining({
      type: 'release',
      ref: 'r4',
      available: 10n,
      held: -10n,
      charged: 0n,
      available_after: 972n,
      held_after: 0n,
    }),
    expect.objectContaining({
      type: 'hold',
      ref: 'r4',
      available: -10n,
      held: 10n,
      charged: 0n,
      available_after: 962n,
      held_after: 10n,
    }),
  ]);
});

describe('the usage report', () => {
  let wallet: Wallet;
  let second: Wallet;
  beforeAll(async () => {
    const { db } = database;
    wallet = await openWallet(db, { credit: 1_000n * million });
    second = { ...wallet, key_id: await openKey(db, wallet.account_id) };
    const calls: [Wallet, string, string, string, bigint, Record<string, string>][] = [
      [wallet, '2026-11-14T23:59:59.999Z', 'm/chat', 'chat', 5n, { input_token: '1200', output_token: '0.5' }],
      [wallet, '2026-11-15T00:00:00Z', 'm/chat', 'chat', 7n, { input_token: '3' }],
      [second, '2026-11-15T10:00:00Z', 'm/video', 'video', 20_000n, { second: '4.125' }],
      [second, '2026-11-15T11:00:00Z', 'm/video', 'video', 0n, {}],
    ];
    for (const [i, [payer, at, model, kind, cost, units]] of calls.entries()) {
      const now = new Date(at);
      await hold(db, { ...holdOf(payer, `u${i}`, 30_000n), model, kind }, now);
      await close(db, { ...closeOf(payer, `u${i}`, cost), units }, now);
    }
    await hold(db, holdOf(wallet, 'released', 9n), noon);
    await close(db, { ...closeOf(wallet, 'released', null), units: { second: '9' } }, noon);
  });

  const usage = (group_by: UsageGroup[], from = '2026-11-01T00:00:00Z', to = '2026-12-01T00:00:00Z') =>
    usageOf(database.db, { account_id: wallet.account_id, from: new Date(from), to: new Date(to), group_by });

  test('adds up what was charged and used, and nothing that was released', async () => {
    expect(await usage([])).toEqual([
      { charges: 4n, cost: 20_012n, units: { input_token: '1203', output_token: '0.5', second: '4.125' } },
    ]);
    expect(await usage(['day'])).toEqual([
      { day: '2026-11-14', charges: 1n, cost: 5n, units: { input_token: '1200', output_token: '0.5' } },
      { day: '2026-11-15', charges: 3n, cost: 20_007n, units: { input_token: '3', second: '4.125' } },
    ]);
    expect(await usage(['modality', 'key', 'modality'])).toEqual([
      {
        modality: 'chat',
        key: wallet.key_id,
        charges: 2n,
        cost: 12n,
        units: { input_token: '1203', output_token: '0.5' },
      },
      { modality: 'video', key: second.key_id, charges: 2n, cost: 20_000n, units: { second: '4.125' } },
    ]);
  });

  test('begins at from and ends before to, and a range without charges has no rows', async () => {
    expect(await usage(['model'], '2026-11-15T00:00:00Z', '2026-11-15T10:00:00Z')).toEqual([
      { model: 'm/chat', charges: 1n, cost: 7n, units: { input_token: '3' } },
    ]);
    expect(await usage([], '2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z')).toEqual([]);
    expect(await usage(['day'], '2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z')).toEqual([]);
  });

  test('accepts no other groups, because their names become part of the statement', async () => {
    const wrong = 'day", (select 1), "' as UsageGroup;
    await expect(usage([wrong])).rejects.toThrow('grouped by known names');
    await expect(usage(['constructor' as UsageGroup])).rejects.toThrow('grouped by known names');
  });
});

/** Rows that no function of ours writes; the tables must refuse them from anybody. */
const impossible: [string, (wallet: Wallet) => string][] = [
  ['more held than there is', (w) => `update balances set held = amount + 1 where account_id = '${w.account_id}'`],
  ['a balance in another currency', (w) => `update balances set currency = 'EUR' where account_id = '${w.account_id}'`],
  ['another currency of an account', (w) => `update accounts set currency = 'EUR' where id = '${w.account_id}'`],
  ['a budget in another account', (w) => budgetElsewhere(w)],
  ['less than nothing held', (w) => `update balances set held = -1 where account_id = '${w.account_id}'`],
  ['more than a billion', (w) => `update balances set amount = ${money_max + 1n} where account_id = '${w.account_id}'`],
  ['a budget spent below zero', (w) => `update budgets set spent = -1 where key_id = '${w.key_id}'`],
  ['a budget held below zero', (w) => `update budgets set held = -1 where key_id = '${w.key_id}'`],
  ['a limit below zero', (w) => `update budgets set limit_month = -1 where key_id = '${w.key_id}'`],
  ['a budget of the middle of a month', (w) => `update budgets set month = '2026-11-02' where key_id = '${w.key_id}'`],
  ['an open hold below zero', (w) => holdRow(w, { amount: -1 })],
  ['an open hold of an unknown kind', (w) => holdRow(w, { kind: 'smell' })],
  [
    'a budget that is shared and spends by itself',
    (w) => `update budgets set shares = key_id, spent = 1 where key_id = '${w.key_id}'`,
  ],
  ['legs that do not add up', (w) => entryRow(w, { available: 5, topup_source: -4 })],
  ['a top-up that takes', (w) => entryRow(w, { available: -5, topup_source: 5 })],
  ['a top-up out of the revenue', (w) => entryRow(w, { available: 5, revenue: -5 })],
  [
    'a top-up that touches two other books',
    (w) => entryRow(w, { available: 5, topup_source: -5, revenue: 1, loss: -1 }),
  ],
  [
    'an adjustment out of the top-ups',
    (w) => entryRow(w, { type: 'adjustment', event: 'adjustment', available: 5, topup_source: -5 }),
  ],
  ['a hold that gives', (w) => entryRow(w, { ...paid(w, 'hold'), held: -5, available: 5 })],
  ['a hold with revenue', (w) => entryRow(w, { ...paid(w, 'hold'), held: 5, available: -6, revenue: 1 })],
  ['a settlement that takes more', (w) => entryRow(w, { ...paid(w, 'settle'), held: 5, available: -5 })],
  [
    'a settlement of a negative cost',
    (w) => entryRow(w, { ...paid(w, 'settle'), held: -5, available: 6, revenue: -1 }),
  ],
  [
    'a loss larger than the cost',
    (w) => entryRow(w, { ...paid(w, 'settle'), held: -5, available: 6, revenue: 1, loss: -2 }),
  ],
  ['a gain called loss', (w) => entryRow(w, { ...paid(w, 'settle'), held: -5, available: 4, loss: 1 })],
  ['a release with a cost', (w) => entryRow(w, { ...paid(w, 'release'), held: -5, available: 4, revenue: 1 })],
  ['a charge without a key', (w) => entryRow(w, { ...paid(w, 'settle'), key_id: null, held: -5, available: 5 })],
  ['a top-up without a reason', (w) => entryRow(w, { available: 5, topup_source: -5, reason: null })],
  [
    'a settlement under another event',
    (w) => entryRow(w, { ...paid(w, 'settle'), event: 'settle', held: -5, available: 5 }),
  ],
  ['an upstream cost that nobody is owed', (w) => entryRow(w, { ...used(w), upstream_owed: 0 })],
  ['an upstream that pays us', (w) => entryRow(w, { ...used(w), upstream_cost: -3, upstream_owed: 3 })],
  ['an upstream cost without a source', (w) => entryRow(w, { ...used(w), upstream_basis: null })],
  ['an upstream cost of nobody', (w) => entryRow(w, { ...used(w), provider: null })],
  ['an upstream cost without the base currency', (w) => entryRow(w, { ...used(w), upstream_base: null })],
  ['an unknown upstream cost with an amount', (w) => entryRow(w, { ...used(w), upstream_basis: 'unknown' })],
  [
    'an unknown upstream cost that nobody counts',
    (w) => entryRow(w, { ...used(w), ...no_amount, upstream_basis: 'unknown' }),
  ],
  ['an upstream cost of a top-up', (w) => entryRow(w, { ...used(w), ...paid_in })],
  ['an entry of an upstream that moves money', (w) => entryRow(w, { ...lost(w), held: 1, available: -1 })],
  ['an entry of an upstream under another event', (w) => entryRow(w, { ...lost(w), event: 'close' })],
  ['an entry that ends below zero', (w) => entryRow(w, { available: 5, topup_source: -5, available_after: -1 })],
  ['a number below one', (w) => entryRow(w, { available: 5, topup_source: -5, number: 0 })],
  ['a month before its time', (w) => entryRow(w, { available: 5, topup_source: -5, month: '2026-10-01' })],
  ['the middle of a month', (w) => entryRow(w, { available: 5, topup_source: -5, month: '2026-11-15' })],
  ['a second entry of one number', (w) => entryRow(w, { available: 5, topup_source: -5, number: 1 })],
  [
    'a second entry of one event',
    (w) => entryRow(w, { available: 5, topup_source: -5, ref: `initial ${w.account_id}` }),
  ],
];

function budgetElsewhere(wallet: Wallet): string {
  const other = `(select account_id from balances where account_id <> '${wallet.account_id}' limit 1)`;
  return `update budgets set account_id = ${other} where key_id = '${wallet.key_id}'`;
}

function paid(wallet: Wallet, type: string): object {
  const event = type === 'hold' ? 'hold' : 'close';
  return { type, event, key_id: wallet.key_id, model: 'm', kind: 'chat', reason: null };
}

/** A settlement with what the upstream charges. */
function used(wallet: Wallet): object {
  const upstream = { provider: 'p', route: 'm#p', upstream_basis: 'rows', upstream_base: 3, base_currency: 'USD' };
  return { ...paid(wallet, 'settle'), held: -5, available: 5, upstream_cost: 3, upstream_owed: -3, ...upstream };
}

const no_amount = { upstream_cost: 0, upstream_owed: 0, upstream_base: null };
const paid_in = { type: 'topup', event: 'topup', available: 5, held: 0, topup_source: -5, key_id: null, reason: 'r' };

/** A try of a route that may have cost something. */
function lost(wallet: Wallet): object {
  const names = { type: 'upstream', event: 'upstream 1', key_id: null, available: 0, held: 0 };
  return { ...used(wallet), ...no_amount, ...names, upstream_basis: 'unknown', upstream_unknown: 1 };
}

function holdRow(wallet: Wallet, wrong: object): string {
  const row = { ...wallet, ref: 'x', amount: 1, exposed: 0, model: 'm', kind: 'chat', created_at: noon, ...wrong };
  return `insert into open_holds select * from jsonb_populate_record(null::open_holds, '${JSON.stringify(row)}')`;
}

function entryRow(wallet: Wallet, wrong: object): string {
  const amounts = {
    available: 0,
    held: 0,
    topup_source: 0,
    revenue: 0,
    loss: 0,
    adjust: 0,
    upstream_cost: 0,
    upstream_owed: 0,
    upstream_unknown: 0,
    available_after: 0,
    held_after: 0,
  };
  const names = { account_id: wallet.account_id, number: 2, type: 'topup', event: 'topup', ref: 'x', currency: 'USD' };
  const row = { ...names, ...amounts, reason: 'r', month: '2026-11-01', created_at: noon, ...wrong };
  return `insert into ledger_entries select * from jsonb_populate_record(null::ledger_entries, '${JSON.stringify(row)}')`;
}

test.each(impossible)('the tables refuse %s', async (_, sql) => {
  const wallet = await openWallet(database.db, { credit: 100n });
  await expect(database.db.query(sql(wallet))).rejects.toMatchObject({
    code: expect.stringMatching(/^235(03|05|14)$/),
  });
});

test('the tables accept the row that the refused ones differ from', async () => {
  const wallet = await openWallet(database.db, { credit: 100n });
  const good = [
    holdRow(wallet, {}),
    entryRow(wallet, { available: 5, topup_source: -5 }),
    entryRow(wallet, { ...paid(wallet, 'settle'), number: 3, held: -5, available: 4, revenue: 3, loss: -2 }),
    entryRow(wallet, { ...paid(wallet, 'hold'), number: 4, held: 5, available: -5 }),
    entryRow(wallet, { ...used(wallet), number: 5, ref: 'y' }),
    entryRow(wallet, { ...lost(wallet), number: 6, ref: 'z' }),
  ];
  const undone = database.db.tx(async (tx) => {
    for (const sql of good) await tx.query(sql);
    throw new Error('all accepted');
  });
  await expect(undone).rejects.toThrow('all accepted');
});
