import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openListener, type Listener } from '../../src/db/notify.ts';
import { openShares, type Shares } from '../../src/leases/shares.ts';
import { leases_channel } from '../../src/leases/while-leased.ts';
import { sharedWindows } from '../../src/limits/shared-windows.ts';
import { window_ms, type WindowAnswer, type Windows } from '../../src/limits/window.ts';
import { testLiveness, type TestLiveness } from '../helpers/liveness.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { watchStandstills } from '../queue/engine.ts';

/** A node as far as windows go. `now_ms` is its clock; a deaf one hears of no recall. */
type Node = { shares: Shares; windows: Windows; liveness: TestLiveness; is_deaf: boolean; now_ms: number };

let database: TestDatabase;
let listener: Listener;
let nodes: Node[] = [];

beforeAll(async () => {
  database = await testDatabase();
  listener = openListener(database.db);
  await listener.subscribe(leases_channel, {
    onPayload: (payload) => {
      const [, ...resource] = payload.split(' ');
      for (const node of nodes) if (!node.is_deaf) node.shares.returnUnused(resource.join(' '));
    },
  });
});

afterEach(() => {
  nodes = [];
});

afterAll(async () => {
  await listener.close();
  await database.drop();
});

function openNode(): Node {
  const id = randomUUID();
  const liveness = testLiveness(database.db, id);
  const shares = openShares(database.db, id, liveness);
  const node: Node = { shares, windows: sharedWindows(shares), liveness, is_deaf: false, now_ms: 0 };
  nodes.push(node);
  return node;
}

const openNodes = (count: number) => Array.from({ length: count }, openNode);

/** Time passes for all nodes. */
function pass(ms: number): void {
  for (const node of nodes) node.now_ms += ms;
}

const take = (node: Node, key: string, limit = 60): Promise<WindowAnswer> =>
  node.windows.take('chat', key, limit, node.now_ms);

async function takeMany(over: readonly Node[], key: string, count: number, limit = 60): Promise<WindowAnswer[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => take(over[i % over.length] ?? openNode(), key, limit)));
}

const accepted = (taken: readonly WindowAnswer[]) => taken.filter(({ ok }) => ok).length;

/**
 * Sends requests until so many are accepted, and no more. A node waits 200 ms for what others give back: a request that
 * was refused because this machine stood still meanwhile is sent again.
 */
async function takeAll(over: readonly Node[], key: string, count: number, limit = 60): Promise<void> {
  let total = 0;
  await expect
    .poll(async () => (total += accepted(await takeMany(over, key, count - total, limit))), { interval: 100 })
    .toBe(count);
}

test('300 requests at once over three nodes, with a key of 60 per minute, are exactly 60 accepted ones', async () => {
  const three = openNodes(3);
  const at_once = accepted(await takeMany(three, 'at once', 300));
  expect(at_once).toBeLessThanOrEqual(60);
  await takeAll(three, 'at once', 60 - at_once);
  expect(accepted(await takeMany(three, 'at once', 30))).toBe(0);
});

test('the same in any minute, as time goes on: never more than 60 over all nodes, and 60 in each', async () => {
  const three = openNodes(3);
  const times: number[] = [];
  for (let step = 0; step < 40; step++) {
    const taken = await takeMany(three, 'goes on', 12);
    times.push(...Array.from({ length: accepted(taken) }, () => three[0]?.now_ms ?? 0));
    pass(7_000);
  }
  for (const time of times)
    expect(times.filter((other) => other >= time && other <= time + window_ms).length).toBeLessThanOrEqual(60);
  expect(times.length).toBeGreaterThan(40 * 6); // of 280 s: a window of 60 is used up four times and more
});

test('a key far from its limit is not refused because its places lie with another node', async () => {
  const [first, second] = [openNode(), openNode()];
  for (let i = 0; i < 20; i++) expect((await take(first, 'elsewhere')).ok).toBe(true); // it has half and more
  for (let i = 0; i < 40; i++) await takeAll([second], 'elsewhere', 1);
  expect((await take(second, 'elsewhere')).ok).toBe(false);
});

test('a key beyond its limit is told the wait after which one request is accepted', async () => {
  const [first, second] = [openNode(), openNode()];
  await takeMany([first], 'wait', 30);
  pass(10_000);
  await takeAll([second], 'wait', 30);
  const refused = await take(second, 'wait');
  expect(refused).toMatchObject({ ok: false, limit: 60, remaining: 0 });
  expect(refused.retry_after_ms).toBeLessThanOrEqual(window_ms + 1);
  expect(refused.retry_after_ms).toBeGreaterThan(0);
  const [own] = await takeMany([first], 'wait', 1);
  expect(own?.retry_after_ms).toBeGreaterThan(45_000);
  expect(own?.retry_after_ms).toBeLessThan(51_000);
});

