import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstOperator } from '../../src/accounts/members.ts';
import { changeKeyRules } from '../../src/accounts/keys.ts';
import { no_rules } from '../../src/accounts/key-rules.ts';
import { newId } from '../../src/lib/ids.ts';
import { setAccountBudget } from '../../src/money/account-budgets.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { leave, settled, sidewaysOf, violationsIn, visit } from '../helpers/dashboard.ts';
import { lostCellsIn, phone, smallTargetsIn } from '../helpers/phone.ts';

/** A person whose job stopped finds out why, and what to do. */

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let client: Client;
let user_id: string;

beforeAll(async () => {
  service = await startTestApp({ worker: false });
  chromium = await launchBrowser();
  client = await service.client({ credit: '0.02' });
  user_id = await firstOperator(service.app.db, client.account_id, new Date());
});
afterAll(async () => {
  await chromium?.close();
  await expectExactBooks(service.app);
  await service?.stop();
});

const audio = { model: 'sandbox/audio', input: { prompt: 'x', duration: 5 } };

async function refuse(): Promise<void> {
  const { db } = service.app;
  for (let i = 0; i < 3; i++) expect((await client.call('POST', '/v1/generate', audio)).status).toBe(402);
  const { account_id } = client;
  const ruled = await service.client({ account_id });
  await changeKeyRules(db, ruled.key_id, { ...no_rules, models: ['sandbox/chat'] });
  await expect.poll(async () => (await ruled.call('POST', '/v1/generate', audio)).status).toBe(403);
  const budget = { id: newId('budget'), account_id, name: 'Night runs', scope: 'account', subject: null } as const;
  await setAccountBudget(db, { ...budget, period: 'total', amount: 0n, is_hard: true }, new Date());
  const image = { model: 'sandbox/image', input: { prompt: 'x' } };
  expect((await client.call('POST', '/v1/generate', image)).status).toBe(403);
}

async function faultsOf(page: Page): Promise<unknown[]> {
  return [...(await violationsIn(page)), ...((await sidewaysOf(page)) > 0 ? ['the page moves sideways'] : [])];
}

test(
  'Activity says that calls were refused, Usage why and what to do, and Budgets how many of them were its own',
  { timeout: 300_000 },
  async () => {
    const calm = await visit(chromium.browser, service.app, { user_id, path: '/usage', ...phone });
    await calm.page.getByText(/Nothing was refused in this period/).waitFor();
    await leave(calm);

    await refuse();
    const seen = await visit(chromium.browser, service.app, { user_id, path: '/activity', colorScheme: 'dark' });
    const { page } = seen;
    await expect
      .poll(async () => {
        await page.reload();
        await settled(page);
        return page.getByText(/calls? refused in the last 24 hours/).allTextContents();
      })
      .toEqual([expect.stringMatching(/^5 calls refused/)]);
    expect(await faultsOf(page)).toEqual([]);
    await page.getByRole('link', { name: 'See why' }).click();
    const reasons = page.getByRole('table', { name: 'Refused calls by reason' });
    const low = reasons.getByRole('row', { name: /The balance was too low/ });
    await low.getByText('Test, sandbox/audio × 3').waitFor();
    await expect.poll(() => reasons.getByRole('row').count()).toBe(4);
    await reasons
      .getByRole('row', { name: /A budget was reached/ })
      .getByText(/^Night runs, Test/)
      .waitFor();
    await reasons
      .getByRole('row', { name: /may not use the model/ })
      .getByRole('link', { name: 'Allow the model on the key' })
      .waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.locator('#refused').getByRole('switch', { name: 'Show as table' }).click();
    await page.getByRole('table', { name: 'Refused calls by hour and reason' }).waitFor();
    await low.getByRole('link', { name: 'Top up' }).click();
    await page.waitForURL((url) => url.pathname === '/billing');
    await leave(seen);

    const small = await visit(chromium.browser, service.app, { user_id, path: '/budgets', ...phone });
    await small.page.getByText('1 call refused in this period.').waitFor();
    expect(await faultsOf(small.page)).toEqual([]);
    await small.page.getByRole('link', { name: 'See when and why' }).click();
    await small.page.getByText('The balance was too low').first().waitFor();
    await settled(small.page);
    expect(await faultsOf(small.page)).toEqual([]);
    expect([...(await smallTargetsIn(small.page)), ...(await lostCellsIn(small.page))]).toEqual([]);
    await leave(small);
  },
);
