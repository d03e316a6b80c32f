import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Db, Tx } from '../../src/db/database.ts';
import { checkBooks, money_rule_names } from '../../src/money/books.ts';
import { close, hold } from '../../src/money/holds.ts';
import { credit } from '../../src/money/ledger.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, noon, openKey, openWallet, type Wallet } from './setup.ts';

let database: TestDatabase;
let dollars: Wallet;
let zlotys: Wallet;
let second_key: string;

beforeAll(async () => {
  database = await testDatabase();
  const { db } = database;
  dollars = await openWallet(db, { credit: 1_000n, limit: 900n });
  zlotys = await openWallet(db, { credit: 500n, currency: 'PLN' });
  second_key = await openKey(db, dollars.account_id);
  for (const wallet of [dollars, zlotys]) await move(db, wallet, 'first');
  for (const name of ['add_up_usage', 'add_up_margins']) await db.query(`select ${name}($1, 100)`, [zlotys.account_id]);
  await checkBooks(db);
});
afterAll(() => database.drop());

/** Some of every movement; leaves `… open` and the free `… nothing` open. */
async function move(db: Db, wallet: Wallet, name: string): Promise<void> {
  for (const what of ['settled', 'released', 'lost', 'open'])
    await hold(db, holdOf(wallet, `${name} ${what}`, 20n), noon);
  await hold(db, holdOf(wallet, `${name} nothing`, 0n), noon);
  await close(db, closeOf(wallet, `${name} settled`, 15n), noon);
  await close(db, closeOf(wallet, `${name} released`, null), noon);
  await close(db, closeOf(wallet, `${name} lost`, 25n), noon);
  const correction = {
    account_id: wallet.account_id,
    type: 'adjustment',
    amount: -3n,
    ref: name,
    reason: 'x',
  } as const;
  await credit(db, correction, noon);
}

/** Lets the tables accept anything for the time of a transaction that is rolled back at its end. */
const disarm = `
  alter table ledger_entries disable trigger all;
  do $$ declare c record; begin
    for c in select conrelid::regclass as name, conname from pg_constraint
      where contype in ('c', 'f') and conrelid::regclass::text in ('ledger_entries', 'balances', 'budgets', 'open_holds')
    loop execute format('alter table %s drop constraint %I', c.name, c.conname); end loop;
  end $$`;

/** Runs `work` on a Db whose transactions are parts of one that is rolled back at the end. */
async function undone(work: (db: Db, run: (sql: string) => Promise<number | null>) => Promise<void>): Promise<void> {
  const client = await database.db.pool.connect();
  try {
    await client.query('begin');
    const query: Tx['query'] = async (text, values = []) =>
      text.startsWith('set transaction') ? [] : (await client.query(text, [...values])).rows;
    await work({ ...database.db, query, tx: (part) => part({ transaction: true, query }) }, async (sql) => {
      const { rowCount } = await client.query(sql);
      return rowCount;
    });
  } finally {
    await client.query('rollback');
    client.release();
  }
}

const entry = (ref: string, event: string) =>
  `account_id = '${dollars.account_id}' and ref = '${ref}' and event = '${event}'`;
const own = () => `account_id = '${dollars.account_id}'`;

/** A hard budget that nothing has counted in, with a millionth there. */
const budgetWith = (counter: 'spent' | 'held') =>
  `insert into account_budgets (id, account_id, name, scope, period, amount, is_hard, created_at, period_start, since, ${counter})
     select 'budget_x', account_id, 'X', 'account', 'total', 100, true, now(), now(), entries, 1 from balances where ${own()}`;

