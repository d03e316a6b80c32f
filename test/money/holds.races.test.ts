import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Db } from '../../src/db/database.ts';
import { close, hold, makeHoldBatcher, type HoldOrLeased } from '../../src/money/holds.ts';
import { credit } from '../../src/money/ledger.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, noon, openKey, openWallet, standingOf, type Wallet } from './setup.ts';
import { depth } from '../helpers/depth.ts';

const connections = 64;

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase({ connections_max: connections });
});
afterEach(() => expectExactBooks(database.db));
afterAll(() => database.drop());

const room = 25;

/** Calls that hold 7 each, every way there is, all at once: half plain, half through two batchers. */
function holdManyTimes(db: Db, wallet: Wallet, times: number): Promise<HoldOrLeased>[] {
  const batchers = [makeHoldBatcher(db, () => noon), makeHoldBatcher(db, () => noon, { batch_max: 5, shards: 2 })];
  return Array.from({ length: times }, (_, i) => {
    const request = holdOf(wallet, `h${i}`, 7n);
    return i % 2 === 0 ? hold(db, request, noon) : (batchers[(i >> 1) % 2]?.hold(request) ?? Promise.reject());
  });
}

function count(answers: HoldOrLeased[], outcome: HoldOrLeased['outcome']): number {
  return answers.filter((answer) => answer.outcome === outcome).length;
}

test('a balance for exactly K holds accepts exactly K of 20 × K holds at once over 64 connections', async () => {
  const { db } = database;
  for (let round = 0; round < 3; round++) {
    const wallet = await openWallet(db, { credit: 7n * BigInt(room) + 6n });
    const answers = await Promise.all(holdManyTimes(db, wallet, 20 * room));
    expect(count(answers, 'held')).toBe(room);
    expect(count(answers, 'insufficient')).toBe(19 * room);
    expect(await standingOf(db, wallet)).toMatchObject({ held: 7n * BigInt(room) });
  }
});

test('a monthly limit for exactly K holds accepts exactly K of 20 × K holds at once, beside another key of the account', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000_000n, limit: 7n * BigInt(room) + 6n });
  const beside = { ...wallet, key_id: await openKey(db, wallet.account_id) };
  const others = Array.from({ length: 50 }, (_, i) => hold(db, holdOf(beside, `other${i}`, 7n), noon));
  const answers = await Promise.all(holdManyTimes(db, wallet, 20 * room));
  expect(count(answers, 'held')).toBe(room);
  expect(count(answers, 'over_limit')).toBe(19 * room);
  expect(count(await Promise.all(others), 'held')).toBe(50);
  expect(await standingOf(db, wallet)).toMatchObject({ key_held: 7n * BigInt(room) });
});

test('each of 100 holds has one outcome when settle and release race ten ways', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 100n * 20n });
  const batcher = makeHoldBatcher(db, () => noon);
  const refs = Array.from({ length: 100 }, (_, i) => `r${i}`);
  await Promise.all(refs.map((ref) => hold(db, holdOf(wallet, ref, 20n), noon)));
  const ways = Array.from({ length: 10 }, (_, way) => way);
  const closing = ways.flatMap((way) =>
    refs.map(async (ref) => {
      const request = closeOf(wallet, ref, way % 2 === 0 ? BigInt(way) : null);
      const answer = way < 5 ? await close(db, request, noon) : await batcher.close(request);
      return { ref, ...answer };
    }),
  );
  const answers = await Promise.all(closing);
  let charged = 0n;
  for (const ref of refs) {
    const own = answers.filter((answer) => answer.ref === ref);
    const winners = own.filter((answer) => answer.outcome !== 'closed');
    expect(winners).toHaveLength(1);
    expect(own.map((answer) => answer.charged)).toEqual(own.map(() => winners[0]?.charged));
    charged += winners[0]?.charged ?? 0n;
  }
  expect(await standingOf(db, wallet)).toMatchObject({ amount: 2_000n - charged, held: 0n, spent: charged });
});

