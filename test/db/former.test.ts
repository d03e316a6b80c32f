import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { checkBooks } from '../../src/money/books.ts';
import { newId } from '../../src/lib/ids.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { openWallet, type Wallet } from '../money/setup.ts';

/**
 * The functions that only nodes of the version before call, as those call them: they do what the ones do that have
 * replaced them. This file goes with sql/functions/former.
 */
let database: TestDatabase;
let wallet: Wallet;
const now = new Date('2026-11-15T12:00:00Z');

beforeAll(async () => {
  database = await testDatabase({ state: 'engine' });
  wallet = await openWallet(database.db, { credit: 1_000_000n, now });
  for (const queue of ['task.start', 'task.poll', 'delivery.send']) {
    await database.db.query(`select pgboss.create_queue($1, '{"policy":"standard"}')`, [queue]);
  }
});

afterAll(() => database.drop());

async function call(text: string, values: readonly unknown[]): Promise<unknown> {
  const [row] = await database.db.query(`select * from ${text}`, values);
  return row;
}

it('money is held, kept and closed as before, alone and in a batch', async () => {
  const { account_id, key_id } = wallet;
  const expires = new Date(now.getTime() + 900_000);
  const used = '{"basis": "counted", "cost": "7", "base": "7", "currency": "USD", "provider": "p", "route": "r"}';
  const held = ['a', 100n, 'm', 'chat', expires, 'node_1'];
  expect(
    await call('money_hold($1, $2, $3, $4, $5, $6, $7, $8, $9)', [now, account_id, key_id, ...held]),
  ).toMatchObject({ outcome: 'held', available: 999_900n });
  expect(await database.db.query('select amount, expires_at, node_id from open_holds')).toEqual([
    { amount: 100n, expires_at: expires, node_id: 'node_1' },
  ]);
  expect(
    await call('money_close($1, $2, $3, $4, $5, $6, $7)', [now, account_id, 'a', 120n, true, '{"token": "1"}', used]),
  ).toMatchObject({ outcome: 'settled', charged: 120n, available: 999_880n, upstream: 7n });
  expect(
    await call('money_keep($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)', [
      now,
      account_id,
      key_id,
      'b',
      100n,
      'm',
      'chat',
      50n,
      true,
      null,
      used,
    ]),
  ).toMatchObject({ outcome: 'settled', charged: 50n, available: 999_830n });
  const members = [
    ['hold', 'keep', 'close'],
    [account_id, account_id, account_id],
    [key_id, key_id, null],
    ['c', 'd', 'a'],
    [100n, 10n, null],
    ['m', 'm', null],
    ['chat', 'chat', null],
    [expires, null, null],
    [false, true, true],
    [null, null, null],
    [null, used, null],
    [null, 20n, null],
    'node_1',
  ];
  expect(
    await call(
      `money_batch($1, $2, $3, $4, $5, $6::bigint[], $7, $8, $9::timestamptz[], $10::boolean[], $11::jsonb[], $12::jsonb[],
         $13::bigint[], $14)`,
      [now, ...members],
    ),
  ).toMatchObject({ outcome: ['held', 'settled', 'closed'], state: [null, 'settled', 'settled'] });
  const [open] = await database.db.query('select expires_at from open_holds');
  expect(open).toEqual({ expires_at: expires });
  await call(`money_upstream($1, $2, 'a', '1', 'p', 'r', 'm', 'chat', 'unknown')`, [now, account_id]);
  expect(await checkBooks(database.db)).toMatchObject({ ok: true });
});