/** For each rule a change of one row, by one millionth where it is about an amount. */
const corruptions: [rule: string, sql: () => string, difference?: string | RegExp][] = [
  [
    'the legs of every movement add up to nothing',
    () => `update ledger_entries set loss = loss + 1 where ${entry('first lost', 'close')}`,
  ],
  [
    'the legs of every movement add up to nothing',
    () => `update ledger_entries set upstream_cost = upstream_cost + 1 where ${entry('first lost', 'close')}`,
  ],
  [
    'what an upstream charges has a source, and belongs to a run or a call',
    () => `update ledger_entries set upstream_cost = 1, upstream_owed = -1 where ${entry('first lost', 'close')}`,
  ],
  [
    'every movement is between the books of its type',
    () => `update ledger_entries set topup_source = 1, adjust = -1 where ${entry('first open', 'hold')}`,
  ],
  [
    'every movement is between the books of its type',
    () => `update ledger_entries set revenue = 1, loss = -1 where ${entry('first released', 'close')}`,
  ],
  [
    'entries are numbered without gaps and each tells the sums so far',
    () => `update ledger_entries set available_after = available_after + 1 where ${entry('first lost', 'close')}`,
    '0.000002',
  ],
  [
    'entries are numbered without gaps and each tells the sums so far',
    () =>
      `update ledger_entries set number = number + 1 where number = (select entries from balances where ${own()}) and ${own()}`,
    '0.000000',
  ],
  ['a balance is the sum of its entries', () => `update balances set amount = amount + 1 where ${own()}`],
  [
    'a balance is the sum of its entries',
    () => `delete from ledger_entries where ${own()} and ref = 'first' and event = 'adjustment'`,
  ],
  [
    'no key spends and holds more than its limit',
    () => `update budgets set limit_month = spent + held - 1 where key_id = '${dollars.key_id}'`,
    '0.000001',
  ],
  ['no balance and no budget is below zero', () => `update balances set held = -1 where ${own()}`],
  ['no balance and no budget is below zero', () => `update balances set amount = held - 1 where ${own()}`],
  [
    'no balance and no budget is below zero',
    () => `update budgets set spent = -1 where key_id = '${second_key}'`,
    '0.000002',
  ],
  [
    'available and held are never below zero',
    () => `update ledger_entries set available_after = -1 where ${entry('first lost', 'close')}`,
  ],
  [
    'held is the sum of the open holds of the account',
    () => `update balances set held = held + 1, amount = amount + 1 where ${own()}`,
  ],
  [
    'held is the sum of the open holds of the account',
    () => `update open_holds set account_id = 'acct_ghost' where ${own()} and ref = 'first open'`,
  ],
  [
    'held is the sum of the open holds of the key',
    () => `update budgets set held = held + 1 where key_id = '${second_key}'`,
    '0.000001',
  ],
  [
    'held is the sum of the open holds of the key',
    () => `update open_holds set key_id = '${second_key}' where ${own()} and amount > 0`,
  ],
  [
    'exposed is what the open holds of the account and of the key may cost beyond them',
    () => `update balances set exposed = exposed + 1, amount = amount + 1 where ${own()}`,
  ],
  [
    'exposed is what the open holds of the account and of the key may cost beyond them',
    () => `update budgets set exposed = exposed + 1 where key_id = '${second_key}'`,
    '0.000001',
  ],
  [
    'what a key spent in its month is the sum of its charges',
    () => `update budgets set spent = spent + 1 where key_id = '${dollars.key_id}'`,
    '0.000001',
  ],
  [
    'every movement counts in a month between its own and that of its key',
    () => `update ledger_entries set month = '2026-12-01' where ${entry('first released', 'close')}`,
    '0.000020',
  ],
  [
    'every movement counts in a month between its own and that of its key',
    () => `update ledger_entries set month = '2026-10-01' where ${entry('first released', 'close')}`,
  ],
  [
    'what was closed of a ledger is a part of it',
    () => `insert into ledger_openings values ('acct_ghost', '2026-11-01', 1, 5, 0, -5, 0, 0, 0, 0, 0)`,
    '0.000005',
  ],
  [
    'every open hold has its entry, and no end',
    () => `insert into open_holds values ('${dollars.account_id}', 'none', '${dollars.key_id}', 1, 'm', 'chat', now())`,
  ],
  [
    'every open hold has its entry, and no end',
    () =>
      `insert into open_holds values ('${dollars.account_id}', 'first settled', '${dollars.key_id}', 20, 'test/model', 'chat', now())`,
  ],
  [
    'every open hold has its entry, and no end',
    () => `update open_holds set model = 'other' where ${own()} and amount = 0`,
    '0.000000',
  ],
  [
    'every end closes an earlier hold of the same amount and key',
    () => `update ledger_entries set key_id = '${second_key}' where ${entry('first released', 'close')}`,
    '0.000000',
  ],
  [
    'every end closes an earlier hold of the same amount and key',
    () => `update ledger_entries set model = 'test/other' where ${entry('first released', 'close')}`,
    '0.000000',
  ],
  [
    'every end closes an earlier hold of the same amount and key',
    () => `update ledger_entries set ref = 'elsewhere' where ${entry('first released', 'close')}`,
  ],
  [
    'a late charge follows the release of its hold',
    () => `update ledger_entries set event = 'late' where ${entry('first lost', 'close')}`,
  ],
  [
    'every hold is open or has an end',
    () => `delete from open_holds where ${own()} and ref = 'first nothing'`,
    '0.000000',
  ],
  [
    'one currency per account',
    () => `update ledger_entries set currency = 'PLN' where ${entry('first lost', 'close')}`,
  ],
  ['one currency per account', () => `update balances set currency = 'EUR' where ${own()}`],
  ['what a budget spent in its period is the sum of its charges', () => budgetWith('spent')],
  ['held and exposed of a budget are those of its open holds, and no budget is passed', () => budgetWith('held')],
  [
    'money in − costs − corrections = balances, per currency',
    () => `update ledger_entries set topup_source = topup_source - 1 where ${own()} and type = 'topup'`,
  ],
  [
    'every entry belongs to an account',
    () => `insert into ledger_entries select * from jsonb_populate_record(null::ledger_entries,
             (select to_jsonb(e) || '{"account_id": "acct_ghost"}' from ledger_entries e where ${entry('first lost', 'close')}))`,
  ],
  ['sums of margins are those of the charges', () => `update margin_sums set revenue = revenue + 1 where step = 'day'`],
  ['sums of margins are those of the charges', () => `update margin_sums set runs = 1 where step = 'day'`, '0.000000'],
  ['sums of margins are those of the charges', () => `delete from margin_sums where step = 'day'`],
  [
    'sums of margins of a month are those of its days',
    () => `update margin_sums set base = 1 where step = 'month'`,
    '0.000000',
  ],
  ['sums of usage are those of the charges', () => `update usage_sums set cost = cost + 1 where step = 'day'`],
  ['sums of usage are those of the charges', () => `update usage_sums set charges = 1 where step = 'hour'`, '0.000000'],
  ['sums of usage are those of the charges', () => `delete from usage_sums where step = 'day'`],
  [
    'sums of usage are those of the charges',
    () => `update usage_sums set units = '{"second": "1"}' where step = 'hour'`,
    '0.000000',
  ],
];