test('the share of a node that died counts as used, and is not given to others before the minute is over', async () => {
  const [dead, alive] = [openNode(), openNode()];
  expect((await take(dead, 'dead')).ok).toBe(true);
  dead.is_deaf = true;
  const taken = await takeMany([alive], 'dead', 100);
  expect(accepted(taken)).toBeGreaterThan(0);
  expect(accepted(taken)).toBeLessThan(60);
  // Whatever the dead one has accepted by its share: together they are within the limit.
  const rest = await takeMany([dead], 'dead', 100);
  expect(accepted(taken) + accepted(rest) + 1).toBeLessThanOrEqual(60);
});

test('a node that stops leaves what it used counted, and nothing else', async () => {
  const [first, second] = [openNode(), openNode()];
  await takeMany([first], 'stops', 7);
  await first.shares.close();
  first.is_deaf = true;
  expect(accepted(await takeMany([second], 'stops', 100))).toBe(53);
});

test('a limit that is lowered counts at the next request on every node', async () => {
  const three = openNodes(3);
  await takeAll(three, 'lowered', 30);
  expect(accepted(await takeMany(three, 'lowered', 30, 20))).toBe(0);
  await takeAll(three, 'lowered', 15, 45);
  expect(accepted(await takeMany(three, 'lowered', 30, 45))).toBe(0);
});

test('shares of a limit are not used when it is lower', async () => {
  const three = openNodes(3);
  await takeAll(three, 'lower', 3);
  const at_once = accepted(await takeMany(three, 'lower', 60, 20));
  expect(at_once).toBeLessThanOrEqual(17);
  await takeAll(three, 'lower', 17 - at_once, 20);
  expect(accepted(await takeMany(three, 'lower', 60, 20))).toBe(0);
});

test('what a key may do at once is shared, and free again when a call ends', async () => {
  const busy = new Map<Shares, number>();
  const open = () => openNode().shares;
  const two = [open(), open()];
  const enter = (shares: Shares) =>
    shares.take('calls key', {
      limit: 10,
      lost_ms: 0,
      inUse: () => busy.get(shares) ?? 0,
      freesInMs: () => undefined,
      take: (bound) => {
        const now = busy.get(shares) ?? 0;
        if (now < bound) busy.set(shares, now + 1);
        return now < bound;
      },
    });
  const entered = await Promise.all(Array.from({ length: 40 }, (_, i) => enter(two[i % 2] ?? open())));
  const inUse = () => two.reduce((sum, shares) => sum + (busy.get(shares) ?? 0), 0);
  expect(entered.filter(Boolean)).toHaveLength(inUse());
  const enterAgain = () => Promise.all(two.map(enter)).then(inUse);
  await expect.poll(enterAgain).toBe(10); // who was refused while this machine stood still is let in
  expect(await enterAgain()).toBe(10);
  for (const shares of two) busy.set(shares, 0);
  await expect.poll(() => enter(two[0] ?? open())).toBe(true);
  for (let i = 0; i < 9; i++) await expect.poll(() => enter(two[0] ?? open())).toBe(true);
});

test('what lasts longer than a share is counted to its end: its share is renewed though nothing new is taken', async () => {
  const id = randomUUID();
  const liveness = testLiveness(database.db, id);
  const shares = openShares(database.db, id, liveness, 20);
  let in_use = 0;
  const limited = (lost_ms: number) => ({
    limit: 10,
    lost_ms,
    inUse: () => in_use,
    freesInMs: () => undefined,
    take: () => in_use++ < 10,
  });
  expect(await shares.take('calls long', limited(0))).toBe(true);
  expect(await shares.take('chat long', limited(window_ms))).toBe(true);
  const endsSoon = async () => {
    const rows = await database.db.query<{ resource: string }>(
      `select resource from leases where node_id = $1 and ends_at < now() + interval '1 minute' order by resource`,
      [id],
    );
    return rows.map(({ resource }) => resource);
  };
  await database.db.query(`update leases set ends_at = now() + interval '59 s' where node_id = $1`, [id]);
  liveness.skewed_ms += 245_000;
  await expect.poll(endsSoon).toEqual(['chat long']);
  await shares.close();
});

test('a window that its first request waits for is not forgotten because of other keys', async () => {
  const node = openNode();
  const first = take(node, 'waits', 1); // asks the database, as those of the other keys do
  const others = Array.from({ length: 8 }, (_, i) => take(node, `another ${i}`, 1));
  const second = take(node, 'waits', 1);
  expect(accepted(await Promise.all([first, second]))).toBe(1);
  expect(accepted(await Promise.all(others))).toBe(8);
});

test('one request alone is refused within half a second while a node that died has what it needs', async () => {
  const [dead, alive] = [openNode(), openNode()];
  await takeMany([dead], 'alone', 30);
  dead.is_deaf = true;
  using standstills = watchStandstills(database.db);
  let [is_ok, waited_ms] = [true, 0];
  while (is_ok) {
    const begun_ms = performance.now();
    is_ok = (await take(alive, 'alone')).ok;
    waited_ms = performance.now() - begun_ms;
  }
  expect(waited_ms).toBeLessThan(1_000 + standstills.longestMs()); // twice what is promised
});