it('a task is created, run, and finished with its webhook as before', async () => {
  const { account_id, key_id } = wallet;
  const { db } = database;
  const deadline = new Date(now.getTime() + 3_600_000);
  const task = (id: string) => [
    account_id,
    key_id,
    id,
    'sandbox/image',
    'image',
    '{"prompt":"\\u0000"}',
    '{}',
    'http://127.0.0.1/hook',
    'USD',
    '{}',
    '{"image":"1"}',
    10000n,
  ];
  const ids = [newId('task'), newId('task'), newId('task')];
  const once = ['key', randomBytes(32)];
  expect(
    await call('create_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 25, $15, $16)', [
      now,
      ...task(ids[0] ?? ''),
      deadline,
      ...once,
    ]),
  ).toMatchObject({ outcome: 'created', task_id: ids[0] });
  const columns = task('').map((_, i) => ids.slice(1).map((id) => task(id)[i]));
  expect(
    await call(
      `create_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::jsonb[], $12::jsonb[], $13::bigint[],
         array[$14, $14]::timestamptz[], array[$15, $15]::timestamptz[], 25)`,
      [now, ...columns, now, deadline],
    ),
  ).toMatchObject({ outcome: ['created', 'created'] });
  const [id = ''] = ids;
  await call(`open_attempt($1, $2, $3, 1, 'claim', 'r', 'p', '{}')`, [now, account_id, id]);
  const accepted = [now, account_id, id, '"ref"'];
  expect(await call(`accept_attempt($1, $2, $3, 1, 'claim', null, $4, true, 1000)`, accepted)).toEqual({
    accept_attempt: true,
  });
  expect(
    await call(
      `finish_task($1, $2, $3, 'claim', $1, $1, 'failed', 0, null, null, 'timeout', 'late', true, '{"id":1}', '[]', 'failed',
         'late', null, '{"id": "dlv_1", "lane": "l", "host": "h"}')`,
      [now, account_id, id],
    ),
  ).toEqual({ finish_task: 'finished' });
  expect(
    await db.query('select status, error_type, counts_as_failure, body, input from tasks where id = $1', [id]),
  ).toEqual([
    {
      status: 'failed',
      error_type: 'timeout',
      counts_as_failure: true,
      body: '{"id":1}',
      input: '{"prompt":"\\u0000"}',
    },
  ]);
  expect(await db.query('select id, body, event from deliveries')).toEqual([
    { id: 'dlv_1', body: '{"id":1}', event: 'task.failed' },
  ]);
  await call(`open_attempt($1, $2, $3, 1, 'claim', 'r', 'p', '{}')`, [now, account_id, ids[1]]);
  expect(
    await call(`close_attempt($1, $2, $3, 1, 'claim', 'ambiguous', 'lost', 'm', true)`, [now, account_id, ids[1]]),
  ).toEqual({ close_attempt: true });
  expect(await checkBooks(db)).toMatchObject({ ok: true });
});

it('a file and a test payload are written as before', async () => {
  const { account_id, key_id } = wallet;
  const { db } = database;
  const later = new Date(now.getTime() + 3_600_000);
  const file = (id: string) =>
    call(
      `add_file($1, $2, $3, $4, null, 'a.png', 'user_data', 's', 'image', 'image/png', 10, 1, 1, null, $5, 1, 100)`,
      [now, account_id, id, key_id, later],
    );
  expect([await file('f1'), await file('f2')]).toEqual([{ add_file: 'added' }, { add_file: 'too_many' }]);
  expect(await db.query('select id, ready, created_at, size_bytes from files')).toEqual([
    { id: 'f1', ready: false, created_at: now, size_bytes: 10n },
  ]);
  await call(`open_test_delivery($1, $2, 'dlv_t', 'u', 'b', 'l', 'h', 'claim', 1000)`, [now, account_id]);
  await call(`queue_delivery($1, $2, 'dlv_q', null, 'task.failed', 'u', 'b', 'l', 'h')`, [now, account_id]);
  const rows = await db.query(`select id, by_hand from deliveries where id in ('dlv_t', 'dlv_q') order by id`);
  expect(rows).toEqual([
    { id: 'dlv_q', by_hand: false },
    { id: 'dlv_t', by_hand: true },
  ]);
});
