import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { Db } from '../../src/db/database.ts';
import {
  close,
  databaseHolds,
  hold,
  makeHoldBatcher,
  type CloseRequest,
  type HoldAnswer,
  type HoldRequest,
  type Holds,
} from '../../src/money/holds.ts';
import { credit, setLimit } from '../../src/money/ledger.ts';
import type { LeaseTime } from '../../src/leases/liveness.ts';
import { reserveInMemory } from '../../src/money/reservations.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { openListener, type Listener } from '../../src/db/notify.ts';
import { leases_channel, whileLeased } from '../../src/leases/while-leased.ts';
import { testLiveness } from '../helpers/liveness.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, noon, openKey, openWallet, standingOf, type Wallet } from './setup.ts';

let database: TestDatabase;
let listener: Listener;
beforeAll(async () => {
  database = await testDatabase({ connections_max: 20 });
  listener = openListener(database.db);
  await listener.subscribe(leases_channel, {
    onPayload: (payload) => {
      const [account_id = '', ...resource] = payload.split(' ');
      for (const holds of opened) holds.returnLeases(account_id, resource.join(' ')).catch(() => undefined); // of a database that is away
    },
  });
});
const opened: Holds[] = [];
afterEach(async () => {
  for (const holds of opened.splice(0)) holds.stop();
  await expectExactBooks(database.db);
});
afterAll(async () => {
  await listener.close();
  await database.drop();
});

/** Settles as a call does, which knows what was held for it. */
type CallHolds = Omit<Holds, 'settle'> & { settle(end: CloseRequest): ReturnType<Holds['settle']> };

/** Reservations over a database whose calls are counted. */
async function openHolds(
  db: Db = database.db,
  time?: () => LeaseTime,
): Promise<{ holds: CallHolds; calls: () => number }> {
  let calls = 0;
  const counted: Db = {
    ...db,
    query: (text, values) => {
      calls += 1;
      return db.query(text, values);
    },
  };
  const node_id = randomUUID();
  const liveness = testLiveness(database.db, node_id);
  await liveness.ensure();
  const batcher = makeHoldBatcher(counted, () => noon, { node_id });
  const all = reserveInMemory(databaseHolds(batcher), time ?? (() => liveness.now()));
  opened.push(all);
  const requests = new Map<string, HoldRequest>();
  const holds: CallHolds = {
    hold: (request) => {
      requests.set(request.ref, request);
      return all.hold(request);
    },
    settle: (end) => all.settle(end, requests.get(end.ref)),
    funds: (account_id, whose) => all.funds(account_id, whose),
    readFunds: (whose) => all.readFunds(whose),
    refusedBy: (whose) => all.refusedBy(whose),
    flush: (account_id) => all.flush(account_id),
    lease: (request) => all.lease(request),
    confirm: (request) => all.confirm(request),
    returnLeases: (account_id, resource) => all.returnLeases(account_id, resource),
    invalidate: (account_id) => all.invalidate(account_id),
    oldest_ms: () => all.oldest_ms(),
    stop: () => all.stop(),
  };
  return { holds, calls: () => calls };
}

/** Time stands still: however slow this machine is, no reservation is so old that it is written meanwhile. */
const standingStill = (): LeaseTime => ({ elapsed_ms: 0, wall_ms: 0, session: 1 });

/** A database that refuses connections while `is_away`. */
function openFlaky(db: Db): { db: Db; is_away: boolean } {
  const refused = Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' });
  const query: Db['query'] = (text, values) => (flaky.is_away ? Promise.reject(refused) : db.query(text, values));
  const flaky = { db: { ...db, query }, is_away: false };
  return flaky;
}

/** So that the account and its key are leased: who calls twice gets a lease. */
async function callTwice(holds: CallHolds, wallet: Wallet, ref = 'first'): Promise<void> {
  for (const each of [ref, `${ref} again`]) {
    expect((await holds.hold(holdOf(wallet, each, 1n))).outcome).toBe('held');
    await holds.settle(closeOf(wallet, each, 0n));
  }
}

