import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { ownerOf } from '../../src/accounts/members.ts';
import { memberOf, ownerOfNew, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** The first steps where there is nothing yet: no money, or a model that the playground cannot show. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let empty: Someone;
let context: BrowserContext;
let page: Page;
let problems: string[];

const limit = { timeout: 300_000 };

beforeAll(async () => {
  service = await startTestApp({ worker: false, yaml: 'version: 1\ncurrencies: { USD: "1", PLN: "4" }\n' });
  chromium = await launchBrowser();
  empty = await ownerOfNew(service, 'Empty', 0n);
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

beforeEach(async () => {
  context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  ({ page, problems } = await watchedPage(context, service.url));
});

afterEach(async () => {
  await context.close();
  if (problems.length > 0) throw new Error(problems.join('\n'));
});

test('with 0.00 the first step is to top up, and leads an owner to where that is done', limit, async () => {
  await signIn(page, service.app, empty.user_id);
  await page.getByText('An image costs $0.01, and $0.00 is available.').waitFor();
  expect(await page.getByRole('link', { name: 'Open the playground' }).count()).toBe(0);
  expect(await violationsIn(page)).toEqual([]);
  await page.getByRole('listitem').getByRole('link', { name: 'Top up' }).click();
  await page.getByRole('heading', { level: 1, name: 'Billing' }).waitFor();
});

test(
  'with 0.00 a developer is told whom to ask, a viewer has no steps, and an operator credits the account',
  limit,
  async () => {
    const [developer, viewer] = [await memberOf(service, empty, 'developer'), await memberOf(service, empty, 'viewer')];
    await signIn(page, service.app, viewer.user_id);
    await page.getByText('Available').first().waitFor();
    expect(await page.getByText('First steps').count()).toBe(0);
    await context.clearCookies();
    await signIn(page, service.app, developer.user_id);
    await page.getByText('Ask an owner of the account to top up.').waitFor();
    await service.app.db.query('update auth."user" set "isOperator" = true where id = $1', [empty.user_id]);
    await context.clearCookies();
    await signIn(page, service.app, empty.user_id);
    await page.getByRole('link', { name: 'Credit this account' }).click();
    await page.getByRole('heading', { level: 1, name: 'Empty' }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/admin/accounts/${empty.account_id}`);
  },
);

test('the price of an image is in the currency of the account', limit, async () => {
  const now = new Date();
  const account = { name: 'Złoty', currency: 'PLN', initial_credit: 20_000n };
  const { id } = await createAccount(service.app.db, account, now);
  await signIn(page, service.app, await ownerOf(service.app.db, id, now));
  await page.getByText('An image costs 0.04 zł, and 0.02 zł is available.').waitFor();
  expect(await page.getByRole('link', { name: 'Open the playground' }).count()).toBe(0);
});

test('with money the first step leads to the playground', limit, async () => {
  const owner = await ownerOfNew(service, 'Rich');
  await signIn(page, service.app, owner.user_id);
  await page.getByRole('link', { name: 'Open the playground' }).click();
  await page.getByRole('heading', { level: 1, name: 'Playground' }).waitFor();
  expect(new URL(page.url()).search).toBe('?model=sandbox%2Fimage');
});

test('the playground says that an embedding model runs by the API, and leads to its code', limit, async () => {
  await signIn(page, service.app, empty.user_id, '/playground?model=sandbox%2Fembedding');
  await page.getByRole('heading', { level: 2, name: 'Sandbox embedding runs by the API only' }).waitFor();
  expect(await page.getByText('There is no such model').count()).toBe(0);
  expect(await violationsIn(page)).toEqual([]);
  await page.getByRole('link', { name: 'Code for this model' }).click();
  await page.waitForURL((url) => url.pathname === '/models/sandbox/embedding');
  await page.goto(`${service.url}/playground?model=nobody%2Fnothing`);
  await page.getByRole('heading', { level: 2, name: 'There is no such model' }).waitFor();
});
