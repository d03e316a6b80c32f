import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeDueInvoices, makeInvoices, findInvoice, invoiceTime, listInvoices } from '../../src/billing/invoices.ts';
import type { Issuer } from '../../src/billing/invoice.ts';
import { service_rules } from '../../src/chat/books.ts';
import type { Db } from '../../src/db/database.ts';
import { checkBooks } from '../../src/money/books.ts';
import { close, hold } from '../../src/money/holds.ts';
import { credit } from '../../src/money/ledger.ts';
import { usageOf } from '../../src/money/usage.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, openWallet, type Wallet } from '../money/setup.ts';

let database: TestDatabase;
let db: Db;

const issuer: Issuer = {
  name: 'Żółw i Spółka',
  address: 'ul. Łąkowa 1\n00-001 Warszawa',
  tax_id: 'PL123',
  series: 'MED',
};

beforeAll(async () => {
  database = await testDatabase();
  db = database.db;
});

afterAll(() => database.drop());

const at = (text: string) => new Date(text);

let refs = 0;

async function charge(
  wallet: Wallet,
  cost: bigint,
  when: string,
  model = 'test/model',
  units?: Record<string, string>,
) {
  const ref = `task_${++refs}`;
  await hold(db, { ...holdOf(wallet, ref, cost), model, kind: 'image' }, at(when));
  await close(db, { ...closeOf(wallet, ref, cost), ...(units && { units }) }, at(when));
}

const opened = (when: string, credit_amount = 50_000_000n) => openWallet(db, { credit: credit_amount, now: at(when) });

const wrongRules = async () =>
  (await checkBooks(db, { full: true, more: service_rules })).findings.map(({ rule }) => rule);

/** Numbers of a year, in order. */
async function serials(series: string, year: number): Promise<bigint[]> {
  const rows = await db.query<{ serial: bigint }>(
    'select serial from invoices where series = $1 and year = $2 order by serial',
    [series, year],
  );
  return rows.map(({ serial }) => serial);
}

it('an invoice has every charge of its month, to the millisecond and the millionth', async () => {
  const wallet = await opened('2026-01-10T00:00:00Z');
  await charge(wallet, 999_999n, '2026-01-31T23:59:59.999Z');
  await charge(wallet, 1_000_001n, '2026-02-01T00:00:00.000Z', 'a/model', { image: '2' });
  await charge(wallet, 1n, '2026-02-28T23:59:59.999Z', 'a/model', { image: '1.5' });
  await charge(wallet, 7_654_321n, '2026-02-14T00:00:00.000Z', 'b/model', { megapixel: '0.25' });
  await charge(wallet, 3_000_000n, '2026-03-01T00:00:00.000Z');
  await credit(
    db,
    { account_id: wallet.account_id, type: 'topup', amount: 5n, ref: 'p 1', reason: 'wpłata' },
    at('2026-02-03T10:00:00Z'),
  );
  await credit(
    db,
    { account_id: wallet.account_id, type: 'adjustment', amount: -2n, ref: 'c 1', reason: 'korekta' },
    at('2026-02-04T10:00:00Z'),
  );
  const run = await makeInvoices(db, {
    issuer: { ...issuer, series: 'A', tax_percent: '23' },
    month: '2026-02',
    now: at('2026-03-01T01:00:00Z'),
  });
  expect(run).toMatchObject({ existing: 0, failed: [] });
  expect(run.created).toHaveLength(1);
  const [invoice] = run.created;
  expect(invoice).toMatchObject({
    number: 'A-2026-0001',
    issued_on: '2026-03-01',
    from: '2026-02-01',
    to: '2026-02-28',
    currency: 'USD',
    issuer: { name: 'Żółw i Spółka', address: ['ul. Łąkowa 1', '00-001 Warszawa'] },
    customer: { name: 'test', address: [] },
    lines: [
      { model: 'a/model', kind: 'image', charges: 2, units: { image: '3.5' }, amount: '1.000002' },
      { model: 'b/model', kind: 'image', charges: 1, units: { megapixel: '0.25' }, amount: '7.654321' },
    ],
    total: '8.654323',
    tax_percent: '23',
    net: '7.036035', // 8.654323 / 1.23, rounded once
    tax: '1.618288',
    balance: { opening: '49.000001', closing: '40.345681' },
  });
  expect(invoice?.balance.movements.map(({ type, amount, reason }) => [type, amount, reason])).toEqual([
    ['topup', '0.000005', 'wpłata'],
    ['adjustment', '-0.000002', 'korekta'],
  ]);
  const usage = await usageOf(db, {
    account_id: wallet.account_id,
    from: at('2026-02-01T00:00:00Z'),
    to: at('2026-03-01T00:00:00Z'),
    group_by: [],
  });
  expect(usage[0]?.cost).toBe(8_654_323n);
  expect(await wrongRules()).toEqual([]);
});