async function entriesOf(wallet: Wallet, ref: string): Promise<unknown[]> {
  return database.db.query(
    `select type, available, held, revenue, loss, held_after from ledger_entries
      where account_id = $1 and ref = $2 order by number`,
    [wallet.account_id, ref],
  );
}

function randomFrom(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

const tick = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test('a hold of a cached account is reserved in memory without a query, and its end books both', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n, limit: 900n });
  const { holds, calls } = await openHolds(database.db, standingStill);
  await callTwice(holds, wallet);
  const before = calls();
  const answer = await holds.hold(holdOf(wallet, 'a', 200n));
  expect(answer).toEqual({ outcome: 'held', available: 800n, remaining: 700n });
  expect(calls()).toBe(before);
  expect(await standingOf(database.db, wallet)).toMatchObject({ held: 0n });
  expect(await holds.settle(closeOf(wallet, 'a', 120n))).toEqual({
    outcome: 'settled',
    state: 'settled',
    charged: 120n,
    available: 880n,
    remaining: 780n,
    upstream_cost: null,
  });
  expect(calls()).toBe(before + 1);
  expect(await entriesOf(wallet, 'a')).toEqual([
    { type: 'hold', available: -200n, held: 200n, revenue: 0n, loss: 0n, held_after: 200n },
    { type: 'settle', available: 80n, held: -200n, revenue: 120n, loss: 0n, held_after: 0n },
  ]);
  expect(await standingOf(database.db, wallet)).toMatchObject({ amount: 880n, held: 0n, spent: 120n, key_held: 0n });
});

test('a reservation that costs nothing is booked as held and released, and its money is available again', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const { holds } = await openHolds();
  await callTwice(holds, wallet);
  await holds.hold(holdOf(wallet, 'a', 500n));
  expect(await holds.settle(closeOf(wallet, 'a', null))).toMatchObject({ outcome: 'released', available: 1_000n });
  expect((await entriesOf(wallet, 'a')).map((entry) => Object(entry).type)).toEqual(['hold', 'release']);
  expect((await holds.hold(holdOf(wallet, 'b', 500n))).available).toBe(500n);
});

test('the database decides the first hold of an account or a key', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const second = { ...wallet, key_id: await openKey(database.db, wallet.account_id, 50n) };
  const { holds, calls } = await openHolds(database.db, standingStill);
  await callTwice(holds, wallet);
  await holds.hold(holdOf(wallet, 'a', 100n));
  const before = calls();
  expect(await holds.hold(holdOf(second, 'b', 51n))).toEqual({
    outcome: 'over_limit',
    available: 900n, // without what is reserved in memory
    remaining: 50n,
  });
  expect(calls()).toBe(before + 1);
});

test('the hold of a call that lasts is written after 250 ms and settled from there', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const { holds } = await openHolds();
  await callTwice(holds, wallet);
  await holds.hold(holdOf(wallet, 'a', 100n));
  await expect.poll(() => standingOf(database.db, wallet)).toMatchObject({ held: 100n });
  expect(await holds.settle(closeOf(wallet, 'a', 130n, true))).toMatchObject({ outcome: 'settled', charged: 130n });
  expect(await standingOf(database.db, wallet)).toMatchObject({ amount: 870n, held: 0n });
});

test('a reader waits until all reservations are written, also those that are being settled', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const { holds } = await openHolds();
  await callTwice(holds, wallet);
  await holds.hold(holdOf(wallet, 'a', 100n));
  await holds.hold(holdOf(wallet, 'b', 100n));
  const ended = holds.settle(closeOf(wallet, 'b', 40n));
  await holds.flush(wallet.account_id);
  expect(await standingOf(database.db, wallet)).toMatchObject({ amount: 960n, held: 100n });
  expect((await ended).charged).toBe(40n);
});

