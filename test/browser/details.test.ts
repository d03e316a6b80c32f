import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstOperator } from '../../src/accounts/members.ts';
import { ownerOfNew, told, type Someone } from '../dashboard/people.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { limits, mediaModel, required_prompt } from '../helpers/catalog.ts';
import { contextOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';
import { keyboardOf } from '../helpers/keyboard.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';

/** Details of pages: amounts, dates, names, filters, errors at their fields, keys that are shown once, updates. */

const yaml = `
version: 1
net: { allow: ["127.0.0.0/8"] }
webhooks: { retry_delays: [1h] }
${limits()}
providers: { sandbox: { adapter: sandbox } }
models:${mediaModel({
  id: 'test/loss',
  schema: required_prompt,
  price: '0.02',
  routes: ['{ provider: sandbox, upstream_model: image, cost: [{ unit: image, amount: "0.05" }] }'],
})}${mediaModel({
  id: 'test/even',
  schema: required_prompt,
  price: '0.003',
  routes: ['{ provider: sandbox, upstream_model: image, cost: [{ unit: image, amount: "0.003" }] }'],
})}${mediaModel({
  id: 'test/gain',
  schema: required_prompt,
  price: '0.04',
  routes: ['{ provider: sandbox, upstream_model: image, cost: [{ unit: image, amount: "0.01" }] }'],
})}
`;

let service: TestApp;
let receiver: Receiver;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;
let client: Client;
let operator: string;

const limit = { timeout: 300_000 };

beforeAll(async () => {
  [service, receiver] = await Promise.all([startTestApp({ yaml }), startReceiver()]);
  chromium = await launchBrowser();
  owner = await ownerOfNew(service, 'Acme Pictures', 12_345_678_900n);
  operator = await firstOperator(service.app.db, owner.account_id, new Date());
  told(await owner.post(`${owner.base}/keys`, { name: 'Audited' }));
  client = await service.client({ account_id: owner.account_id });
  receiver.answer('/deaf', 500);
  for (const model of ['test/loss', 'test/even', 'test/gain']) await generate(model);
  await generate('test/gain', `${receiver.url}/deaf`);
  await receiver.nth('/deaf', 1);
}, 180_000);

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
  await receiver?.stop();
});

async function generate(model: string, webhook_url?: string): Promise<void> {
  const body = { model, input: { prompt: 'a lake' }, ...(webhook_url !== undefined && { webhook_url }) };
  const { status } = await client.call('POST', '/v1/generate?wait=60', body);
  expect(status).toBe(202);
}

async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
  const user_id = path.startsWith('/admin') ? operator : owner.user_id;
  const context = await contextOf(chromium.browser, { reducedMotion: 'reduce', ...options });
  const { page } = await watchedPage(context, service.url);
  await signIn(page, service.app, user_id, path);
  return page;
}

test('amounts have groups of three digits, and their points are one below the other', limit, async () => {
  const page = await open('/billing');
  const rows = page.getByRole('table', { name: /^Movements/ }).getByRole('row');
  await rows.filter({ hasText: '+$12,345.6789' }).waitFor();
  await rows.filter({ hasText: '−$0.003' }).first().waitFor();
  const points: number[] = await page.evaluate(`[...document.querySelectorAll('.list tbody tr')].map((row) => {
    const amount = row.querySelectorAll('td')[2].querySelector('.figure');
    const range = document.createRange();
    const text = [...amount.childNodes].find(({ nodeType }) => nodeType === 3);
    range.setStart(text, text.data.indexOf('.'));
    range.setEnd(text, text.data.indexOf('.') + 1);
    return Math.round(range.getBoundingClientRect().left);
  })`);
  expect(points.length).toBeGreaterThan(3);
  expect(Math.max(...points) - Math.min(...points)).toBeLessThanOrEqual(1);
  await page.context().close();
});

test('dates are in English words, in the order and by the clock of the reader', limit, async () => {
  const forms = {
    'de-DE': /^\d{1,2} \w{3,4} \d{4}, \d\d:\d\d$/,
    'en-US': /^\w{3} \d{1,2}, \d{4}, \d{1,2}:\d\d\s[AP]M$/,
  };
  for (const [locale, form] of Object.entries(forms)) {
    const page = await open('/billing', { locale });
    const time = page
      .getByRole('table', { name: /^Movements/ })
      .locator('time')
      .first();
    expect(await time.textContent()).toMatch(form);
    await page.goto(`${service.url}/activity`);
    expect(await page.locator('.list time').first().textContent()).toMatch(/ago$|^now$/);
    await page.context().close();
  }
});

test('a webhook that is tried again is not one that did not arrive', limit, async () => {
  const page = await open('/');
  await page.getByText('1 webhook of the last 24 hours failed so far and is sent again.').waitFor();
  expect(await page.getByText('did not arrive').count()).toBe(0);
  await page.getByRole('link', { name: 'Deliveries' }).last().click();
  await page.getByText('Retrying').first().waitFor();
  expect(new URL(page.url()).search).toBe('?state=retrying');
  await page.context().close();
});

