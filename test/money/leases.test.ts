import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openListener, type Listener } from '../../src/db/notify.ts';
import { endLeases, removeEndedLeases } from '../../src/leases/leases.ts';
import { leases_channel, whileLeased } from '../../src/leases/while-leased.ts';
import { newId } from '../../src/lib/ids.ts';
import { setAccountBudget } from '../../src/money/account-budgets.ts';
import { databaseHolds, hold, makeHoldBatcher, type HoldAnswer, type Holds } from '../../src/money/holds.ts';
import { reserveInMemory } from '../../src/money/reservations.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testLiveness, type TestLiveness } from '../helpers/liveness.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, noon, openWallet, standingOf, type Wallet } from './setup.ts';

/** A node as far as money goes: its holds, and what it hears of recalls, unless it is deaf. */
type Node = { id: string; holds: Holds; is_deaf: boolean; liveness: TestLiveness };

let database: TestDatabase;
let listener: Listener;
let nodes: Node[] = [];

beforeAll(async () => {
  database = await testDatabase({ connections_max: 20 });
  listener = openListener(database.db);
  await listener.subscribe(leases_channel, {
    onPayload: (payload) => {
      const [account_id = '', ...resource] = payload.split(' ');
      for (const node of nodes) if (!node.is_deaf) void node.holds.returnLeases(account_id, resource.join(' '));
    },
  });
});

afterEach(async () => {
  for (const node of nodes) node.holds.stop();
  nodes = [];
  await expectExactBooks(database.db);
});

afterAll(async () => {
  await listener.close();
  await database.drop();
});

/** `slow`: what the leases of accounts that it does not know wait for before they are given back. */
async function openNode({ slow }: { slow?: Promise<void> } = {}): Promise<Node> {
  const id = randomUUID();
  const liveness = testLiveness(database.db, id);
  await liveness.ensure();
  const batcher = makeHoldBatcher(database.db, () => noon, { node_id: id });
  const plain = databaseHolds(batcher);
  const returnLeases: Holds['returnLeases'] = async (...whose) => {
    await slow;
    await plain.returnLeases(...whose);
  };
  const node: Node = {
    id,
    holds: reserveInMemory({ ...plain, returnLeases }, () => liveness.now()),
    is_deaf: false,
    liveness,
  };
  nodes.push(node);
  return node;
}

const openThree = () => Promise.all([openNode(), openNode(), openNode()]);
const openTwo = () => Promise.all([openNode(), openNode()]);

let calls = 0;

/** A call of `amount` that costs as much, on one node. */
async function callOn(node: Node, wallet: Wallet, amount: bigint): Promise<HoldAnswer['outcome']> {
  const ref = `call ${calls++}`;
  const { outcome } = await node.holds.hold(holdOf(wallet, ref, amount));
  const charged = outcome === 'held' ? (await node.holds.settle(closeOf(wallet, ref, amount, true))).charged : amount;
  expect(charged).toBe(amount);
  return outcome;
}

/** Until the node has a lease: it answers without asking. */
async function lease(node: Node, wallet: Wallet): Promise<void> {
  for (let i = 0; i < 3; i++) await callOn(node, wallet, 0n);
}

async function leasedTo(wallet: Wallet, resource = 'money'): Promise<Map<string, bigint>> {
  const rows = await database.db.query<{ node_id: string; amount: bigint }>(
    `select node_id, amount from leases where account_id = $1 and resource = $2 and node_id <> ''`,
    [wallet.account_id, resource],
  );
  return new Map(rows.map(({ node_id, amount }) => [node_id, amount]));
}

test('200 calls over three nodes race for money, or a limit, that pays for exactly 100', async () => {
  for (const by of ['balance', 'limit'] as const) {
    for (const is_leased of [true, false]) {
      const exactly = 700n;
      const wallet = await openWallet(
        database.db,
        by === 'balance' ? { credit: exactly } : { credit: 1_000_000n, limit: exactly },
      );
      const three = await openThree();
      if (is_leased) await Promise.all(three.map((node) => lease(node, wallet)));
      const racing = Array.from({ length: 200 }, (_, i) => callOn(three[i % 3] ?? three[0], wallet, 7n));
      const outcomes = await Promise.all(racing);
      expect(outcomes.filter((outcome) => outcome === 'held')).toHaveLength(100);
      const refusal = by === 'balance' ? 'insufficient' : 'over_limit';
      expect(outcomes.filter((outcome) => outcome === refusal)).toHaveLength(100);
      expect(await standingOf(database.db, wallet)).toMatchObject({ spent: exactly, held: 0n, key_held: 0n });
    }
  }
});