test('a call that ends while its hold is being written ends it once', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const { holds } = await openHolds();
  await callTwice(holds, wallet);
  const refs = Array.from({ length: 20 }, (_, i) => `a${i}`);
  for (const ref of refs) await holds.hold(holdOf(wallet, ref, 10n));
  const writing = holds.flush(wallet.account_id);
  const ended = await Promise.all(refs.map((ref) => holds.settle(closeOf(wallet, ref, 7n))));
  await writing;
  expect(ended.map(({ outcome, charged }) => `${outcome} ${charged}`)).toEqual(refs.map(() => 'settled 7'));
  expect(await standingOf(database.db, wallet)).toMatchObject({ amount: 860n, held: 0n, spent: 140n, key_held: 0n });
  // Nothing of it stays reserved.
  expect(await holds.hold(holdOf(wallet, 'b', 430n))).toMatchObject({ outcome: 'held', available: 430n });
});

function count(answers: HoldAnswer[], outcome: HoldAnswer['outcome']): number {
  return answers.filter((answer) => answer.outcome === outcome).length;
}

test('money for exactly K calls, by balance or by limit, accepts exactly K of 20 × K at once, cached or not', async () => {
  const room = 25;
  const exactly = 7n * BigInt(room) + 6n;
  for (const is_existing of [true, false]) {
    for (const limit of [null, exactly]) {
      const wallet = await openWallet(database.db, { credit: limit === null ? exactly : 1_000_000n, limit });
      const { holds } = await openHolds();
      if (is_existing) await callTwice(holds, wallet);
      const attempts = Array.from({ length: 20 * room }, (_, i) => holds.hold(holdOf(wallet, `h${i}`, 7n)));
      const answers = await Promise.all(attempts);
      expect(count(answers, 'held')).toBe(room);
      expect(count(answers, limit === null ? 'insufficient' : 'over_limit')).toBe(19 * room);
      const held = answers.flatMap(({ outcome }, i) => (outcome === 'held' ? [`h${i}`] : []));
      const ended = await Promise.all(held.map((ref) => holds.settle(closeOf(wallet, ref, 7n))));
      expect(ended.every(({ charged }) => charged === 7n)).toBe(true);
    }
  }
});

test('random calls, tasks and ends never spend too much, and every call pays its full cost', async () => {
  const seed = Math.floor(Math.random() * 2 ** 30) + 1;
  const poor = await callAtRandom(seed, 300n);
  const modest = await callAtRandom(seed, 3_000n);
  const rich = await callAtRandom(seed, 100_000n);
  expect(poor.refused, `seed ${seed}`).toBeGreaterThan(0);
  expect(modest.refused, `seed ${seed}`).toBeGreaterThan(0);
  expect(rich.refused).toBe(0);
  expect(rich.calls).toBeLessThan(1_500 * 2 * 0.75); // most were reserved in memory, and committed together with others
});

/** 60 callers of two keys, 25 calls each, a tenth of them tasks: held and ended by others, over other connections. */
async function callAtRandom(seed: number, credited: bigint): Promise<{ refused: number; calls: number }> {
  const random = randomFrom(seed);
  const upTo = (n: number) => Math.floor(random() * n);
  const first = await openWallet(database.db, { credit: credited, limit: credited / 2n });
  const wallets = [first, { ...first, key_id: await openKey(database.db, first.account_id) }];
  const { holds, calls } = await openHolds();
  let [spent, refused, n] = [0n, 0, 0];
  const call = async () => {
    const wallet = wallets[upTo(2)] ?? first;
    const ref = `${seed} ${credited} ${n++}`;
    const amount = BigInt(upTo(40));
    const is_task = random() < 0.1;
    const request = holdOf(wallet, ref, is_task ? amount * 3n : amount);
    const { outcome } = is_task ? await whileLeased(() => hold(database.db, request, noon)) : await holds.hold(request);
    if (outcome !== 'held') {
      refused += 1;
      return;
    }
    await tick(random() < 0.1 ? 300 * random() : 3 * random());
    if (random() < 0.05) await holds.flush(wallet.account_id);
    const cost = random() < 0.2 ? null : BigInt(upTo(Number(request.amount) + 1));
    const end = closeOf(wallet, ref, cost, true);
    const { charged } = is_task ? await close(database.db, end, noon) : await holds.settle(end);
    expect(charged, `seed ${seed}, ${ref}`).toBe(cost ?? 0n);
    spent += charged;
  };
  const caller = async () => {
    for (let i = 0; i < 25; i++) await call();
  };
  await Promise.all(Array.from({ length: 60 }, caller));
  expect(await standingOf(database.db, first), `seed ${seed}`).toMatchObject({ amount: credited - spent, held: 0n });
  return { refused, calls: calls() };
}

