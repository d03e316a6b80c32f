import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Db, Queryable } from '../../src/db/database.ts';
import {
  close,
  hold,
  makeHoldBatcher,
  type CloseAnswer,
  type CloseRequest,
  type HoldOrLeased,
  type HoldRequest,
} from '../../src/money/holds.ts';
import { budgetsOf, nextMonth } from '../../src/money/ledger.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, openWallet, standingOf, type Wallet } from './setup.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => expectExactBooks(database.db));
afterAll(() => database.drop());

/** Both ways to the same money: the plain call, and a batch with somebody else's members around it. */
type Way = {
  hold(db: Db, request: HoldRequest, now: Date): Promise<HoldOrLeased>;
  close(db: Db, request: CloseRequest, now: Date): Promise<CloseAnswer>;
};
const ways: [string, Way][] = [
  ['by the plain call', { hold, close }],
  [
    'in a batch',
    {
      hold: async (db, request, now) => {
        const batcher = makeHoldBatcher(db, () => now);
        const [answer] = await Promise.all([batcher.hold(request), batcher.close(closeOf(bystander, 'none', null))]);
        return answer;
      },
      close: async (db, request, now) => {
        const batcher = makeHoldBatcher(db, () => now);
        const [answer] = await Promise.all([batcher.close(request), batcher.close(closeOf(bystander, 'none', null))]);
        return answer;
      },
    },
  ],
];
let bystander: Wallet;
beforeAll(async () => {
  bystander = await openWallet(database.db);
});

const time = (text: string) => new Date(text);
const last = time('2026-11-30T23:59:59.999Z');
const first = time('2026-12-01T00:00:00.000Z');

describe.each(ways)('the month of a charge, %s,', (_, way) => {
  test('is that of its settlement, while its hold counts wherever it is open', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000n, limit: 100n, now: last });
    expect(await way.hold(db, holdOf(wallet, 'old', 60n), last)).toMatchObject({ outcome: 'held', remaining: 40n });
    await way.hold(db, holdOf(wallet, 'early', 40n), last);
    await way.close(db, closeOf(wallet, 'early', 40n), last);
    expect(await way.hold(db, holdOf(wallet, 'full', 1n), last)).toMatchObject({
      outcome: 'over_limit',
      remaining: 0n,
    });

    // One millisecond later November is forgotten, but the open hold is not.
    expect(await way.hold(db, holdOf(wallet, 'too much', 41n), first)).toMatchObject({
      outcome: 'over_limit',
      remaining: 40n,
    });
    expect(await way.hold(db, holdOf(wallet, 'new', 40n), first)).toMatchObject({ outcome: 'held', remaining: 0n });
    await way.close(db, closeOf(wallet, 'old', 55n), first);
    expect(await standingOf(db, wallet)).toMatchObject({ spent: 55n, key_held: 40n, month: '2026-12' });
    expect(await monthsOf(db, wallet)).toEqual([
      ['early', '2026-11', 40n],
      ['old', '2026-12', 55n],
    ]);
  });

  test('is none for a hold that is released after the end of the month', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 100n, limit: 100n, now: last });
    await way.hold(db, holdOf(wallet, 'a', 100n), last);
    await way.close(db, closeOf(wallet, 'a', null), first);
    expect(await standingOf(db, wallet)).toMatchObject({ amount: 100n, spent: 0n, key_held: 0n, month: '2026-12' });
  });

  test('never goes back: a node whose clock is two hours behind counts in the new month', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000n, limit: 100n, now: last });
    await way.hold(db, holdOf(wallet, 'a', 90n), last);
    await way.close(db, closeOf(wallet, 'a', 90n), time('2026-12-01T00:30:00Z'));
    const behind = time('2026-11-30T22:30:00Z');
    expect(await way.hold(db, holdOf(wallet, 'b', 11n), behind)).toMatchObject({
      outcome: 'over_limit',
      remaining: 10n,
    });
    await way.hold(db, holdOf(wallet, 'c', 10n), behind);
    await way.close(db, closeOf(wallet, 'c', 10n), behind);
    expect(await standingOf(db, wallet)).toMatchObject({ spent: 100n, month: '2026-12' });
    expect(await budgetsOf(db, wallet.account_id, behind, [wallet.key_id])).toMatchObject([{ spent: 100n }]);
    expect(await monthsOf(db, wallet)).toEqual([
      ['a', '2026-12', 90n],
      ['c', '2026-12', 10n],
    ]);
  });

  test('turns by the calendar after the 28th, 29th, 30th and 31st, and with the year', async () => {
    const { db } = database;
    for (const [before, after] of [
      ['2026-02-28T23:59:59.999Z', '2026-03-01T00:00:00Z'],
      ['2028-02-29T23:59:59.999Z', '2028-03-01T00:00:00Z'],
      ['2026-01-31T23:59:59.999Z', '2026-02-01T00:00:00Z'],
      ['2026-04-30T23:59:59.999Z', '2026-05-01T00:00:00Z'],
      ['2026-12-31T23:59:59.999Z', '2027-01-01T00:00:00Z'],
    ] as const) {
      const wallet = await openWallet(db, { credit: 100n, limit: 10n, now: time(before) });
      await way.hold(db, holdOf(wallet, 'a', 10n), time(before));
      await way.close(db, closeOf(wallet, 'a', 10n), time(before));
      expect((await way.hold(db, holdOf(wallet, 'b', 1n), time(before))).outcome, before).toBe('over_limit');
      expect(await budgetsOf(db, wallet.account_id, time(after), [wallet.key_id])).toMatchObject([{ spent: 0n }]);
      expect(await way.hold(db, holdOf(wallet, 'b', 10n), time(after)), after).toMatchObject({
        outcome: 'held',
        remaining: 0n,
      });
      expect(nextMonth(time(before)).toISOString()).toBe(time(after).toISOString());
    }
  });
});

test('months are those of UTC, whatever the time zone of the connection', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 100n, limit: 10n, now: last });
  for (const [zone, now, ref] of [
    ['Pacific/Kiritimati', last, 'a'], // there it is December already
    ['Pacific/Pago_Pago', first, 'b'], // there it is still November
  ] as const) {
    await db.tx(async (tx) => {
      await tx.query(`set local timezone = '${zone}'`);
      await hold(tx, holdOf(wallet, ref, 10n), now);
      await close(tx, closeOf(wallet, ref, 10n), now);
    });
  }
  expect(await monthsOf(db, wallet)).toEqual([
    ['a', '2026-11', 10n],
    ['b', '2026-12', 10n],
  ]);
});

/** Each charge of the wallet: ref, month, cost. */
async function monthsOf(db: Queryable, wallet: Wallet): Promise<[string, string, bigint][]> {
  const rows = await db.query<{ ref: string; month: string; cost: bigint }>(
    `select ref, to_char(month, 'YYYY-MM') as month, revenue + loss as cost from ledger_entries
      where account_id = $1 and type = 'settle' order by number`,
    [wallet.account_id],
  );
  return rows.map(({ ref, month, cost }) => [ref, month, cost]);
}
