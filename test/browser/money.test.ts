import { readFile } from 'node:fs/promises';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startStripe, type StripeImitation } from '../dashboard/stripe-imitation.ts';
import { memberOf, ownerOfNew, type Someone } from '../dashboard/people.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { settled, sidewaysOf, signIn, violationsIn, watchedPage, type Watched } from '../helpers/dashboard.ts';
import { keyboardOf } from '../helpers/keyboard.ts';
import { depth } from '../helpers/depth.ts';

let test: TestApp;
let stripe: StripeImitation;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;
let client: Client;
const contexts: BrowserContext[] = [];

beforeAll(async () => {
  stripe = await startStripe('sk_test_browser');
  test = await startTestApp({
    env: { STRIPE_SECRET_KEY: 'sk_test_browser', STRIPE_WEBHOOK_SECRET: 'whsec_browser', STRIPE_API_URL: stripe.url },
  });
  chromium = await launchBrowser();
  owner = await ownerOfNew(test);
  client = await test.client({ account_id: owner.account_id });
  const input = { prompt: 'a lake', width: 64, height: 64 };
  await client.call('POST', '/v1/generate?wait=60', { model: 'sandbox/image', input });
  await client.call('POST', '/v1/generate?wait=60', {
    model: 'sandbox/image',
    input: { ...input, prompt: '[[fail]]' },
  });
  const chat = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20 };
  await client.call('POST', '/v1/chat/completions', chat);
});

afterAll(async () => {
  await Promise.all(contexts.map((context) => context.close()));
  await chromium?.close();
  await expectExactBooks(test.app);
  await test?.stop();
  await stripe?.close();
});

async function open(
  user_id: string,
  path = '/',
  options: Parameters<typeof chromium.browser.newContext>[0] = {},
): Promise<Watched> {
  const context = await chromium.browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  contexts.push(context);
  const watched = await watchedPage(context, test.url);
  watched.page.setDefaultTimeout(120_000);
  await signIn(watched.page, test.app, user_id, path);
  return watched;
}

const go = async (page: Page, path: string) => {
  await page.goto(test.url + path);
  await page.getByRole('heading', { level: 1 }).waitFor();
};

/** Usage of this month alone would be without what was charged just before its beginning. */
const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);

const textOf = (cells: string[]) => cells.map((cell) => cell.replaceAll(/\s+/g, ' ').trim());

/** An exact amount without its useless zeros. */
const shortened = (exact: string) => `$${exact.replace(/(\.\d\d\d*?)0+$/, '$1')}`;

describe('the usage page', () => {
  it('has the numbers of the API as bars, as a table and as a file, and its address has its settings', async () => {
    const { page, problems } = await open(owner.user_id, '/usage?group=model');
    const sums = page.getByRole('table', { name: 'Sums by model' });
    await sums.waitFor(); // texts of all cells are read as they are: nothing waits for a table
    const { json } = await client.call('GET', `/v1/usage?group_by=model&from=${yesterday}`);
    for (const { model, cost, count } of json.data) {
      const cells = sums.getByRole('row', { name: new RegExp(model) }).getByRole('cell');
      await expect
        .poll(async () => textOf(await cells.allTextContents()))
        .toMatchObject({ 0: shortened(cost.exact), 3: String(count) });
    }
    await page.getByRole('img', { name: /^Spend by day and model\. \$/ }).waitFor();
    const { json: all } = await client.call('GET', `/v1/usage?from=${yesterday}`);
    const count_of_all = all.data.reduce((sum, { count }) => sum + count, 0);
    const total = sums.getByRole('row', { name: /^Total/ }).getByRole('cell');
    await expect
      .poll(async () => textOf(await total.allTextContents()))
      .toMatchObject({ 0: shortened(all.total.exact), 3: String(count_of_all) });
    const keyboard = keyboardOf(page);
    await keyboard.tabTo('switch', 'Show as table');
    await keyboard.press('Space');
    await page.getByRole('table', { name: 'Spend by day and model' }).waitFor();
    await keyboard.tabTo('combobox', 'Group by');
    await page.keyboard.type('kind');
    await page.getByRole('option', { name: 'Kind', exact: true }).waitFor();
    await keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('group') === 'kind');
    await page.getByRole('table', { name: 'Sums by kind' }).waitFor();
    await keyboard.press('Control+A');
    await page.keyboard.type('tag'); // ahead of the list, which has not opened yet
    await keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('group') === 'tag');
    await page.getByRole('table', { name: 'Sums by tag' }).waitFor();
    await keyboard.tabTo('link', 'All charges (CSV)');
    const [file] = await Promise.all([page.waitForEvent('download'), keyboard.press('Enter')]);
    expect(file.suggestedFilename()).toMatch(/^medley-charges-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/);
    expect((await readFile(await file.path(), 'utf8')).trimEnd().split('\r\n')).toHaveLength(3);
    expect(problems).toEqual([]);
  });

  it('sorts its sums by each column, and keeps the total at the end', async () => {
    const { page } = await open(owner.user_id, '/usage?group=model');
    const sums = page.getByRole('table', { name: 'Sums by model' });
    await sums.waitFor();
    const names = async () => textOf(await sums.getByRole('rowheader').allTextContents());
    const sort = (name: string) => sums.getByRole('columnheader', { name }).getByRole('button').click();
    await expect.poll(names).toEqual(['sandbox/image', 'sandbox/chat', 'Total']);
    await sort('Model');
    await expect.poll(names).toEqual(['sandbox/chat', 'sandbox/image', 'Total']);
    await sort('Cost');
    await expect.poll(names).toEqual(['sandbox/image', 'sandbox/chat', 'Total']);
    await sort('Cost');
    await expect.poll(names).toEqual(['sandbox/chat', 'sandbox/image', 'Total']);
  });

  it('says when there is no usage, and how to see more', async () => {
    const { page } = await open(owner.user_id, '/usage?model=sandbox%2Fvideo');
    await page.getByText('Nothing matches these filters').waitFor();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await page.getByRole('table', { name: 'Sums by model' }).waitFor();
    expect(new URL(page.url()).searchParams.has('model')).toBe(false);
  });
});