test('a cost beyond the hold of a long call counts at once, and nobody spends it again', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000_000n, limit: 100n });
  const { holds } = await openHolds();
  await callTwice(holds, wallet);
  await holds.hold(holdOf(wallet, 'long', 10n));
  await holds.flush(wallet.account_id);
  expect((await holds.settle(closeOf(wallet, 'long', 95n, true))).charged).toBe(95n);
  const answers = await Promise.all(['a', 'b', 'c'].map((ref) => holds.hold(holdOf(wallet, ref, 3n))));
  expect(answers.map(({ outcome }) => outcome).toSorted()).toEqual(['held', 'over_limit', 'over_limit']);
});

test('a cost beyond a hold is not taken from the reservations of others', async () => {
  for (const is_written of [false, true]) {
    const wallet = await openWallet(database.db, { credit: 100n });
    const { holds } = await openHolds();
    await callTwice(holds, wallet);
    await holds.hold(holdOf(wallet, 'greedy', 10n));
    if (is_written) await holds.flush(wallet.account_id);
    const others = ['a', 'b', 'c', 'd'];
    for (const ref of others) await holds.hold(holdOf(wallet, ref, 10n));
    const ends = await Promise.all([
      holds.settle(closeOf(wallet, 'greedy', 500n, true)),
      ...others.map((ref) => holds.settle(closeOf(wallet, ref, 10n, true))),
    ]);
    expect(ends.map(({ charged }) => charged)).toEqual([60n, 10n, 10n, 10n, 10n]);
  }
});

test('a busy account returns to reservations in memory after its cache is dropped', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000_000n });
  const { holds } = await openHolds();
  let [n, is_over] = [0, false];
  let decided = 0;
  const caller = async () => {
    while (!is_over) {
      const ref = `a${n++}`;
      const before = turn;
      await holds.hold(holdOf(wallet, ref, 10n));
      if (turn !== before) decided += 1;
      await tick(5);
      await holds.settle(closeOf(wallet, ref, 1n));
    }
  };
  // A reservation is made in the turn of the event loop in which it is asked for; a hold that is decided takes more.
  let turn = 0;
  const turning = setInterval(() => (turn += 1), 0);
  const callers = Array.from({ length: 64 }, caller);
  const more = (by: number, from = n) => vi.waitUntil(() => n - from >= by, { timeout: 120_000, interval: 5 });
  await more(1_000);
  holds.invalidate();
  await more(1_000);
  decided = 0;
  const begun = n;
  await more(1_000);
  is_over = true;
  await Promise.all(callers);
  clearInterval(turning);
  expect(decided).toBeLessThan((n - begun) / 10);
});

test('no task takes reserved money while the reservation cannot be written', async () => {
  const wallet = await openWallet(database.db, { credit: 100n });
  const { db } = database;
  const flaky = openFlaky(db);
  const { holds } = await openHolds(flaky.db);
  await callTwice(holds, wallet);
  await holds.hold(holdOf(wallet, 'a', 45n));
  flaky.is_away = true;
  const take = () => hold(db, holdOf(wallet, 'task', 60n), noon);
  expect((await take()).outcome).toBe('leased');
  flaky.is_away = false;
  expect((await whileLeased(take)).outcome).toBe('insufficient');
  expect((await holds.settle(closeOf(wallet, 'a', 45n))).charged).toBe(45n);
});