/** Three nodes with leases, a hard budget of the account that they are to meet, and 200 calls of 7 each over them. */
async function openRace() {
  const wallet = await openWallet(database.db, { credit: 1_000_000n });
  const three = await openThree();
  await Promise.all(three.map((node) => lease(node, wallet)));
  const budget = { id: newId('budget'), account_id: wallet.account_id, name: 'All', scope: 'account' } as const;
  const hard = { ...budget, subject: null, period: 'month', amount: 700n, is_hard: true } as const;
  const race = () => Promise.all(Array.from({ length: 200 }, (_, i) => callOn(three[i % 3] ?? three[0], wallet, 7n)));
  return { wallet, three, race, setBudget: () => setAccountBudget(database.db, hard, noon) };
}

test('200 calls over three nodes race for a hard budget that pays for exactly 100, made while all have leases', async () => {
  const { wallet, three, race, setBudget } = await openRace();
  expect(await setBudget()).toBe('set');
  const outcomes = await race();
  expect(outcomes.filter((outcome) => outcome === 'held')).toHaveLength(100);
  expect(outcomes.filter((outcome) => outcome === 'over_limit')).toHaveLength(100);
  expect(await standingOf(database.db, wallet)).toMatchObject({ spent: 700n, held: 0n });
  expect(await callOn(three[1], wallet, 1n)).toBe('over_limit');
});

test('a hard budget that is made while 200 calls race counts all that were held before, and refuses the next', async () => {
  const { wallet, three, race, setBudget } = await openRace();
  const [outcomes, outcome] = await Promise.all([race(), setBudget()]);
  const held = outcomes.filter((each) => each === 'held').length;
  expect(outcome).toBe('set');
  expect(held).toBeGreaterThanOrEqual(100);
  expect((await standingOf(database.db, wallet)).spent).toBe(7n * BigInt(held));
  expect(await callOn(three[2], wallet, 1n)).toBe('over_limit');
});

test('what is leased to all nodes together is never more than there is, and each gets a share', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000_000n, limit: 500_000n });
  const three = await openThree();
  for (let round = 0; round < 6; round++) {
    for (const node of three) {
      node.liveness.skewed_ms += 241_000; // its leases are old: it renews them
      await callOn(node, wallet, 10n);
      await callOn(node, wallet, 10n);
    }
    for (const resource of ['money', `limit ${wallet.key_id}`]) {
      const leased = await leasedTo(wallet, resource);
      const { amount, spent } = await standingOf(database.db, wallet);
      const there = resource === 'money' ? amount : 500_000n - spent;
      expect([...leased.values()].reduce((sum, each) => sum + each, 0n)).toBeLessThanOrEqual(there);
    }
  }
  const shares = [...(await leasedTo(wallet)).values()].map((amount) => Number(amount) / 1_000_000);
  expect(shares).toHaveLength(3);
  for (const share of shares) expect(share).toBeGreaterThan(0.1);
});

test('a call beside leases of other nodes gets what they do not use, since they are asked for it', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const [first, second] = await openTwo();
  await lease(first, wallet);
  await first.holds.hold(holdOf(wallet, 'reserved', 300n));
  expect((await second.holds.hold(holdOf(wallet, 'large', 701n))).outcome).toBe('insufficient');
  expect((await second.holds.hold(holdOf(wallet, 'fits', 700n))).outcome).toBe('held');
  expect((await first.holds.settle(closeOf(wallet, 'reserved', 300n, true))).charged).toBe(300n);
  expect((await second.holds.settle(closeOf(wallet, 'fits', 700n, true))).charged).toBe(700n);
});

test('a task takes money that chat has leased and not reserved', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const node = await openNode();
  await lease(node, wallet);
  const take = (ref: string, amount: bigint) => whileLeased(() => hold(database.db, holdOf(wallet, ref, amount), noon));
  await node.holds.hold(holdOf(wallet, 'chat', 100n));
  expect((await take('too large', 901n)).outcome).toBe('insufficient');
  expect((await take('task', 900n)).outcome).toBe('held');
  expect((await node.holds.settle(closeOf(wallet, 'chat', 100n, true))).charged).toBe(100n);
});

test('the lease of a node that died ends within 10 s, but what it had reserved stays reserved', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const [dead, alive] = await openTwo();
  await lease(dead, wallet);
  await dead.holds.hold(holdOf(wallet, 'a', 100n));
  dead.liveness.skewed_ms += 241_000;
  await callOn(dead, wallet, 0n); // renews, and says what it has reserved
  dead.is_deaf = true;
  dead.holds.stop();
  await dead.liveness.die();
  const begun_ms = performance.now();
  expect((await alive.holds.hold(holdOf(wallet, 'all', 1_000n))).outcome).toBe('insufficient');
  expect((await alive.holds.hold(holdOf(wallet, 'rest', 900n))).outcome).toBe('held');
  expect(performance.now() - begun_ms).toBeLessThan(30_000); // twice that, and a stop of this machine
  // It comes back, or its journal is read: its call pays.
  expect((await dead.holds.settle(closeOf(wallet, 'a', 100n, true))).charged).toBe(100n);
});