test('the list of corruptions has every rule of the books', () => {
  const named = new Set(corruptions.map(([rule]) => rule));
  expect([...named].toSorted()).toEqual([...money_rule_names].toSorted());
});

test.each(corruptions.map(([rule, sql, difference = /[1-9]/], i) => ({ i, rule, sql, difference })))(
  'rule $i of the books fails on a corruption: $rule',
  async ({ rule, sql, difference }) => {
    await undone(async (db, run) => {
      await expectExactBooks(db);
      await run(disarm);
      expect(await run(sql())).toBe(1);
      const report = await checkBooks(db, { full: true });
      expect(report.findings.map((finding) => finding.rule)).toContain(rule);
      expect(report.ok).toBe(false);
      expect(report.difference).toMatch(difference);
    });
  },
);

test('an incremental run finds what is wrong after its mark, and a full run also what is wrong before it', async () => {
  await undone(async (db, run) => {
    await move(db, dollars, 'second');
    await run(disarm);
    await run('savepoint clean');
    await run(`update ledger_entries set available_after = available_after + 1 where ${entry('second lost', 'close')}`);
    expect(await checkBooks(db)).toMatchObject({ ok: false, difference: '0.000002' });
    // Nothing is marked as checked while something is wrong.
    expect(await checkBooks(db)).toMatchObject({ ok: false, difference: '0.000002' });

    await run('rollback to clean');
    await run(`update ledger_entries set available_after = available_after + 1 where ${entry('first lost', 'close')}`);
    expect(await checkBooks(db)).toMatchObject({ ok: true, difference: '0.000000' });
    const report = await checkBooks(db, { full: true });
    expect(report).toMatchObject({ ok: false, difference: '0.000002' });
    // The wrong one, and the next one that does not follow from it.
    expect(report.findings.map((finding) => finding.subject.split(' ')[0])).toEqual([
      dollars.account_id,
      dollars.account_id,
    ]);
    expect(await checkBooks(db)).toMatchObject({ ok: false, difference: '0.000002' });
  });
});

