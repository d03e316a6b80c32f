import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { endLeases } from '../../src/leases/leases.ts';
import { isStillLeased, openLiveness } from '../../src/leases/liveness.ts';
import { openShares } from '../../src/leases/shares.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});

afterEach(() => void vi.useRealTimers());
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
  const liveness = openLiveness(database.db, 'says');
  expect(liveness.now().session).toBeUndefined();
  await liveness.ensure();
  const first = liveness.now();
  expect(isStillLeased(first, liveness.now(), 1_000)).toBe(true);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 4_000 });
  expect(liveness.now().session).toBe(first.session);
  vi.setSystemTime(Date.now() + 2_000); // the monotonic clock stood still: the machine was asleep
  expect(liveness.now().session).toBeUndefined();
  await liveness.ensure();
  const second = liveness.now();
  expect(second.session).toBeDefined();
  expect(isStillLeased(first, second, 1_000_000)).toBe(false);
  await liveness.close();
});

test('a node that others believed dead has no lease of money when it comes back, and its shares of limits still count', async () => {
  const liveness = openLiveness(database.db, 'back');
  await liveness.ensure();
  await giveLeases('back');
  await liveness.close();
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
  await expect.poll(async () => (await leasesOf('ahead')).length, { timeout: 4_000 }).toBe(1);
  await expect.poll(() => isStillLeased(first, liveness.now(), 300_000), { timeout: 1_000 }).toBe(false);
  expect(liveness.now().session).toBeDefined();
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
