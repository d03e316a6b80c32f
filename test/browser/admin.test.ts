import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount, findAccount } from '../../src/accounts/accounts.ts';
import { firstOperator, ownerOf } from '../../src/accounts/members.ts';
import { newId } from '../../src/lib/ids.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';
import { keyboardOf } from '../helpers/keyboard.ts';

/** The work of operators with accounts: money by keyboard, the rest by clicking. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let context: BrowserContext;
let page: Page;
let problems: string[];
let customer: string;

/** For a machine that has much else to do. */
const patience_ms = 120_000;
const limit = { timeout: 300_000 };

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  const { db } = service.app;
  const now = new Date();
  const own = await createAccount(db, { name: 'House', currency: 'USD', initial_credit: 5_000_000n }, now);
  customer = (await createAccount(db, { name: 'Northwind', currency: 'EUR', initial_credit: 5_000_000n }, now)).id;
  context = await chromium.browser.newContext({ viewport: { width: 1200, height: 900 } });
  context.setDefaultTimeout(patience_ms);
  ({ page, problems } = await watchedPage(context, service.url));
  await signIn(page, service.app, await firstOperator(db, own.id, now));
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

const heading = (name: string) => page.getByRole('heading', { level: 1, name });

test('an operator finds an account, credits it and sees the new balance', limit, async () => {
  const keyboard = keyboardOf(page);
  await keyboard.enter('link', 'Accounts');
  await heading('Accounts').waitFor();
  await keyboard.tabTo('searchbox', 'Search');
  await page.keyboard.type('north');
  await page.waitForURL(/search=north/);
  await expect.poll(() => page.getByRole('row').count(), { timeout: patience_ms }).toBe(2);
  await keyboard.enter('link', 'Northwind');
  await heading('Northwind').waitFor();
  await page.getByText('€5.00').first().waitFor();

  await keyboard.enter('button', 'Credit or debit');
  await keyboard.isOn('textbox', /^Amount/);
  const dialog = page.getByRole('dialog');
  await keyboard.press('Enter');
  const problem = dialog.getByText('Enter an amount such as 1000.00.');
  await problem.waitFor();
  await dialog.getByText('Enter a reason').waitFor();
  await keyboard.fill(/^Reason/, 'Paid by transfer');
  await keyboard.fill(/^Amount/, '1,000'); // a thousand, or one?
  await keyboard.press('Enter');
  await problem.waitFor();
  await keyboard.fill(/^Amount/, '25,50');
  await keyboard.tabTo('button', 'Book');
  await keyboard.press('Enter', 'Enter');
  await dialog.waitFor({ state: 'hidden' });
  await keyboard.isOn('button', 'Credit or debit');
  await page.getByText('€30.50').first().waitFor();
  const entries = await service.app.db.query(
    `select 1 from ledger_entries where account_id = $1 and type = 'topup' and available = 25500000`,
    [customer],
  );
  expect(entries).toHaveLength(1);
});

test('an operator blocks an account after a question and unblocks it', limit, async () => {
  await page.goto(`${service.url}/admin/accounts/${customer}`);
  await page.getByRole('button', { name: 'Block', exact: true }).click();
  const dialog = page.getByRole('dialog');
  const slow = Promise.withResolvers<void>();
  await page.route('**/dash/admin/accounts/*/keys*', (route) => slow.promise.then(() => route.continue()));
  await dialog.getByRole('button', { name: 'Block', exact: true }).click();
  await page.getByText('Blocked', { exact: true }).waitFor();
  expect(await dialog.getByRole('heading').textContent(), 'while the page loads its new state').toBe('Block Northwind');
  slow.resolve();
  await dialog.waitFor({ state: 'hidden' });
  expect(await findAccount(service.app.db, customer)).toMatchObject({ status: 'blocked' });
  await page.getByRole('button', { name: 'Unblock' }).click();
  await dialog.getByRole('button', { name: 'Unblock' }).click();
  await page.getByText('Active', { exact: true }).waitFor();
  expect(await findAccount(service.app.db, customer)).toMatchObject({ status: 'active' });
});