test('operators see the names of accounts, and find one by typing a part of its name and Enter', limit, async () => {
  await ownerOfNew(service, 'Somebody else');
  for (const path of ['/admin/deliveries', '/admin/audit']) {
    const page = await open(path);
    await page.getByRole('link', { name: 'Acme Pictures' }).first().waitFor();
    const filter = page.getByRole('combobox', { name: 'Account' });
    await filter.focus();
    await page.keyboard.type('pictur');
    await page.getByRole('option', { name: /Acme Pictures/ }).waitFor();
    await expect.poll(() => page.getByRole('option').count()).toBe(1);
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('account') === owner.account_id);
    await page.reload();
    await expect.poll(() => page.getByRole('combobox', { name: 'Account' }).inputValue()).toBe('Acme Pictures');
    await page.context().close();
  }
});

test('a filter takes what is typed: the first choice that fits, by Enter', limit, async () => {
  const page = await open('/activity');
  const keyboard = keyboardOf(page);
  await keyboard.tabTo('combobox', 'Status');
  await page.keyboard.type('fai');
  await page.getByRole('option', { name: 'Failed' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('status') === 'failed');
  await keyboard.isOn('combobox', 'Status');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('succ');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('status') === 'succeeded');
  expect(await page.getByRole('combobox', { name: 'Status' }).inputValue()).toBe('Succeeded');
  await page.context().close();
});

for (const colorScheme of ['light', 'dark'] as const) {
  test(`losses and sales without a margin stand out, and the table sorts (${colorScheme})`, limit, async () => {
    const page = await open('/admin/prices', { colorScheme });
    const alert = page.getByRole('alert').filter({ hasText: 'Upstreams cost more than callers paid: 1 model' });
    await alert.getByText('test/loss (−$0.03)').waitFor();
    await page.getByText('Table', { exact: true }).click();
    const table = page.getByRole('table', { name: 'Margins by model' });
    await table
      .getByRole('row', { name: /test\/loss/ })
      .getByText('Loss', { exact: true })
      .waitFor();
    await table
      .getByRole('row', { name: /test\/even/ })
      .getByText('No margin')
      .waitFor();
    const names = async () =>
      (await table.getByRole('row').allTextContents()).slice(1).map((text) => /test\/(loss|even|gain)/.exec(text)?.[0]);
    const head = table.getByRole('columnheader', { name: 'Margin', exact: true });
    await head.getByRole('button').click();
    await expect.poll(names).toEqual(['test/gain', 'test/even', 'test/loss']);
    expect(await head.getAttribute('aria-sort')).toBe('descending');
    await head.getByRole('button').click();
    await expect.poll(names).toEqual(['test/loss', 'test/even', 'test/gain']);
    expect(await violationsIn(page)).toEqual([]);
    await page.context().close();
  });
}

test('a refusal is at its field, in the words of the page', limit, async () => {
  const page = await open('/keys');
  await page.getByRole('button', { name: 'Create a key' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Shop');
  const field = dialog.getByRole('textbox', { name: /^Monthly limit/ });
  await field.fill('much');
  await dialog.getByRole('button', { name: 'Create' }).click();
  const message = 'The monthly limit must be an amount such as 25 or 12.50, zero or more; empty for no limit.';
  await dialog.getByText(message).waitFor();
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  const described = (await field.getAttribute('aria-describedby')) ?? '';
  expect(described).toContain(await dialog.getByText(message).getAttribute('id'));
  expect(await dialog.getByRole('alert').count()).toBe(0);
  await page.context().close();
});

test('Escape leaves the only copy of a key on the page', limit, async () => {
  const page = await open('/keys');
  await page.getByRole('button', { name: 'Create a key' }).first().click();
  await page.getByRole('textbox', { name: 'Name' }).fill('Laptop');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  const key = page.getByRole('region', { name: 'key', exact: true });
  await key.waitFor();
  for (let times = 0; times < 3; times += 1) await page.keyboard.press('Escape');
  await page.mouse.click(5, 5);
  expect(await key.textContent()).toMatch(/^mdl_/);
  await page.getByRole('button', { name: 'I have copied it' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('cell', { name: /^Laptop/ }).waitFor();
  await page.context().close();
});

test('a part that is gone after an upgrade loads the page anew, which says why', limit, async () => {
  const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  const page = await context.newPage();
  await signIn(page, service.app, owner.user_id, '/');
  let refused = 0;
  await page.route(/\/assets\/Usage-[^/]*\.js$/, async (route) => {
    refused += 1;
    await (refused === 1 ? route.fulfill({ status: 404, body: '' }) : route.continue());
  });
  await page.getByRole('link', { name: 'Usage', exact: true }).first().click();
  await page.getByText('Medley was updated').waitFor();
  await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor();
  expect(refused).toBeGreaterThan(1);
  await context.close();
});
