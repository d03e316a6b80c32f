import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { withConnection, type Db } from '../../src/db/database.ts';
import { lockMigrations, migrate, migrateWithin } from '../../src/db/migrate.ts';
import { checkBooks } from '../../src/money/books.ts';
import { makeEngineTables } from '../../src/queue/backup.ts';
import { delivery_rules } from '../../src/webhooks/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { applyEarlier } from './earlier.ts';

/**
 * The tables of delivery slots had other names in the version before. Its statements and functions, as commit 7689d1e
 * has them, go on through the views of these names: after the migration, and in the middle of it. This file goes with
 * the views `places`, `parked` and `slow_lanes`.
 */
let database: TestDatabase;
let db: Db;
let account_id: string;
const now = new Date();
const long_ago = new Date(now.getTime() - 3_600_000);

beforeEach(async () => {
  database = await testDatabase({ state: 'empty' });
  ({ db } = database);
  await applyEarlier(db);
  await makeEngineTables(db, pino({ level: 'silent' }));
  for (const queue of ['delivery.send', 'delivery.retry']) {
    await db.query(`select pgboss.create_queue($1, '{"policy":"standard"}')`, [queue]);
  }
  for (const name of ['take_place', 'lane_has_room', 'queue_for_host', 'move_lines']) {
    await db.query(`comment on function ${name} is 'medley 0.1.0 x'`); // so that it is dropped if it has no file
  }
  // Without a key: its table has columns now that it had not then.
  ({ id: account_id } = await createAccount(db, { name: 'Earlier', currency: 'USD', initial_credit: 1_000_000n }, now));
});

afterEach(() => database.drop());

const add = (id: string, endpoint: string, host: string) =>
  db.query('select queue_delivery($1, $2, $3, null, $4, $5, $6, $7, $8)', [
    now,
    account_id,
    id,
    'task.failed',
    `http://${host}/`,
    '{}',
    endpoint,
    host,
  ]);

/** Returns the answer for each. */
async function begin(...ids: string[]): Promise<string[]> {
  const items = JSON.stringify(ids.map((id) => ({ account_id, id, job: 1, claim: `claim of ${id}` })));
  const rows = await db.query<{ answer: string }>('select * from begin_deliveries($1, $2)', [now, items]);
  return rows.map(({ answer }) => answer);
}

async function end(id: string, timed_out = false): Promise<unknown> {
  const times = { started_at: now, ended_at: now, duration_ms: 1 };
  const response = { status: timed_out ? null : 500, error: timed_out ? 'late' : null, answer: null, delivered: false };
  const items = JSON.stringify([{ account_id, id, claim: `claim of ${id}`, ...times, ...response, timed_out }]);
  const [row] = await db.query<{ state: string }>('select * from end_deliveries($1, $2, $3)', [now, items, [10_000]]);
  return row?.state;
}

const addTest = (id: string, host: string) =>
  db.query(`select open_test_delivery($1, $2, $3, 'u', 'b', $4, $5, 'claim', 1000)`, [
    now,
    account_id,
    id,
    `lane ${id}`,
    host,
  ]);

/** Four deliveries in flight, and two that wait for their slots. Returns the answers of begin_deliveries. */
async function fill(endpoint: string, host: string): Promise<string[]> {
  const ids = [1, 2, 3, 4, 5, 6].map((i) => `${endpoint}${i}`);
  for (const id of ids) await add(id, endpoint, host);
  return begin(...ids);
}

async function names(sql: string): Promise<string[]> {
  return (await db.query<{ name: string }>(sql)).map(({ name }) => name);
}

const throttled = (endpoint: string) =>
  names(
    `select delivery_id || ' ' || queue_for as name from throttled_deliveries where endpoint = '${endpoint}' order by 1`,
  );

const handedOn = (endpoint: string) =>
  names(`select delivery_id as name from delivery_slots where endpoint = '${endpoint}' and claim is null order by 1`);

/** Statements of nodes of the version before, under names, as the driver prepares them. */
const direct = {
  hosts: 'select distinct host from parked order by host',
  forget: 'delete from slow_lanes where since < $1',
  waiting: `select d.id from deliveries d
     where d.state = 'waiting' and not exists (select from places p where p.account_id = d.account_id and p.delivery_id = d.id)
       and not exists (select from parked k where k.account_id = d.account_id and k.delivery_id = d.id) order by d.id`,
  held: `select x.delivery_id
           from (select account_id, delivery_id from places union all select account_id, delivery_id from parked) x
           left join deliveries d on d.account_id = x.account_id and d.id = x.delivery_id and d.state = 'waiting'
          where d.id is null`,
};