test('an operator views an account as its people do, under a banner on every page, and leaves', limit, async () => {
  await page.goto(`${service.url}/admin/accounts/${customer}`);
  await page.getByRole('button', { name: 'View as' }).click();
  const banner = page.getByRole('complementary', { name: 'Viewing another account' });
  await banner.getByText('Northwind').waitFor();
  await page.getByRole('link', { name: /Available: €30\.50/ }).waitFor();
  await page.getByRole('navigation').getByRole('link', { name: 'API keys' }).click();
  await heading('API keys').waitFor();
  await banner.waitFor();
  await page.reload();
  await banner.waitFor();
  const create = page.getByRole('button', { name: /Create a key/ }).first();
  await expect.poll(() => create.getAttribute('aria-disabled')).toBe('true');

  await banner.getByRole('button', { name: 'Leave' }).click();
  await heading('Northwind').waitFor();
  await banner.waitFor({ state: 'hidden' });
  await page.getByRole('link', { name: /Available: \$5\.00/ }).waitFor();
  await page.getByRole('link', { name: 'Audit log of this account' }).click();
  await page.getByRole('cell', { name: 'account.view' }).first().waitFor();
  await page.getByRole('cell', { name: 'account.credit' }).first().waitFor();
  expect(problems).toEqual([]);
});

test('an operator tests a route, drains one and switches a model off, and customers notice', limit, async () => {
  const model = 'sandbox/failover';
  const status = async () => (await (await service.client()).call('GET', `/v1/models/${model}`)).json.status;
  await page.goto(`${service.url}/admin/models?search=${model}`);
  await page.getByRole('button', { name: `Test ${model}#good` }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Nothing has been sent yet').waitFor();
  expect(await violationsIn(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Make the call' }).click();
  await dialog.getByText('It works').waitFor();
  await dialog.getByRole('img', { name: 'Output' }).waitFor();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await dialog.waitFor({ state: 'hidden' });

  await page.getByRole('button', { name: `More for ${model}#broken` }).click();
  await page.getByRole('menuitem', { name: /^Drain/ }).click();
  await page.getByText('Drained').waitFor();
  expect(await status()).toBe('degraded');
  const takesWork = page.getByRole('switch', { name: `${model} takes new work` });
  await takesWork.focus();
  await page.keyboard.press('Space');
  await dialog.getByRole('button', { name: 'Switch off' }).and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'hidden' });
  expect(await status()).toBe('unavailable');
  await takesWork.and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Space');
  await expect.poll(status).toBe('degraded');
  expect(problems).toEqual([]);
});

test('an operator sees the workers and pauses one', limit, async () => {
  await page.goto(`${service.url}/admin/queue`);
  await page.getByRole('button', { name: /^Pause/ }).click();
  await page.getByText('Paused', { exact: true }).waitFor();
  await page.getByRole('button', { name: /^Resume/ }).click();
  await page.getByText('Takes jobs').waitFor();
  const limits = page.getByRole('region', { name: 'Limits in this process' });
  await expect.poll(() => limits.getByRole('row', { name: 'Requests with files 0 0 64 8' }).count()).toBe(1);
  expect(problems).toEqual([]);
});

test('an operator needs no account', limit, async () => {
  const { db } = service.app;
  const user_id = newId('user');
  await db.query(
    `insert into auth."user" (id, name, email, "emailVerified", "isOperator") values ($1, 'Night watch', $2, true, true)`,
    [user_id, `${user_id}@example.com`],
  );
  const other = await chromium.browser.newContext();
  other.setDefaultTimeout(patience_ms);
  const visit = await watchedPage(other, service.url);
  await signIn(visit.page, service.app, user_id);
  await visit.page.getByRole('link', { name: "Go to the operator's pages" }).click();
  await visit.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  expect(await visit.page.getByRole('link', { name: 'API keys' }).count()).toBe(0);
  await visit.page.goto(`${service.url}/settings?tab=security`);
  await visit.page.getByRole('tab', { name: 'Security' }).waitFor();
  expect(await visit.page.getByRole('tab', { name: 'Team' }).count()).toBe(0);
  await visit.page.goto(`${service.url}/admin/accounts/${customer}`);
  await visit.page.getByRole('button', { name: 'View as' }).click();
  const banner = visit.page.getByRole('complementary', { name: 'Viewing another account' });
  await banner.getByRole('button', { name: 'Leave' }).click();
  await visit.page.getByRole('heading', { level: 1, name: 'Northwind' }).waitFor();
  await banner.waitFor({ state: 'hidden' });
  expect(visit.problems).toEqual([]);
  await other.close();
});

test('a person who is not an operator finds no operator pages', limit, async () => {
  const other = await chromium.browser.newContext();
  other.setDefaultTimeout(patience_ms);
  const visit = await watchedPage(other, service.url);
  await signIn(visit.page, service.app, await ownerOf(service.app.db, customer, new Date()));
  expect(await visit.page.getByRole('link', { name: 'Audit log' }).count()).toBe(0);
  for (const path of ['/admin', '/admin/accounts', `/admin/accounts/${customer}`, '/admin/nothing']) {
    await visit.page.goto(service.url + path);
    await visit.page.getByRole('heading', { name: 'Page not found' }).waitFor();
  }
  await other.close();
});
