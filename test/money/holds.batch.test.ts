import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { Db } from '../../src/db/database.ts';
import {
  close,
  commit,
  hold,
  makeHoldBatcher,
  type CloseAnswer,
  type CloseRequest,
  type HoldOrLeased,
  type HoldRequest,
  type CommitAnswer,
  type CommitRequest,
} from '../../src/money/holds.ts';
import { credit } from '../../src/money/ledger.ts';
import type { UpstreamUse } from '../../src/money/upstream.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, noon, openKey, openWallet, rotated, standingOf, type Wallet } from './setup.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => expectExactBooks(database.db));
afterAll(() => database.drop());

type Member =
  | { verb: 'hold'; request: HoldRequest }
  | { verb: 'close'; request: CloseRequest }
  | { verb: 'commit'; request: CommitRequest };
type Answer = HoldOrLeased | CloseAnswer | CommitAnswer;

/** A member before its wallet is known. */
type Plan = {
  wallet: number;
  ref: string;
  verb: Member['verb'];
  amount: bigint;
  reserved: bigint;
  release: boolean;
  beyond: boolean;
};

const plans = fc.record({
  wallet: fc.nat(3),
  ref: fc.constantFrom('a', 'null', 'c d', '{e}', 'f,"g"', '\\h'), // an id, and what an array would read as something else
  verb: fc.constantFrom('hold', 'close', 'commit'),
  amount: fc.bigInt({ min: 0n, max: 60n }),
  reserved: fc.bigInt({ min: 0n, max: 60n }),
  release: fc.boolean(),
  beyond: fc.boolean(),
}) satisfies fc.Arbitrary<Plan>;

/** Batches one after the other; in one batch an account and ref stands once, as the batcher sees to. */
const rounds = fc.array(
  fc.record({
    at: fc.constantFrom(
      '2026-11-15T12:00:00Z',
      '2026-11-30T23:59:59.999Z',
      '2026-12-01T00:00:00Z',
      '2027-02-28T01:00:00Z',
    ),
    members: fc.uniqueArray(plans, {
      minLength: 2,
      maxLength: 14,
      selector: (plan) => `${plan.wallet >> 1} ${plan.ref}`,
    }),
  }),
  { minLength: 1, maxLength: 5 },
);

/** Wallets 0 and 1 are two keys of one account that share a budget; 2 and 3 have their own, in PLN. */
async function openWallets(db: Db): Promise<Wallet[]> {
  const usd = await openWallet(db, { credit: 150n, limit: 70n });
  const pln = await openWallet(db, { credit: 100n, currency: 'PLN' });
  return [usd, await rotated(db, usd), pln, { ...pln, key_id: await openKey(db, pln.account_id, 40n) }];
}

/** Names with all that means something in JSON, in an array or to a driver. */
const whose = { provider: 'p "\\,{}()\n\t\u007f\u2028 NULL ć🙂', route: "m#'p'" };
const models = ['test/model', 'NULL', 'null', '"\\,{}()\n ć🙂', ''];
const uses: (UpstreamUse | undefined)[] = [
  undefined,
  { ...whose, basis: 'unknown' },
  { ...whose, basis: 'told', cost: 999_999_999_999_999n, base: 7n, currency: 'EUR' },
];

function memberOf(plan: Plan, wallets: Wallet[]): Member {
  const wallet = wallets[plan.wallet];
  if (!wallet) throw new Error('there is no such wallet');
  const named = { model: models[Number(plan.amount % 5n)] ?? '' };
  if (plan.verb === 'hold') return { verb: 'hold', request: { ...holdOf(wallet, plan.ref, plan.amount), ...named } };
  const closed = closeOf(wallet, plan.ref, plan.release ? null : plan.amount, plan.beyond);
  const upstream = uses[Number(plan.amount % 3n)];
  const fallback = upstream && plan.amount % 4n > 1n ? 'm' : undefined; // whose route that is
  const request = { ...closed, upstream, model: fallback };
  const end = plan.release ? request : { ...request, units: { second: String(plan.amount), [whose.provider]: '1' } };
  if (plan.verb === 'close') return { verb: 'close', request: end };
  return { verb: 'commit', request: { hold: { ...holdOf(wallet, plan.ref, plan.reserved), ...named }, end } };
}

async function oneByOne(db: Db, members: Member[], now: Date): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const { verb, request } of members) {
    if (verb === 'hold') answers.push(await hold(db, request, now));
    else answers.push(await (verb === 'close' ? close(db, request, now) : commit(db, request, now)));
  }
  return answers;
}

async function together(db: Db, members: Member[], now: Date): Promise<Answer[]> {
  const batcher = makeHoldBatcher(db, () => now);
  return Promise.all(
    members.map(({ verb, request }): Promise<Answer> => {
      if (verb === 'hold') return batcher.hold(request);
      return verb === 'close' ? batcher.close(request) : batcher.commit(request);
    }),
  );
}

