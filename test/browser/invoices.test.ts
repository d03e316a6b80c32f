import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { ownerOf } from '../../src/accounts/members.ts';
import { makeInvoices } from '../../src/billing/invoices.ts';
import { close, hold } from '../../src/money/holds.ts';
import { exact } from '../../src/money/money.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, settled, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';
import { keyboardOf } from '../helpers/keyboard.ts';
import { pagesOfPdf } from '../helpers/pdf.ts';

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let account_id: string;
let owner_id: string;

const january = { from: new Date('2026-01-01T00:00:00Z'), to: new Date('2026-02-01T00:00:00Z') };

beforeAll(async () => {
  service = await startTestApp({ yaml: 'version: 1\nbilling: { issuer: { name: Żółw } }\n' });
  chromium = await launchBrowser();
  const { db, catalog } = service.app;
  const now = new Date('2026-01-10T00:00:00Z');
  const account = await createAccount(db, { name: 'Gęś', currency: 'USD', initial_credit: 5_000_000n }, now);
  account_id = account.id;
  owner_id = await ownerOf(db, account_id, now);
  const { key } = await createKey(db, { account_id, name: 'Test', limit_month: null }, now);
  const costs = [1_234_567n, 1n, 1_987_656n];
  for (const [index, cost] of costs.entries()) {
    const ref = `task_${index}`;
    const held = {
      account_id,
      key_id: key.id,
      ref,
      amount: 1_990_000n,
      model: `a/model-${index % 2}`,
      kind: 'image',
    } as const;
    await hold(db, held, now);
    await close(db, { account_id, ref, cost, beyond_hold: false }, now);
  }
  const { issuer } = catalog.current.settings;
  if (!issuer) throw new Error('there is no issuer');
  await makeInvoices(db, { issuer, month: '2026-01', now: new Date('2026-02-01T01:00:00Z') });
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

test('an invoice is downloaded by keyboard, and its total is that of the ledger', async () => {
  const context = await contextOf(chromium.browser);
  const { page, problems } = await watchedPage(context, service.url);
  await signIn(page, service.app, owner_id, '/billing');
  await settled(page);
  const keyboard = keyboardOf(page);
  await keyboard.tabTo('tab', 'Balance');
  await keyboard.press('ArrowRight');
  await page.waitForURL(/tab=invoices/);
  await keyboard.tabTo('link', 'PDF of MED-2026-0001');
  const [download] = await Promise.all([page.waitForEvent('download'), keyboard.press('Enter')]);
  expect(download.suggestedFilename()).toBe('MED-2026-0001.pdf');
  const [ledger] = await service.app.db.query<{ sum: bigint }>(
    `select sum(revenue)::bigint as sum from ledger_entries
      where account_id = $1 and type = 'settle' and created_at >= $2 and created_at < $3`,
    [account_id, january.from, january.to],
  );
  const total = exact(ledger?.sum ?? 0n);
  expect(total).toBe('3.222224');
  const text = (await pagesOfPdf(await readFile(await download.path()))).join('\n');
  for (const part of ['Żółw', 'Gęś', 'MED-2026-0001', `${total} USD`]) expect(text).toContain(part);
  expect(problems).toEqual([]);
  await context.close();
});

test('the invoice address of mails works in dark mode and on a phone, and passes axe', async () => {
  for (const options of [{}, { colorScheme: 'dark', viewport: { width: 360, height: 780 } }] as const) {
    const context = await contextOf(chromium.browser, options);
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, owner_id, '/billing/invoices');
    await page.getByRole('row', { name: /January 2026/ }).waitFor();
    expect(new URL(page.url()).search).toBe('?tab=invoices');
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);
    expect(problems).toEqual([]);
    await context.close();
  }
});

test('a page without invoices says why', async () => {
  const { db } = service.app;
  const now = new Date();
  const account = await createAccount(db, { name: 'New', currency: 'USD', initial_credit: 0n }, now);
  const context = await contextOf(chromium.browser);
  const { page } = await watchedPage(context, service.url);
  await signIn(page, service.app, await ownerOf(db, account.id, now), '/billing/invoices');
  await page.getByRole('heading', { name: 'No invoices yet' }).waitFor();
  expect(await violationsIn(page)).toEqual([]);
  await service.configure('version: 1\n');
  await page.reload();
  await page.getByRole('heading', { name: 'No invoices here' }).waitFor();
  await page.getByText('billing.issuer').waitFor();
  await context.close();
});