test('a hold that can no longer be written, of a call whose end failed, blocks no money of others', async () => {
  const wallet = await openWallet(database.db, { credit: 100n });
  const { db } = database;
  const flaky = openFlaky(db);
  const { holds } = await openHolds(flaky.db);
  await callTwice(holds, wallet);
  await holds.hold({ ...holdOf(wallet, 'a', 45n), kind: 'smell' }); // the table refuses such a hold
  flaky.is_away = true;
  await expect(holds.settle(closeOf(wallet, 'a', 45n))).rejects.toThrow('connection refused');
  flaky.is_away = false;
  await holds.flush(wallet.account_id);
  await callTwice(holds, wallet, 'second');
  expect(await holds.hold(holdOf(wallet, 'b', 50n))).toEqual({ outcome: 'held', available: 50n, remaining: null });
});

test('a database that is silent for a second is waited for', async () => {
  const wallet = await openWallet(database.db, { credit: 100n });
  let now_ms = 0;
  let is_silent = false;
  const waking: (() => void)[] = [];
  const { db } = database;
  const time = () => ({ elapsed_ms: now_ms, wall_ms: 0, session: 1 });
  const slow: Db = {
    ...db,
    query: async (text, values) => {
      if (is_silent) await new Promise<void>((resolve) => waking.push(resolve));
      return db.query(text, values);
    },
  };
  const { holds } = await openHolds(slow, time);
  await callTwice(holds, wallet);
  await holds.hold(holdOf(wallet, 'a', 1n));
  is_silent = true;
  const ended = holds.settle(closeOf(wallet, 'a', 1n));
  now_ms = 1_000;
  await holds.hold(holdOf(wallet, 'b', 1n));
  now_ms = 1_001;
  const waiting = holds.hold(holdOf(wallet, 'c', 1n));
  expect(await Promise.race([waiting, tick(50)])).toBeUndefined();
  is_silent = false;
  for (const wake of waking) wake();
  expect((await ended).charged).toBe(1n);
  expect((await waiting).outcome).toBe('held');
});

test('a withdrawal takes what nodes have leased, but nothing that is reserved, and a new limit counts at once', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000n });
  const { holds } = await openHolds();
  await callTwice(holds, wallet);
  await holds.hold(holdOf(wallet, 'a', 400n));
  const take = (amount: bigint) => {
    const taken = {
      account_id: wallet.account_id,
      type: 'adjustment',
      amount,
      ref: `x ${amount}`,
      reason: 'x',
    } as const;
    return whileLeased(() => credit(db, taken, noon));
  };
  expect((await take(-601n)).outcome).toBe('insufficient');
  expect((await take(-600n)).outcome).toBe('booked');
  holds.invalidate(wallet.account_id);
  expect(await holds.hold(holdOf(wallet, 'b', 1n))).toMatchObject({ outcome: 'insufficient' });
  expect(await holds.settle(closeOf(wallet, 'a', 300n, true))).toMatchObject({ outcome: 'settled', charged: 300n });
  expect(await standingOf(db, wallet)).toMatchObject({ amount: 100n, held: 0n });

  const limited = await openWallet(db, { credit: 1_000n, limit: 500n });
  await callTwice(holds, limited);
  await setLimit(db, limited.key_id, 10n);
  await holds.returnLeases(limited.account_id, `limit ${limited.key_id}`); // as NOTIFY says
  expect((await holds.hold(holdOf(limited, 'a', 11n))).outcome).toBe('over_limit');
});