test('a node that stood still beyond its lease sends no call whose money others have taken', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const [frozen, other] = await openTwo();
  await lease(frozen, wallet);
  const request = holdOf(wallet, 'a', 100n); // too little to renew the lease
  frozen.is_deaf = true;
  expect((await frozen.holds.hold(request)).outcome).toBe('held');
  frozen.holds.stop(); // it writes nothing meanwhile
  expect(await frozen.holds.confirm(request)).toBe(true);
  await frozen.liveness.lapse();
  expect((await other.holds.hold(holdOf(wallet, 'all', 1_000n))).outcome).toBe('held');
  await frozen.liveness.ensure();
  expect(await frozen.holds.confirm(request)).toBe(false);
  expect((await frozen.holds.hold(holdOf(wallet, 'b', 1n))).outcome).toBe('insufficient');
  expect((await frozen.holds.settle(closeOf(wallet, 'a', null))).state).toBe('released');
});

test('a node that may have missed messages spends nothing that it had leased of a limit which is lower since', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n, limit: 500n });
  const node = await openNode();
  await lease(node, wallet);
  node.is_deaf = true;
  await database.db.query('select money_limit($1, 100)', [wallet.key_id]);
  node.holds.invalidate(); // its listener is back
  node.is_deaf = false;
  expect((await node.holds.hold(holdOf(wallet, 'beyond', 101n))).outcome).toBe('over_limit');
  expect((await node.holds.hold(holdOf(wallet, 'within', 100n))).outcome).toBe('held');
  expect((await node.holds.settle(closeOf(wallet, 'within', 100n, true))).charged).toBe(100n);
});

test('leases that count no longer are removed, and no others', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000n });
  const put = async (node_id: string, seen: string, ended: string) => {
    await db.query('insert into lessees values ($1, now() - $2::interval)', [node_id, seen]);
    await db.query(
      `insert into leases (account_id, resource, node_id, amount, in_use, ends_at)
         values ($1, 'money', $2, 5, 5, now() - $3::interval)`,
      [wallet.account_id, node_id, ended],
    );
  };
  await put('live', '0 s', '0 s');
  await put('lost', '9 min', '8 min');
  await put('long lost', '11 min', '6 min');
  await put('ended', '1 s', '3 min');
  await removeEndedLeases(db);
  expect([...(await leasedTo(wallet)).keys()].toSorted()).toEqual(['live', 'lost']);
  await endLeases(db, 'live');
  await endLeases(db, 'lost');
});

test('what is given back of an account that a node does not know takes no lease along that it got meanwhile', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const { promise: slow, resolve: goOn } = Promise.withResolvers<void>();
  const node = await openNode({ slow });
  const returning = node.holds.returnLeases(wallet.account_id, 'money');
  await lease(node, wallet);
  goOn();
  await returning;
  await lease(node, wallet);
  expect([...(await leasedTo(wallet)).keys()]).toEqual([node.id]);
});

test('a node that stops leaves no lease behind', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n, limit: 500n });
  const node = await openNode();
  await lease(node, wallet);
  expect((await leasedTo(wallet)).size).toBe(1);
  await endLeases(database.db, node.id);
  expect((await leasedTo(wallet)).size + (await leasedTo(wallet, `limit ${wallet.key_id}`)).size).toBe(0);
});

test('no lease of a limit is granted that would last beyond the month', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n, limit: 500n });
  const nearly = new Date('2026-11-30T23:54:56Z');
  const batcher = makeHoldBatcher(database.db, () => nearly, { node_id: randomUUID() });
  const nothing = { in_use: 0n, least: 0n, key_in_use: 0n, key_least: 0n };
  expect(await batcher.lease({ ...wallet, ...nothing })).toEqual({ amount: 500n, key_amount: 0n });
});

test('what a call may cost beyond its hold is kept from all nodes', async () => {
  const wallet = await openWallet(database.db, { credit: 1_000n });
  const [first, second] = await openTwo();
  const request = { ...holdOf(wallet, 'a', 100n), cost_max: 800n };
  expect(await first.holds.hold(request)).toMatchObject({ outcome: 'held', available: 200n });
  expect(await standingOf(database.db, wallet)).toMatchObject({ held: 100n });
  expect(await second.holds.hold(holdOf(wallet, 'b', 201n))).toMatchObject({
    outcome: 'insufficient',
    available: 200n,
  });
  expect((await second.holds.hold(holdOf(wallet, 'c', 200n))).outcome).toBe('held');
  expect((await first.holds.settle(closeOf(wallet, 'a', 800n, true), request)).charged).toBe(800n);
  expect(await standingOf(database.db, wallet)).toMatchObject({ amount: 200n, held: 200n });
});