/** Everything that money wrote for these wallets, with numbers in place of ids. */
async function stateOf(db: Db, wallets: Wallet[]): Promise<string> {
  const account_ids = [...new Set(wallets.map((wallet) => wallet.account_id))];
  const key_ids = wallets.map((wallet) => wallet.key_id);
  const tables = [
    'select account_id, amount, held, entries, currency from balances where account_id = any ($1) order by 1',
    'select key_id, spent, held, month::text from budgets where account_id = any ($1) order by 1',
    'select * from open_holds where account_id = any ($1) order by account_id, ref',
    `select * from ledger_entries where account_id = any ($1) and type <> 'topup' order by account_id, number`,
  ];
  const rows = await Promise.all(tables.map((sql) => db.query(sql, [account_ids])));
  let text = JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
  for (const [i, id] of [...account_ids, ...key_ids].entries()) text = text.replaceAll(id, `#${i}`);
  return text;
}

test('a batch of holds has the same effect as the same calls one after the other', async () => {
  const { db } = database;
  await fc.assert(
    fc.asyncProperty(rounds, async (batches) => {
      const [apart, joined] = [await openWallets(db), await openWallets(db)];
      for (const { at, members } of batches) {
        const now = new Date(at);
        const expected = await oneByOne(
          db,
          members.map((plan) => memberOf(plan, apart)),
          now,
        );
        const got = await together(
          db,
          members.map((plan) => memberOf(plan, joined)),
          now,
        );
        expect(got).toEqual(expected);
      }
      expect(await stateOf(db, joined)).toBe(await stateOf(db, apart));
    }),
    { numRuns: 60 },
  );
});

test('a refused first member of a batch does not shift the rows of the others', async () => {
  const { db } = database;
  const poor = await openWallet(db);
  const rich = await openWallet(db, { credit: 100n });
  const answers = await together(
    db,
    [
      { verb: 'hold', request: holdOf(poor, 'a', 1n) },
      { verb: 'hold', request: holdOf(rich, 'a', 60n) },
      { verb: 'close', request: closeOf(poor, 'x', 1n) },
      { verb: 'hold', request: holdOf(rich, 'b', 40n) },
    ],
    noon,
  );
  expect(answers.map((answer) => answer.outcome)).toEqual(['insufficient', 'held', 'closed', 'held']);
  expect(await standingOf(db, rich)).toMatchObject({ held: 100n });
});

test('a batch is one statement whatever its names mean to a driver', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 100n });
  const query = vi.spyOn(db, 'query');
  const members = models.map((model, i): Member => {
    const held = { ...holdOf(wallet, `r${i}`, 10n), model };
    const upstream: UpstreamUse = { ...whose, basis: 'told', cost: 1n, base: 1n, currency: 'USD' };
    const end = { ...closeOf(wallet, `r${i}`, 2n), units: { [whose.provider]: '1' }, upstream };
    return { verb: 'commit', request: { hold: held, end } };
  });
  expect((await together(db, members, noon)).map(({ outcome }) => outcome)).toEqual(models.map(() => 'settled'));
  expect(query).toHaveBeenCalledTimes(1);
  query.mockRestore();
});

test('a member that breaks a rule of the database fails alone', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 100n });
  const stranger = await openWallet(db, { credit: 100n });
  const batcher = makeHoldBatcher(db, () => noon);
  const commitOf = async (held: HoldRequest, cost: bigint) =>
    batcher.commit({ hold: held, end: { account_id: held.account_id, ref: held.ref, cost } });
  const outcomes = await Promise.allSettled([
    batcher.hold(holdOf(wallet, 'a', 10n)),
    batcher.hold(holdOf({ ...wallet, key_id: stranger.key_id }, 'b', 10n)),
    batcher.hold(holdOf({ ...wallet, account_id: 'acct_none' }, 'c', 10n)),
    batcher.hold({ ...holdOf(wallet, 'd', 10n), kind: 'smell' }),
    batcher.hold({ ...holdOf(wallet, 'e', 10n), model: 'NUL \0' }),
    batcher.hold(holdOf(wallet, 'f', -1n)),
    batcher.hold(holdOf(wallet, 'g', 2n ** 80n)),
    commitOf(holdOf({ ...wallet, key_id: stranger.key_id }, 'i', 10n), 1n),
    commitOf({ ...holdOf(wallet, 'j', 10n), model: 'NUL \0' }, 1n),
    commitOf(holdOf(wallet, 'k', -1n), 1n),
    commitOf(holdOf(wallet, 'l', 2n ** 80n), 1n),
    batcher.close(closeOf(wallet, 'none', 1n)),
    batcher.hold(holdOf(wallet, 'h', 10n)),
  ]);
  expect(outcomes.map((each) => (each.status === 'fulfilled' ? each.value.outcome : 'error'))).toEqual([
    'held',
    'error',
    'error',
    'error',
    'error',
    'error',
    'insufficient',
    'error',
    'error',
    'error',
    'settled',
    'closed',
    'held',
  ]);
  expect(await standingOf(db, wallet)).toMatchObject({ amount: 99n, held: 20n, spent: 1n });
});

