import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeInvoices } from '../../src/billing/invoices.ts';
import type { Invoice } from '../../src/billing/invoice.ts';
import { createKey } from '../../src/accounts/keys.ts';
import type { LedgerLine } from '../../src/dashboard/views/billing.ts';
import type { InvoicesView } from '../../src/dashboard/views/invoices.ts';
import { close, hold } from '../../src/money/holds.ts';
import { usageOf } from '../../src/money/usage.ts';
import { exact } from '../../src/money/money.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { pagesOfPdf } from '../helpers/pdf.ts';
import { memberOf, ownerOfNew, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;
let stranger: Someone;

const issuer = { name: 'Żółw i Spółka', address: 'ul. Łąkowa 1', tax_id: 'PL1', series: 'MED' };
const months = ['2024-01', '2024-02', '2024-03'];

beforeAll(async () => {
  test = await startTestApp({ worker: false });
  [owner, stranger] = await Promise.all([ownerOfNew(test, '=Gęś & Źrebię'), ownerOfNew(test, 'Foreign')]);
  for (const who of [owner, stranger]) for (const month of months) await charge(who, month);
  for (const month of months) {
    const { failed } = await makeInvoices(test.app.db, { issuer, month, now: new Date('2024-05-01T00:00:00Z') });
    if (failed.length > 0) throw new Error('not every invoice was made');
  }
});

afterAll(() => test.stop());

let calls = 0;

async function charge({ account_id }: Someone, month: string): Promise<void> {
  const now = new Date(`${month}-15T00:00:00Z`);
  const { db } = test.app;
  const { key } = await createKey(db, { account_id, name: 'Test', limit_month: null }, now);
  for (const cost of [1_234_567n, 1n]) {
    const ref = `task_${++calls}`;
    const held = { account_id, key_id: key.id, ref, amount: cost, model: 'test/model', kind: 'image' as const };
    await hold(db, held, now);
    await close(db, { account_id, ref, cost, beyond_hold: false, units: { image: '1' } }, now);
  }
}

async function listed(who: Someone, query = ''): Promise<InvoicesView> {
  const { status, json } = await who.get(`${who.base}/invoices${query}`);
  expect(status).toBe(200);
  return json as InvoicesView;
}

async function bytesOf(who: Someone, path: string): Promise<{ headers: Headers; bytes: Uint8Array }> {
  const cookie = who.set_cookies.map((each) => each.split(';')[0]).join('; ');
  const response = await fetch(`${test.url}${who.base}${path}`, { headers: { cookie } });
  expect(response.status).toBe(200);
  return { headers: response.headers, bytes: new Uint8Array(await response.arrayBuffer()) };
}

it('the fixture has an invoice and its charges', async () => {
  const { data } = (await owner.get(`${owner.base}/ledger?type=charge&limit=100`)).json as { data: LedgerLine[] };
  const { data: invoices } = await listed(owner);
  const numbers = new Map(invoices.map(({ month, number }) => [month, number]));
  expect(data).toHaveLength(2 * months.length);
  for (const { invoice, created_at } of data) expect(invoice).toBe(numbers.get(created_at.slice(0, 7)));
});

it('the dashboard lists the invoices of the account by month, newest first', async () => {
  const all = await listed(owner);
  expect(all.data.map(({ month }) => month)).toEqual(months.toReversed());
  expect(all.data[0]?.total).toEqual({ amount: '1.23', currency: 'USD', exact: '1.234568' });
  expect([all.has_more, all.issues]).toEqual([false, false]);
  const first = await listed(owner, '?limit=2');
  expect([first.data.length, first.has_more]).toEqual([2, true]);
  const rest = await listed(owner, `?limit=2&before=${all.data[1]?.number}`);
  expect([rest.data.map(({ month }) => month), rest.has_more]).toEqual([['2024-01'], false]);
  expect((await owner.get(`${owner.base}/invoices?before=2024`)).status).toBe(400);
  const viewer = await memberOf(test, owner, 'viewer');
  expect(await listed(viewer)).toEqual(all);
});

it('the file, the table and the PDF of an invoice equal the ledger', async () => {
  const { data } = await listed(owner);
  const [newest] = data;
  const path = `/invoices/${newest?.number}`;
  const range = { from: new Date('2024-03-01T00:00:00Z'), to: new Date('2024-04-01T00:00:00Z'), group_by: [] };
  const [used] = await usageOf(test.app.db, { account_id: owner.account_id, ...range });
  const total = exact(used?.cost ?? 0n);
  expect(total).toBe('1.234568');

  const json = await owner.get(`${owner.base}${path}/json`);
  expect((json.json as Invoice).total).toBe(total);
  expect(json.headers.get('content-disposition')).toBe(`attachment; filename="${newest?.number}.json"`);

  const csv = await owner.get(`${owner.base}${path}/csv`);
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
  const rows = csv.text
    .trim()
    .split('\r\n')
    .map((row) => row.split(','));
  expect(rows.slice(1).map((row) => [row[2], row[3], row[7]])).toEqual([
    ['charge', 'test/model', total],
    ['total', '', total],
  ]);

  const { headers, bytes } = await bytesOf(owner, `${path}/pdf`);
  expect(headers.get('content-type')).toBe('application/pdf');
  expect(headers.get('content-disposition')).toBe(`attachment; filename="${newest?.number}.pdf"`);
  const text = (await pagesOfPdf(bytes)).join('\n');
  for (const part of [newest?.number ?? '-', '=Gęś & Źrebię', 'Żółw i Spółka', 'ul. Łąkowa 1', `${total} USD`]) {
    expect(text).toContain(part);
  }
});

it('an invoice of somebody else is as unknown as one that does not exist', async () => {
  const [theirs] = (await listed(stranger)).data;
  for (const form of ['pdf', 'csv', 'json']) {
    const answers = await Promise.all(
      [theirs?.number, 'MED-2024-9999', '%00', "'"].map((number) =>
        owner.get(`${owner.base}/invoices/${number}/${form}`),
      ),
    );
    for (const { status, json } of answers) {
      expect(status).toBe(404);
      expect(json).toMatchObject({ error: { type: 'not_found', message: 'There is no such invoice.' } });
    }
    expect((await owner.get(`${stranger.base}/invoices/${theirs?.number}/${form}`)).status).toBe(404);
  }
  expect((await owner.get(`${stranger.base}/invoices`)).status).toBe(404);
});