it('statements that were prepared before the tables were renamed go on, and so do those made anew', async () => {
  await fill('a', 'a.test');
  await end('a1', true);
  await db.query('insert into slow_lanes (lane, since) values ($1, $2)', ['old', long_ago]);
  await withConnection(db, async (client) => {
    const run = async () => {
      const { rows: hosts } = await client.query({ name: 'hosts', text: direct.hosts });
      const { rows: waiting } = await client.query({ name: 'waiting', text: direct.waiting });
      const { rows: held } = await client.query({ name: 'held', text: direct.held });
      const { rowCount } = await client.query({ name: 'forget', text: direct.forget, values: [now] });
      return { hosts, waiting, held, forgotten: rowCount };
    };
    expect(await run()).toEqual({ hosts: [{ host: 'a.test' }], waiting: [{ id: 'a1' }], held: [], forgotten: 1 });
    await migrate(db);
    await db.query('insert into slow_endpoints (endpoint, since) values ($1, $2)', ['older', long_ago]);
    expect(await run()).toEqual({ hosts: [{ host: 'a.test' }], waiting: [{ id: 'a1' }], held: [], forgotten: 1 });
  });
  expect(await names('select endpoint as name from slow_endpoints')).toEqual(['a']);
  expect(await throttled('a')).toEqual(['a5 endpoint', 'a6 endpoint']);
});

it('the functions of the version before work as before on the renamed tables, by the calls of its nodes', async () => {
  await migrate(db);
  expect(await fill('a', 'a.test')).toEqual(['send', 'send', 'send', 'send', 'throttled', 'throttled']);
  expect([await end('a1'), await end('a2', true)]).toEqual(['waiting', 'waiting']);
  expect(await throttled('a')).toEqual(['a6 endpoint']); // a5 has the slot of a1, and the endpoint is slow since
  await db.query(`update slow_lanes set since = $1 where lane = 'a'`, [long_ago]);
  await db.query(direct.forget, [now]);
  await db.query('select move_lines($1, $2)', ['a.test', now]);
  expect(await handedOn('a')).toEqual(['a5', 'a6']);
  expect(await db.query('select resend_delivery($1, $2, $3) as answer', [now, account_id, 'a6'])).toEqual([
    { answer: 'busy' },
  ]);
  await addTest('t', 'a.test');
  expect(await names('select delivery_id as name from places where expires_at is not null')).toEqual(['t']);
  expect(await checkBooks(db, { more: delivery_rules })).toMatchObject({ ok: true });
});

it('calls that began before the tables are renamed, and wait for that, end as if nothing had happened', async () => {
  for (const endpoint of ['a', 'b', 'c', 'd']) await fill(endpoint, `${endpoint}.test`);
  await add('e', 'e', 'e.test');
  await add('f', 'e', 'e.test');
  await add('d7', 'd', 'd.test');
  await db.query('insert into slow_lanes (lane, since) values ($1, $2)', ['old', long_ago]);
  const calls = await withConnection(db, async (client) => {
    await lockMigrations(client);
    await client.query('begin');
    await migrateWithin(client);
    const under_way = Promise.all([
      begin('e', 'f'),
      begin('d7'),
      end('a1'),
      end('b1', true),
      addTest('t', 'g.test'),
      db.query('select move_lines($1, $2)', ['c.test', now]),
      db.query('select rescue_deliveries($1, $2) as sent', [now, long_ago]),
      db.query(direct.forget, [now]),
      db.query(direct.hosts),
    ]);
    await untilWaiting(9);
    await client.query('commit');
    return under_way;
  });
  const hosts = ['a.test', 'b.test', 'c.test', 'd.test'].map((host) => ({ host }));
  expect(calls).toEqual([
    ['send', 'send'],
    // A call that waits for a lock of `deliveries` itself is answered by the new function. To every node both words mean
    // that there is no slot.
    [expect.stringMatching(/^(?:parked|throttled)$/)],
    'waiting',
    'waiting',
    [{ open_test_delivery: '' }],
    ...calls.slice(5, 8),
    hosts,
  ]);
  expect(calls[6]).toEqual([{ sent: 0 }]);
  expect(await throttled('d')).toEqual(['d5 endpoint', 'd6 endpoint', 'd7 endpoint']);
  expect(await names('select endpoint as name from slow_endpoints')).toEqual(['b']);
  expect(
    await names(`select delivery_id as name from delivery_slots where endpoint in ('e', 'lane t') order by 1`),
  ).toEqual(['e', 'f', 't']);
  // What they handed on, and what the sweep hands on if they saw none who waits.
  for (const host of ['a.test', 'b.test']) await db.query('select move_backlog($1, $2)', [host, now]);
  expect([await handedOn('a'), await handedOn('b')]).toEqual([['a5'], []]);
  expect(await checkBooks(db, { more: delivery_rules })).toMatchObject({ ok: true });
});

/** Waits until as many calls wait for a lock. */
async function untilWaiting(count: number): Promise<void> {
  for (;;) {
    const [row] = await db.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    if (row?.n === count) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