test('a chat call whose settlement races with the sweep is charged once, whichever comes first', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 100n * 20n, limit: 2_000n });
  const batcher = makeHoldBatcher(db, () => noon);
  const refs = Array.from({ length: 100 }, (_, i) => `s${i}`);
  await Promise.all(refs.map((ref) => hold(db, holdOf(wallet, ref, 20n), noon)));
  const closing = Array.from({ length: 8 }, (_, way) => way).flatMap((way) =>
    refs.map(async (ref, i) => {
      const request = closeOf(wallet, ref, (way + i) % 2 === 0 ? 7n : null, true);
      const answer = way < 4 ? await close(db, request, noon) : await batcher.close(request);
      return { ref, ...answer };
    }),
  );
  const answers = await Promise.all(closing);
  for (const ref of refs) {
    const winners = answers.filter((answer) => answer.ref === ref && answer.outcome !== 'closed');
    expect(winners.filter(({ outcome }) => outcome === 'settled')).toMatchObject([{ charged: 7n }]);
    expect(winners.length).toBeLessThanOrEqual(2);
  }
  expect(await standingOf(db, wallet)).toMatchObject({ amount: 1_300n, held: 0n, spent: 700n, key_held: 0n });
});

test('a hold or a top-up that is requested twenty times at once happens once', async () => {
  const { db } = database;
  const wallet = await openWallet(db);
  const top_up = {
    account_id: wallet.account_id,
    type: 'topup',
    amount: 50n,
    ref: 'invoice:7',
    reason: 'paid',
  } as const;
  const twenty = Array.from({ length: 20 }, (_, i) => i);
  const booked = await Promise.all(twenty.map(() => credit(db, top_up, noon)));
  expect(booked.filter((answer) => answer.outcome === 'booked')).toHaveLength(1);
  const batcher = makeHoldBatcher(db, () => noon);
  const holds = await Promise.all(
    twenty.map((i) =>
      i % 2 === 0 ? hold(db, holdOf(wallet, 'same', 50n), noon) : batcher.hold(holdOf(wallet, 'same', 50n)),
    ),
  );
  expect(count(holds, 'held')).toBe(1);
  expect(count(holds, 'exists')).toBe(19);
  expect(await standingOf(db, wallet)).toMatchObject({ amount: 50n, held: 50n });
});

const everything_ms = depth(1_500, 10_000);

test('batches, single calls, credits and limit changes over shared accounts never deadlock', async () => {
  const { db } = database;
  const wallets = await Promise.all(
    Array.from({ length: 12 }, () => openWallet(db, { credit: 5_000n, limit: 4_000n })),
  );
  const nth = (i: number) => wallets[i % wallets.length] ?? Promise.reject(new Error('there are twelve'));
  const deadline = performance.now() + everything_ms;
  let pairs = 0;
  const busy = () => performance.now() < deadline || pairs < 200; // on a slow machine it takes longer
  const fails = (error: Error) => expect.fail(`${error.message} ${'detail' in error ? String(error.detail) : ''}`);
  const once: Db = { ...db, query: (text, values) => db.query<never>(text, values).catch(fails) };
  let n = 0;

  const batched = async (reversed: boolean) => {
    const batcher = makeHoldBatcher(once, () => noon);
    while (busy()) {
      const chosen = Array.from({ length: 40 }, (_, i) => (reversed ? 40 - i : i));
      await Promise.all(
        chosen.map(async (i) => {
          const wallet = await nth(i);
          const ref = `b${n++}`;
          if ((await batcher.hold(holdOf(wallet, ref, 9n))).outcome !== 'held') return;
          await batcher.close(closeOf(wallet, ref, i % 3 === 0 ? null : 1n, true));
          pairs += 1;
        }),
      );
    }
  };
  const single = async (from: number) => {
    for (let i = from; busy(); i++) {
      const wallet = await nth(i);
      const ref = `s${n++}`;
      await hold(once, holdOf(wallet, ref, 9n), noon);
      await close(once, closeOf(wallet, ref, 2n, true), noon);
    }
  };
  const office = async () => {
    for (let i = 0; busy(); i++) {
      const { account_id, key_id } = await nth(i * 5);
      const movement = { account_id, type: 'topup', amount: 3n, ref: `t${i}`, reason: 'x' } as const;
      await credit(once, movement, noon);
      await once.query('select money_limit($1, $2)', [key_id, i % 2 === 0 ? 4_000n : null]);
    }
  };
  await Promise.all([batched(false), batched(true), single(0), single(3), single(7), single(11), office()]);
  expect(pairs).toBeGreaterThan(100);
  for (const wallet of wallets) expect(await standingOf(db, wallet)).toMatchObject({ held: 0n, key_held: 0n });
});
