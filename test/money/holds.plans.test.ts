import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Tx } from '../../src/db/database.ts';
import { checkBooks } from '../../src/money/books.ts';
import { close, commit, hold, makeHoldBatcher } from '../../src/money/holds.ts';
import { credit } from '../../src/money/ledger.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, noon } from './setup.ts';

let database: TestDatabase;

/** Ids as long as the real ones: how high an index is depends on them. */
const tail = '0'.repeat(22);
const busy = { account_id: `acct_${tail}1500`, key_id: `key_${tail}1500` };

/** A thousand accounts with one entry each, of which the statistics tell. */
const make_accounts = `
  insert into accounts select 'acct_${tail}' || i, 'n', 'USD', 'active', 'whsec_', '2026-11-01' from generate_series(1001, 2000) i;
  insert into api_keys select 'key_${tail}' || i, 'acct_${tail}' || i, 'n', sha256(i::text::bytea), '', '', '2026-11-01' from generate_series(1001, 2000) i;
  insert into balances select id, 'USD' from accounts;
  insert into budgets select id, account_id, 900000, '2026-11-01' from api_keys;
  select count(money_credit('2026-11-01', id, 'topup', 100000, 'initial ' || id, 'r')) from accounts`;

/** Then one of them grows by 10,000 entries: now the primary key is the lower of the two trees, and tempts the planner. */
const grow = `
  do $$ begin
    for i in 10001 .. 15000 loop
      perform hold_money('2026-11-15', null, jsonb_build_object('account_id', '${busy.account_id}', 'key_id', '${busy.key_id}',
        'ref', 'chat_${tail}' || i, 'amount', 1, 'model', 'm', 'kind', 'chat'), null);
      perform close_hold('2026-11-15', jsonb_build_object('account_id', '${busy.account_id}', 'ref', 'chat_${tail}' || i, 'cost', 1));
    end loop;
  end $$`;

beforeAll(async () => {
  database = await testDatabase({ connections_max: 1 });
  const { db } = database;
  for (const table of ['balances', 'budgets', 'open_holds', 'ledger_entries', 'book_marks', 'book_key_marks']) {
    await db.query(`alter table ${table} set (autovacuum_enabled = false)`);
  }
  await db.query(make_accounts);
  await checkBooks(db);
  await db.query('vacuum analyze');
  await db.query(grow);
});
afterAll(() => database.drop());

/** Returns the number of rows that `work` makes PostgreSQL read. A new connection: nobody's plans are in it. */
async function rowsReadBy(work: (tx: Tx) => Promise<unknown>): Promise<number> {
  const { db } = database;
  await db.query('select pg_terminate_backend(pg_backend_pid())').catch(() => undefined);
  return db.tx(async (tx) => {
    // Twelve times: from the sixth on a function may use a plan that fits all values.
    for (let i = 0; i < 12; i++) await work(tx);
    const rows = await tx.query<{ n: string }>(
      'select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) as n from pg_stat_xact_user_tables',
    );
    return Number(rows[0]?.n) / 12;
  });
}

let n = 0;

test('a plain hold and its end read a handful of rows, however many the account has', async () => {
  const read = await rowsReadBy(async (tx) => {
    const ref = `plain${n++}`;
    expect((await hold(tx, holdOf(busy, ref, 2n), noon)).outcome).toBe('held');
    expect((await close(tx, closeOf(busy, ref, 1n), noon)).outcome).toBe('settled');
    expect((await close(tx, closeOf(busy, ref, 1n), noon)).outcome).toBe('closed');
    const held = holdOf(busy, `${ref} reserved`, 2n);
    const request = { hold: held, end: closeOf(busy, held.ref, 1n) };
    expect((await commit(tx, request, noon)).outcome).toBe('settled');
    expect((await commit(tx, request, noon)).outcome).toBe('closed');
    await credit(tx, { account_id: busy.account_id, type: 'topup', amount: 1n, ref, reason: 'x' }, noon);
  });
  expect(read).toBeGreaterThan(5);
  expect(read).toBeLessThan(30);
});

test('each member of a batch reads a handful of rows, however many the account has', async () => {
  const read = await rowsReadBy(async (tx) => {
    const batcher = makeHoldBatcher({ ...database.db, query: tx.query }, () => noon);
    const refs = [`batched${n++}`, `batched${n++}`, `batched${n++}`];
    await Promise.all(refs.map((ref) => batcher.hold(holdOf(busy, ref, 2n))));
    await Promise.all([...refs, `chat_${tail}10001`, 'none'].map((ref) => batcher.close(closeOf(busy, ref, 1n))));
    const requests = refs.map((ref) => holdOf(busy, `${ref} reserved`, 2n));
    await Promise.all(requests.map((held) => batcher.commit({ hold: held, end: closeOf(busy, held.ref, 1n) })));
  });
  expect(read).toBeGreaterThan(5);
  expect(read).toBeLessThan(60);
});

test('the books read each new entry a few times, not as often as there are entries', async () => {
  const { db } = database;
  const before = await totalRead();
  const report = await checkBooks(db);
  expect(report).toMatchObject({ ok: true, difference: '0.000000' });
  expect((await totalRead()) - before).toBeLessThan(12 * 11_200);

  async function totalRead(): Promise<number> {
    await db.query('select pg_stat_force_next_flush()');
    const rows = await db.query<{ n: string }>(
      'select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) as n from pg_stat_user_tables',
    );
    return Number(rows[0]?.n);
  }
});