test('an incremental run reads balances, budgets and open holds again each time', async () => {
  for (const sql of [
    `update balances set amount = amount - 1 where ${own()}`,
    `update budgets set spent = spent - 1 where key_id = '${dollars.key_id}'`,
    `delete from open_holds where ${own()} and ref = 'first open'`,
  ]) {
    await undone(async (db, run) => {
      expect((await checkBooks(db)).ok).toBe(true);
      await run(disarm);
      expect(await run(sql)).toBe(1);
      expect((await checkBooks(db)).ok).toBe(false);
    });
  }
});

test('incremental runs continue across the end of a month', async () => {
  await undone(async (db) => {
    const wallet = { ...dollars, key_id: second_key };
    for (const [n, day] of ['2026-11-30T23:59:59.999Z', '2026-12-01T00:00:00Z', '2027-01-15T00:00:00Z'].entries()) {
      await hold(db, holdOf(wallet, `old ${n}`, 5n), new Date(day));
      await hold(db, holdOf(wallet, `m ${n}`, 5n), new Date(day));
      expect((await checkBooks(db)).findings).toEqual([]);
      await close(db, closeOf(wallet, `m ${n}`, 4n), new Date(day));
      if (n > 0) await close(db, closeOf(wallet, `old ${n - 1}`, 5n), new Date(day));
      expect((await checkBooks(db)).findings).toEqual([]);
    }
    await expectExactBooks(db);
  });
});

test('the books check rules of later modules, and the report counts what was checked', async () => {
  const { db } = database;
  const more = [
    { name: 'nothing is open', sql: `select ref as subject, 'open' as detail, amount as off_by from open_holds` },
  ];
  const report = await checkBooks(db, { more });
  expect(report).toMatchObject({ ok: false, difference: '0.000040', accounts: 2, open_holds: 4 });
  expect(report.findings).toHaveLength(4);
  expect(report.entries).toBe(2 * 10);
  expect(await checkBooks(db)).toMatchObject({ ok: true, difference: '0.000000' });
});

test('several runs of the books at once all succeed', async () => {
  const { db } = database;
  await move(db, zlotys, 'meanwhile');
  const reports = await Promise.all([1, 2, 3, 4].map((n) => checkBooks(db, { full: n % 2 === 0 })));
  expect(reports.map((report) => report.ok)).toEqual([true, true, true, true]);
});

test('entries are never changed or deleted, not even by the owner of the table', async () => {
  const { db } = database;
  for (const sql of [
    'update ledger_entries set reason = reason',
    'delete from ledger_entries',
    'truncate ledger_entries',
  ]) {
    await expect(db.query(sql)).rejects.toThrow('ledger entries are never changed or deleted');
  }
  await expectExactBooks(db);
});
