import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { ownerOf } from '../../src/accounts/members.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, settled, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner_id: string;
let secret: string;

const day_ms = 86_400_000;
/** Longer than the test takes. */
const room_ms = 240_000;

// A day that ends in the middle of the test has a new budget.
beforeAll(async () => {
  await vi.waitUntil(() => day_ms - (Date.now() % day_ms) > room_ms, { timeout: 2 * room_ms });
});
beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  const now = new Date();
  const account = { name: 'Own', currency: 'USD', initial_credit: 5_000_000n };
  const { id: account_id } = await createAccount(service.app.db, account, now);
  owner_id = await ownerOf(service.app.db, account_id, now);
  secret = (await createKey(service.app.db, { account_id, name: 'Worker', limit_month: null }, now)).text;
});

afterAll(async () => {
  await chromium?.close();
  await expectExactBooks(service.app);
  await service?.stop();
});

/** Asks for five seconds of audio, which cost five cents. */
async function generate(): Promise<number> {
  const response = await fetch(`${service.url}/v1/generate?wait=60`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/audio', input: { prompt: 'x', duration: 5 } }),
  });
  return response.status;
}

test('an owner makes a hard budget of a day on a phone, sees it used up and as a line of the usage, raises and removes it', async () => {
  const context = await contextOf(chromium.browser, { viewport: { width: 390, height: 844 } });
  const { page, problems } = await watchedPage(context, service.url);
  await signIn(page, service.app, owner_id, '/budgets');
  await settled(page);
  expect(await violationsIn(page)).toEqual([]);
  await page.getByRole('button', { name: 'Create a budget' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Create a budget' });
  await dialog.getByLabel('Name').fill('Night runs');
  await dialog.getByLabel('Amount in USD').fill('much');
  await dialog.getByRole('combobox', { name: 'Period' }).click();
  await page.getByRole('option', { name: 'Day', exact: true }).click();
  await dialog.getByRole('switch', { name: /^Hard/ }).click();
  await dialog.getByRole('group', { name: 'Alerts' }).getByRole('checkbox', { name: '50 %' }).uncheck();
  await dialog.getByRole('button', { name: 'Create' }).click();
  await dialog.getByText(/amount must be an amount such as/).waitFor();
  expect(await violationsIn(page)).toEqual([]);
  await dialog.getByLabel('Amount in USD').fill('0.05');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'Night runs' }).waitFor();
  await page.getByText('The whole account, each day. Alerts at 80, 100 %.').waitFor();

  expect([await generate(), await generate()]).toEqual([202, 403]);
  await page.reload();
  await page.getByRole('progressbar', { name: 'Night runs: 100 % used' }).waitFor();
  expect(await sidewaysOf(page)).toBe(0);
  expect(await violationsIn(page)).toEqual([]);
  await page.goto(`${service.url}/usage`);
  await page
    .getByText(/Budget Night runs is /)
    .first()
    .waitFor();

  await page.goto(`${service.url}/budgets`);
  await page.getByRole('button', { name: 'Change Night runs' }).click();
  const change = page.getByRole('dialog', { name: 'Change Night runs' });
  await change.getByLabel('Amount in USD').fill('0.10');
  await expect.poll(() => change.getByRole('checkbox', { name: '50 %' }).isChecked()).toBe(false);
  await expect.poll(() => change.getByRole('checkbox', { name: '80 %' }).isChecked()).toBe(true);
  await change.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('progressbar', { name: 'Night runs: 50 % used' }).waitFor();
  expect(await generate()).toBe(202);
  await page.getByRole('button', { name: 'Remove Night runs' }).click();
  await page.getByRole('dialog', { name: 'Remove Night runs' }).getByRole('button', { name: 'Remove' }).click();
  await page.getByText('No budgets').waitFor();
  expect(await generate()).toBe(202);
  expect(problems.filter((each) => !each.includes('400'))).toEqual([]);
  await context.close();
});