it('a second run creates nothing, changes nothing and takes no number', async () => {
  const wallet = await opened('2025-01-10T00:00:00Z');
  await charge(wallet, 1_000_000n, '2025-01-15T00:00:00Z');
  const options = { issuer: { ...issuer, series: 'B' }, month: '2025-01', account_id: wallet.account_id };
  const [first] = (await makeInvoices(db, { ...options, now: at('2025-02-01T01:00:00Z') })).created;
  const again = await makeInvoices(db, {
    ...options,
    now: at('2025-02-05T01:00:00Z'),
    issuer: { ...issuer, series: 'B', name: 'Other' },
  });
  expect(again).toEqual({ created: [], existing: 1, failed: [] });
  expect(await findInvoice(db, wallet.account_id, 'B-2025-0001')).toEqual(first);
  expect(await serials('B', 2025)).toEqual([1n]);
});

it('concurrent runs share one series of numbers without gaps, and a run that dies returns its number', async () => {
  const wallets = await Promise.all(Array.from({ length: 6 }, () => opened('2024-05-01T00:00:00Z')));
  for (const wallet of wallets) await charge(wallet, 10n, '2024-05-20T00:00:00Z');
  const run = (account_id?: string) =>
    makeInvoices(db, {
      issuer: { ...issuer, series: 'C' },
      month: '2024-05',
      now: at('2024-06-01T02:00:00Z'),
      account_id,
    });
  const [unlucky] = wallets;
  // The third account's row cannot be written: the transaction ends after its number was taken.
  await db.query(
    `create function fall_over() returns trigger language plpgsql as $$ begin
       if new.account_id = '${unlucky?.account_id}' then raise exception 'the disk is on fire'; end if; return new; end $$`,
  );
  await db.query('create trigger falls before insert on invoices for each row execute function fall_over()');
  const broken = await run();
  expect(broken.created).toHaveLength(5);
  expect(broken.failed.map(({ account_id }) => account_id)).toEqual([unlucky?.account_id]);
  expect(await serials('C', 2024)).toEqual([1n, 2n, 3n, 4n, 5n]);
  await db.query('drop trigger falls on invoices');
  const runs = await Promise.all([run(), run(), run(unlucky?.account_id)]);
  expect(runs.flatMap(({ created }) => created.map(({ number }) => number))).toEqual(['C-2024-0006']);
  expect(await serials('C', 2024)).toEqual([1n, 2n, 3n, 4n, 5n, 6n]);
  expect(await wrongRules()).toEqual([]);
});

it('nothing changes an invoice, whatever becomes of the account', async () => {
  const wallet = await opened('2023-01-10T00:00:00Z');
  await charge(wallet, 1_000_000n, '2023-01-15T00:00:00Z');
  await db.query(
    `insert into billing_details (account_id, company, address, postal_code, city, country, tax_id, email, updated_at)
     values ($1, 'Gęś sp. z o.o.', 'ul. Źródlana 2', '30-001', 'Kraków', 'PL', 'PL777', 'faktury@example.com', now())`,
    [wallet.account_id],
  );
  const now = at('2023-02-01T01:00:00Z');
  const [invoice] = (await makeInvoices(db, { issuer: { ...issuer, series: 'D' }, month: '2023-01', now })).created;
  expect(invoice?.customer).toEqual({
    account_id: wallet.account_id,
    name: 'Gęś sp. z o.o.',
    address: ['ul. Źródlana 2', '30-001 Kraków', 'PL'],
    tax_id: 'PL777',
    email: 'faktury@example.com',
  });
  await db.query(`update billing_details set company = 'Other' where account_id = $1`, [wallet.account_id]);
  expect(await findInvoice(db, wallet.account_id, 'D-2023-0001')).toEqual(invoice);
  for (const statement of [
    `update invoices set total = 0`,
    `update invoices set snapshot = '{}'`,
    `delete from invoices`,
    `truncate invoices cascade`,
  ]) {
    await expect(db.query(statement), statement).rejects.toThrow('invoices are never changed or deleted');
  }
  const other = await opened('2023-01-10T00:00:00Z');
  expect(await findInvoice(db, other.account_id, 'D-2023-0001')).toBeUndefined();
});

it('the service creates the missing invoices of the last three months an hour after they end, and looks once', async () => {
  const wallet = await opened('2029-09-01T00:00:00Z');
  for (const month of ['09', '10', '11', '12']) await charge(wallet, 100n, `2029-${month}-15T00:00:00Z`);
  const due = async (now: string) => {
    const { created, failed } = await makeDueInvoices(db, { issuer: { ...issuer, series: 'E' }, now: at(now) });
    expect(failed).toEqual([]);
    return created.map(({ number, month }) => `${month} ${number}`);
  };
  expect(await due('2029-10-31T23:59:59.999Z')).toEqual(['2029-09 E-2029-0001']);
  expect(await due('2029-11-01T00:59:59.999Z')).toEqual([]);
  expect(await due('2029-11-01T01:00:00.000Z')).toEqual(['2029-10 E-2029-0002']);
  // Down over two ends of a month, and over the end of the year: the new year has numbers of its own.
  expect(await due('2030-01-20T12:00:00Z')).toEqual(['2029-11 E-2030-0001', '2029-12 E-2030-0002']);
  expect(await due('2030-01-20T12:10:00Z')).toEqual([]);
  const { lines, has_more } = await listInvoices(db, { account_id: wallet.account_id, limit: 3 });
  expect([lines.map(({ month }) => month), has_more]).toEqual([['2029-12', '2029-11', '2029-10'], true]);
  const rest = await listInvoices(db, { account_id: wallet.account_id, limit: 3, before: lines.at(-1)?.number });
  expect([rest.lines.map(({ month }) => month), rest.has_more]).toEqual([['2029-09'], false]);
  expect(await wrongRules()).toEqual([]);
});

