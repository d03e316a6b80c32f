import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { endLeases, removeEndedLeases } from '../../src/leases/leases.ts';
import { isStillLeased, openLiveness } from '../../src/leases/liveness.ts';
import { openShares } from '../../src/leases/shares.ts';
import { stopElapsing } from '../helpers/clock.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});

afterEach(() => {
  stopElapsing(false);
  vi.restoreAllMocks();
  vi.useRealTimers();
});
afterAll(() => database.drop());

const leasesOf = (node_id: string) =>
  database.db.query<{ account_id: string }>('select account_id from leases where node_id = $1 order by account_id', [
    node_id,
  ]);

async function giveLeases(node_id: string): Promise<void> {
  await database.db.query(
    `insert into leases (account_id, resource, node_id, amount, ends_at)
       values ('acct_a', 'money', $1, 5, now() + interval '5 min'), ('', 'chat key', $1, 5, now() + interval '5 min')`,
    [node_id],
  );
}

test('a session lasts as long as the node says in time that it is alive, by both clocks', async () => {
  stopElapsing(true);
  vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'], now: Date.now() }); // it says nothing by itself
  const liveness = openLiveness(database.db, 'says');
  expect(liveness.now().session).toBeUndefined();
  await liveness.ensure();
  const first = liveness.now();
  expect(isStillLeased(first, liveness.now(), 1_000)).toBe(true);
  vi.setSystemTime(Date.now() + 4_000);
  expect(liveness.now().session).toBe(first.session);
  vi.setSystemTime(Date.now() + 2_000); // the monotonic clock stood still: the machine was asleep
  expect(liveness.now().session).toBeUndefined();
  await liveness.ensure();
  const second = liveness.now();
  expect(second.session).toBeDefined();
  expect(isStillLeased(first, second, 1_000_000)).toBe(false);
  await liveness.close();
});

/** Leases of two accounts, of which the second one lies first in the table, while a settlement has that of the first. */
async function whileOneIsLocked(node_id: string, work: (lockTheOther: () => Promise<unknown>) => Promise<void>) {
  await database.db.query(`insert into lessees values ($1, now() - interval '11 min')`, [node_id]);
  await database.db.query(
    `insert into leases (account_id, resource, node_id, amount, ends_at)
       values ('acct_b', 'money', $1, 5, now() - interval '3 min'), ('acct_a', 'money', $1, 5, now() - interval '3 min')`,
    [node_id],
  );
  await database.db.tx(async (tx) => {
    const lock = (account_id: string) =>
      tx.query('update leases set in_use = 1 where account_id = $1 and node_id = $2', [account_id, node_id]);
    await lock('acct_a');
    await work(() => lock('acct_b'));
  });
}

test.each(['keep_leases', 'end_leases'])('%s locks leases in the order in which settlements do', async (name) => {
  let done: Promise<unknown> | undefined;
  await whileOneIsLocked(name, async (lockTheOther) => {
    done = database.db.query(`select ${name}($1)`, [name]);
    const waiting = `select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%' || $1 || '%'`;
    await expect.poll(() => database.db.query(waiting, [name])).toHaveLength(1);
    await lockTheOther();
  });
  await done;
  expect(await leasesOf(name)).toEqual([]);
});

test('the removal of old leases waits for none', async () => {
  await whileOneIsLocked('removed', async () => {
    await removeEndedLeases(database.db);
    expect(await leasesOf('removed')).toEqual([{ account_id: 'acct_a' }]);
  });
  await removeEndedLeases(database.db);
  expect(await leasesOf('removed')).toEqual([]);
});

test('a node that others believed dead has no lease of money when it comes back, and its shares of limits still count', async () => {
  const liveness = openLiveness(database.db, 'back');
  await liveness.ensure();
  await giveLeases('back');
  await liveness.close();
  await database.db.query(`update lessees set seen_at = now() + interval '1 hour' where node_id = 'back'`); // however slow this is
  const again = openLiveness(database.db, 'back');
  await again.ensure();
  expect(await leasesOf('back')).toEqual([{ account_id: '' }, { account_id: 'acct_a' }]);
  await again.close();
  await database.db.query(`update lessees set seen_at = now() - interval '9 s' where node_id = 'back'`);
  const at_last = openLiveness(database.db, 'back');
  await at_last.ensure();
  expect(await leasesOf('back')).toEqual([{ account_id: '' }]);
  await at_last.close();
});

test('a node that others believe dead begins a new session when it hears so, though its own clocks say otherwise', async () => {
  const liveness = openLiveness(database.db, 'ahead');
  await liveness.ensure();
  const first = liveness.now();
  await giveLeases('ahead');
  await database.db.query(`update lessees set seen_at = now() - interval '9 s' where node_id = 'ahead'`); // as PostgreSQL's clock steps
  await expect.poll(async () => (await leasesOf('ahead')).length).toBe(1);
  await expect.poll(() => isStillLeased(first, liveness.now(), 300_000)).toBe(false);
  await expect.poll(() => liveness.now().session).toBeDefined();
  await liveness.close();
});

test('a node that stops ends its leases of money, and what it used of limits still counts', async () => {
  const liveness = openLiveness(database.db, 'stops');
  await liveness.ensure();
  await giveLeases('stops');
  await endLeases(database.db, 'stops');
  expect(await leasesOf('stops')).toEqual([{ account_id: '' }]);
  await liveness.close();
});

test('a limit is refused with the reason while PostgreSQL does not hear that the node is alive', async () => {
  const away = { ...database.db, connection: { connectionString: 'postgres://medley@127.0.0.1:1/none' } };
  const shares = openShares(database.db, 'away', openLiveness(away, 'away'));
  const limited = { limit: 5, lost_ms: 0, inUse: () => 0, freesInMs: () => undefined, take: () => true };
  await expect(shares.take('calls key', limited)).rejects.toThrow('ECONNREFUSED');
});