const names: Record<string, string> = { topup: 'Top-up', hold: 'Hold', charge: 'Charge', release: 'Release' };

describe('the billing page', () => {
  it('has every transaction with its cause, and a failed generation returned its money', async () => {
    const { page, problems } = await open(owner.user_id);
    const keyboard = keyboardOf(page);
    await keyboard.enter('link', 'Billing');
    const rows = page.getByRole('table', { name: /^Movements/ }).getByRole('row');
    await rows.nth(1).waitFor();
    const { json } = await client.call('GET', '/v1/balance/transactions?limit=100');
    const lines = async () => {
      const shown = (await rows.all())
        .slice(1)
        .map(async (row) => textOf(await row.getByRole('cell').allTextContents()));
      return (await Promise.all(shown)).map(([, type, amount, , , available]) => [type, amount, available]);
    };
    await expect.poll(lines).toEqual(
      json.data.map(({ type, direction, amount, available_after }) => {
        const sign = { in: '+', out: '−', none: '' }[direction];
        return [names[type], `${sign}${shortened(amount.exact)}`, shortened(available_after.exact)];
      }),
    );

    const release = page.getByRole('row', { name: /Release/ });
    const given_back = async () => textOf(await release.getByRole('cell').allTextContents())[2];
    await expect.poll(given_back).toBe('$0.01');
    await keyboard.enter('link', 'sandbox/image', release);
    await page.waitForURL(/\/tasks\/task_/);
    await page.getByText('Failed', { exact: true }).first().waitFor();
    await expect
      .poll(() => page.getByRole('main').innerText())
      .toMatch(/Held\s+\$0\.01\s+Cost\s+\$0\.00\s+Released\s+\$0\.01/);
    expect(problems).toEqual([]);
  });

  it('leads to the payment page, and stores details and an alert that Home shows', async () => {
    const { page } = await open(owner.user_id, '/billing');
    await page.route('https://checkout.stripe.example/**', (route) => route.fulfill({ body: 'the payment page' }));
    await page.getByLabel('Less than, in USD').fill('5000');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Less than $5,000.00 is available.').waitFor();
    await go(page, '/billing?tab=details');
    await page.getByLabel('Company or name').fill('Zażółć sp. z o.o.');
    await page.getByLabel('Country').fill('pl');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    await expect.poll(() => page.getByLabel('Country').inputValue()).toBe('PL');
    await go(page, '/');
    await page.getByText('Less than $5,000.00 is available.').waitFor();
    await go(page, '/billing');
    await page.getByRole('button', { name: '$50', exact: true }).click();
    await page.getByRole('button', { name: 'Pay by card' }).click();
    await page.waitForURL(/checkout\.stripe\.example/);
    expect(stripe.sessions.at(-1)).toMatchObject({ amount_total: 5_000, client_reference_id: owner.account_id });
    await go(page, '/billing?paid=yes');
    await page.getByText('The payment is added to the balance once it is confirmed').waitFor();
  });

  it('waits for nothing that a tab which is not open would show', async () => {
    const { page } = await open(owner.user_id, '/keys');
    const balance = Promise.withResolvers<void>();
    await page.route('**/balance', async (route) => {
      await balance.promise;
      await route.continue();
    });
    await go(page, '/billing?tab=invoices');
    await page.getByRole('tabpanel', { name: 'Invoices' }).waitFor();
    balance.resolve();
    await settled(page);
    expect(await page.getByRole('status', { name: 'Loading' }).count()).toBe(0);
  });

  it('tells a viewer why nothing can be changed', async () => {
    const viewer = await memberOf(test, owner, 'viewer');
    const { page } = await open(viewer.user_id, '/billing');
    const pay = page.getByRole('button', { name: /Pay by card/ });
    await pay.waitFor();
    await expect.poll(() => pay.getAttribute('aria-disabled')).toBe('true');
    const before = stripe.forms.length;
    await pay.click({ force: true });
    await page.getByLabel(/Amount in/).press('Enter');
    await page
      .getByText(/does not allow this/)
      .first()
      .waitFor();
    await go(page, '/billing?tab=details');
    await expect.poll(() => page.getByLabel('Company or name').isEditable()).toBe(false);
    expect(stripe.forms.length).toBe(before);
  });
});

const looks = [
  ['dark', 1280],
  ['light', 1280],
  ['light', 360],
] as const;

it.each(looks.slice(0, depth(1, looks.length)))(
  'both pages are accessible in %s, %d pixels wide, and scroll one way only',
  async (colorScheme, width) => {
    const { page, problems } = await open(owner.user_id, '/usage', { colorScheme, viewport: { width, height: 800 } });
    for (const path of ['/usage', '/billing', '/billing?tab=details']) {
      if (path !== '/usage') await go(page, path);
      await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' });
      expect({ path, violations: await violationsIn(page) }).toEqual({ path, violations: [] });
      expect(await sidewaysOf(page)).toBe(0);
    }
    await go(page, '/usage');
    for (const label of await page.getByRole('switch', { name: 'Show as table' }).all()) await label.click();
    expect(await violationsIn(page)).toEqual([]);
    expect(problems).toEqual([]);
  },
);