it('a charge after the invoice of its month goes on a supplementary one, and the books agree', async () => {
  const wallet = await opened('2028-03-01T00:00:00Z');
  await charge(wallet, 100n, '2028-03-15T00:00:00Z');
  await makeInvoices(db, { issuer: { ...issuer, series: 'F' }, month: '2028-03', now: at('2028-04-01T01:00:00Z') });
  expect(await wrongRules()).toEqual([]);
  await charge(wallet, 3n, '2028-03-31T23:59:59Z');
  const { findings } = await checkBooks(db, { more: service_rules });
  expect(findings).toEqual([
    expect.objectContaining({
      rule: 'an invoice comes to what the ledger charged in its month',
      subject: 'F-2028-0001',
    }),
  ]);
  await credit(
    db,
    { account_id: wallet.account_id, type: 'topup', amount: 7n, ref: 'late', reason: 'late' },
    at('2028-03-31T23:59:59Z'),
  );
  await charge(wallet, 1_000n, '2028-04-02T00:00:00Z');
  const run = { issuer: { ...issuer, series: 'F' }, month: '2028-03', now: at('2028-04-03T00:00:00Z') };
  const { created } = await makeInvoices(db, run);
  expect(created).toMatchObject([
    {
      number: 'F-2028-0002',
      supplement_to: 'F-2028-0001',
      lines: [{ charges: 1, amount: '0.000003' }],
      total: '0.000003',
      balance: { opening: '49.999900', movements: [{ amount: '0.000007' }], closing: '49.999904' },
    },
  ]);
  expect(await wrongRules()).toEqual([]);
  expect(await makeInvoices(db, run)).toMatchObject({ created: [] });
  await charge(wallet, 4n, '2028-03-31T23:59:59Z');
  await Promise.all([makeInvoices(db, run), makeInvoices(db, run), makeInvoices(db, run)]);
  const { lines } = await listInvoices(db, { account_id: wallet.account_id, limit: 2 });
  expect(lines).toMatchObject([
    { number: 'F-2028-0003', supplement_to: 'F-2028-0001', month: '2028-03', total: 4n },
    { number: 'F-2028-0002', supplement_to: 'F-2028-0001', month: '2028-03', total: 3n },
  ]);
  const rest = await listInvoices(db, { account_id: wallet.account_id, limit: 2, before: 'F-2028-0002' });
  expect(rest).toMatchObject({ lines: [{ number: 'F-2028-0001', supplement_to: null, total: 100n }], has_more: false });
  expect(await wrongRules()).toEqual([]);
});

it('the service itself supplements months that it has completed', async () => {
  const wallet = await opened('2027-06-01T00:00:00Z');
  await charge(wallet, 100n, '2027-06-15T00:00:00Z');
  const due = async (now: string) =>
    (await makeDueInvoices(db, { issuer: { ...issuer, series: 'G' }, now: at(now) })).created;
  expect(await due('2027-07-01T01:00:00Z')).toMatchObject([{ number: 'G-2027-0001' }]);
  await charge(wallet, 3n, '2027-06-30T23:59:59Z');
  expect(await due('2027-07-01T01:10:00Z')).toMatchObject([
    { number: 'G-2027-0002', supplement_to: 'G-2027-0001', total: '0.000003' },
  ]);
  expect(await due('2027-07-01T01:20:00Z')).toEqual([]);
  while (
    Number((await db.query<{ left: bigint }>('select add_up_usage($1, 1000) as left', [wallet.account_id]))[0]?.left) >
    0
  );
  expect(await due('2027-07-01T01:30:00Z')).toEqual([]);
  await charge(wallet, 9n, '2027-06-30T23:59:59Z');
  expect(await due('2027-07-01T01:40:00Z')).toMatchObject([{ number: 'G-2027-0003', total: '0.000009' }]);
  expect(await wrongRules()).toEqual([]);
});

it('the time of an invoice is never later than that of the database', async () => {
  const ahead = new Date(Date.now() + 40 * 86_400_000);
  expect((await invoiceTime(db, ahead)).getTime()).toBeLessThan(Date.now() + 60_000);
  const behind = at('2020-01-01T00:00:00Z');
  expect(await invoiceTime(db, behind)).toEqual(behind);
});