test('NOTIFY reports a withdrawal and a new limit in their own commit, and nothing else', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000n });
  const client = await db.pool.connect();
  const heard: string[] = [];
  client.on('notification', ({ channel, payload }) => heard.push(`${channel} ${payload}`));
  await client.query('listen money_changed');
  const movement = { account_id: wallet.account_id, ref: 'x', reason: 'x' } as const;
  await credit(db, { ...movement, type: 'topup', amount: 5n }, noon);
  await credit(db, { ...movement, type: 'adjustment', amount: 5n }, noon);
  await credit(db, { ...movement, type: 'adjustment', amount: -5_000n, ref: 'too much' }, noon);
  await credit(db, { ...movement, type: 'adjustment', amount: -5n, ref: 'y' }, noon);
  expect(await setLimit(db, wallet.key_id, 5n)).toBe(true);
  expect(await setLimit(db, 'key_none', 5n)).toBe(false);
  await client.query('select 1');
  client.release(true);
  expect(heard).toEqual([`money_changed ${wallet.account_id}`, `money_changed ${wallet.account_id}`]);
});

test('a lease is spent for five minutes, by the clock that went further', async () => {
  for (const clock of ['elapsed_ms', 'wall_ms'] as const) {
    const wallet = await openWallet(database.db, { credit: 1_000_000n });
    const now = { elapsed_ms: 0, wall_ms: 0 };
    const { holds, calls } = await openHolds(database.db, () => ({ ...now, session: 1 }));
    await callTwice(holds, wallet);
    const before = calls();
    now[clock] = 239_999;
    await holds.hold(holdOf(wallet, 'a', 1n));
    expect(calls()).toBe(before);
    now[clock] = 300_000;
    await holds.hold(holdOf(wallet, 'b', 1n));
    expect(calls()).toBeGreaterThan(before);
    expect(await standingOf(database.db, wallet)).toMatchObject({ held: 1n });
  }
});

test('no money is reserved while the database is away, and open reservations are settled when it is back', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const { db } = database;
  const flaky = openFlaky(db);
  const { holds } = await openHolds(flaky.db);
  await callTwice(holds, wallet);
  for (const ref of ['a', 'b', 'c']) await holds.hold(holdOf(wallet, ref, 100n));
  flaky.is_away = true;
  await expect(holds.settle(closeOf(wallet, 'a', 60n))).rejects.toThrow('connection refused');
  await expect(holds.hold(holdOf(wallet, 'd', 1n))).rejects.toThrow('connection refused');
  await holds.flush(wallet.account_id); // tries, and does not fail
  flaky.is_away = false;
  expect(await holds.settle(closeOf(wallet, 'a', 60n))).toMatchObject({ outcome: 'settled', charged: 60n });
  // Of a call that never comes back the hold is written, for the sweep to find; `b` may be written by now.
  await expect.poll(() => standingOf(db, wallet)).toMatchObject({ held: 200n });
  expect(await holds.settle(closeOf(wallet, 'b', 100n))).toMatchObject({ charged: 100n });
  expect(await holds.settle(closeOf(wallet, 'c', null))).toMatchObject({ outcome: 'released' });
  await callTwice(holds, wallet, 'later');
  expect(await standingOf(db, wallet)).toMatchObject({ amount: 840n, held: 0n });
});

test('a statement whose confirmation was lost is not executed twice', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 10_000n });
  let n = 0;
  const loses: Db = {
    ...db,
    query: async <R>(text: string, values?: readonly unknown[]) => {
      const rows = await db.query<R>(text, values);
      if (n++ % 3 === 1) throw new Error('connection lost');
      return rows;
    },
  };
  const { holds } = await openHolds(loses);
  const callers = Array.from({ length: 100 }, async (_, i) => {
    await tick(i * 4);
    const { outcome } = await holds.hold(holdOf(wallet, `a${i}`, 9n));
    expect(['held', 'exists']).toContain(outcome);
    await tick(i % 4 === 0 ? 300 : 2);
    expect((await holds.settle(closeOf(wallet, `a${i}`, 5n))).charged).toBe(5n);
  });
  await Promise.all(callers);
  expect(await standingOf(db, wallet)).toMatchObject({ amount: 9_500n, held: 0n, spent: 500n, key_held: 0n });
});