test('members of one account and ref wait for each other: a hold, its end and its repetitions', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 100n });
  const batcher = makeHoldBatcher(db, () => noon);
  const answers = await Promise.all([
    batcher.hold(holdOf(wallet, 'a', 10n)),
    batcher.hold(holdOf(wallet, 'a', 10n)),
    batcher.close(closeOf(wallet, 'a', 7n)),
    batcher.close(closeOf(wallet, 'a', null)),
    batcher.hold(holdOf(wallet, 'b', 10n)),
  ]);
  expect(answers.map((answer) => answer.outcome)).toEqual(['held', 'exists', 'settled', 'closed', 'held']);
  expect(await standingOf(db, wallet)).toMatchObject({ amount: 93n, held: 10n });
});

test('each of many concurrent callers gets its own result, and the sums are those of the results', async () => {
  const { db } = database;
  const wallets = await Promise.all(
    Array.from({ length: 20 }, () => openWallet(db, { credit: 2_000n, limit: 1_500n })),
  );
  const batchers = [makeHoldBatcher(db, () => noon, { shards: 2 }), makeHoldBatcher(db, () => noon, { batch_max: 7 })];
  const charged = wallets.map(() => 0n);
  let refused = 0;
  const caller = async (c: number) => {
    const batcher = batchers[c % 2];
    if (!batcher) throw new Error('there are two');
    for (let round = 0; round < 12; round++) {
      const w = (c * 7 + round) % wallets.length;
      const wallet = wallets[w];
      if (!wallet) throw new Error('there are twenty');
      const ref = `${c}-${round}`;
      const held = await batcher.hold(holdOf(wallet, ref, 100n));
      if (held.outcome !== 'held') {
        refused += 1;
        continue;
      }
      const answer = await batcher.close(
        closeOf(wallet, ref, (c + round) % 5 === 0 ? null : BigInt(c % 130), c % 3 === 0),
      );
      expect(answer.outcome).not.toBe('closed');
      charged[w] = (charged[w] ?? 0n) + answer.charged;
    }
  };
  await Promise.all(Array.from({ length: 128 }, (_, c) => caller(c)));
  expect(refused).toBeGreaterThan(0);
  for (const [w, wallet] of wallets.entries()) {
    expect(await standingOf(db, wallet)).toMatchObject({
      amount: 2_000n - (charged[w] ?? 0n),
      held: 0n,
      spent: charged[w],
    });
  }
});

test('the first concurrent calls of a new account and key are exact', async () => {
  const { db } = database;
  for (let round = 0; round < 5; round++) {
    const wallet = await openWallet(db);
    const batcher = makeHoldBatcher(db, () => noon);
    const first = { account_id: wallet.account_id, type: 'topup', amount: 10n, ref: 'first', reason: 'x' } as const;
    const calls = Array.from({ length: 40 }, (_, i) =>
      i % 2 === 0 ? batcher.hold(holdOf(wallet, `b${i}`, 3n)) : hold(db, holdOf(wallet, `s${i}`, 3n), noon),
    );
    const [credited, ...answers] = await Promise.all([credit(db, first, noon), ...calls]);
    expect(credited.outcome).toBe('booked');
    expect(answers.filter((answer) => answer.outcome === 'held').length).toBeLessThanOrEqual(3);
    const { held } = await standingOf(db, wallet);
    expect(held).toBe(3n * BigInt(answers.filter((answer) => answer.outcome === 'held').length));
  }
});

test('every waiting caller gets an error when the database is gone, not only the first batch', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 100n });
  let calls = 0;
  const gone: Db = {
    ...db,
    query: () => {
      calls += 1;
      return Promise.reject(new Error('connection refused'));
    },
  };
  const batcher = makeHoldBatcher(gone, () => noon, { batch_max: 10 });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 1_000 }, (_, i) => batcher.hold(holdOf(wallet, `x${i}`, 1n))),
  );
  expect(outcomes.every((each) => each.status === 'rejected')).toBe(true);
  expect(calls).toBe(3);
});

test('a budget that somebody changes by hand at the same moment loses nothing', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 100n });
  const batcher = makeHoldBatcher(db, () => noon);
  const client = await db.pool.connect();
  await client.query('begin');
  await client.query('update budgets set limit_month = 90 where key_id = $1', [wallet.key_id]);
  const held = Promise.all(['a', 'b'].map((ref) => batcher.hold(holdOf(wallet, ref, 10n))));
  const waits =
    'select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0';
  while ((await db.query(waits)).length === 0);
  await client.query('commit');
  client.release();
  expect((await held).map((answer) => answer.outcome)).toEqual(['held', 'held']);
  expect(await standingOf(db, wallet)).toMatchObject({ held: 20n, key_held: 20n });
  expect(await hold(db, holdOf(wallet, 'c', 71n), noon)).toMatchObject({ outcome: 'over_limit', remaining: 70n });
});
