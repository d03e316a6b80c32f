import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addMember, firstOperator } from '../../src/accounts/members.ts';
import { no_details, setDetails } from '../../src/billing/details.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { limits, mediaModel, required_prompt } from '../helpers/catalog.ts';
import { contextOf, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';
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
  - id: test/chat
    kind: chat
    price: [{ unit: input_token, per: 1000000, amount: "3.00" }, { unit: output_token, per: 1000000, amount: "15" }]
    routes: [{ provider: sandbox, upstream_model: chat }]
  - id: test/other
    kind: chat
    price: [{ unit: input_token, per: 1000000, amount: "3.00" }, { unit: output_token, per: 1000000, amount: "15" }]
    routes: [{ provider: sandbox, upstream_model: chat }]
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
  okBody(await owner.post(`${owner.base}/keys`, { name: 'Audited' }));
  client = await service.client({ account_id: owner.account_id });
  receiver.answer('/deaf', 500);
  for (const model of ['test/loss', 'test/even', 'test/gain']) await generate(model);
  await generate('test/gain', `${receiver.url}/deaf`);
  await receiver.nth('/deaf', 1);
});

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
    await expect.poll(() => time.textContent()).toMatch(form);
    await page.goto(`${service.url}/activity`);
    await expect.poll(() => page.locator('.list time').first().textContent()).toMatch(/ago$|^now$/);
    await page.context().close();
  }
});

test('a webhook that is tried again is not one that did not arrive', limit, async () => {
  const page = await open('/');
  await page.getByText('1 webhook of the last 24 hours failed so far and is sent again.').waitFor();
  expect(await page.getByText('did not arrive').count()).toBe(0);
  await page.getByRole('link', { name: 'Deliveries' }).last().click();
  await page.getByText('Retrying').first().waitFor();
  await expect.poll(() => new URL(page.url()).search).toBe('?state=retrying');
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
  const page = await open('/activity?tab=tasks');
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
  await expect.poll(() => page.getByRole('combobox', { name: 'Status' }).inputValue()).toBe('Succeeded');
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
    await expect.poll(() => head.getAttribute('aria-sort')).toBe('descending');
    await head.getByRole('button').click();
    await expect.poll(names).toEqual(['test/loss', 'test/even', 'test/gain']);
    expect(await violationsIn(page)).toEqual([]);
    await page.context().close();
  });
}

for (const [look, options] of [
  ['light', { colorScheme: 'light' }],
  ['dark, on a phone', { colorScheme: 'dark', viewport: { width: 390, height: 844 } }],
] as const) {
  test(`the page of prices has the price, the cost and the margin of each route (${look})`, limit, async () => {
    const page = await open('/admin/prices', options);
    const table = page.getByRole('table', { name: 'Prices and costs of models' });
    const loss = table.getByRole('row', { name: /test\/loss/ });
    await loss.getByText('$0.02 per image').waitFor();
    await loss.getByText('$0.05 per image').waitFor();
    await loss.getByText('−150 %').waitFor();
    await loss.getByText('Loss', { exact: true }).waitFor();
    await table
      .getByRole('row', { name: /test\/gain/ })
      .getByText('75 %')
      .waitFor();
    await page.getByRole('switch', { name: 'Only routes without a margin, or with an unknown cost' }).press('Space');
    await expect.poll(() => table.getByRole('row', { name: /test\/gain/ }).count()).toBe(0);
    await loss.waitFor();
    await page.getByRole('searchbox', { name: 'Search' }).fill('test/even');
    await expect.poll(() => loss.count()).toBe(0);
    await table
      .getByRole('row', { name: /test\/even/ })
      .getByText('0 %')
      .waitFor();
    expect(await sidewaysOf(page)).toBe(0);
    expect(await violationsIn(page)).toEqual([]);
    await page.context().close();
  });
}

test('a table of speed needs no scrolling on a laptop', limit, async () => {
  for (const path of ['/speed', '/admin/speed']) {
    const page = await open(path, { viewport: { width: 1280, height: 800 } });
    await page.getByRole('columnheader', { name: 'Tokens per second' }).waitFor();
    const hidden = () =>
      page.evaluate<number>(`(() => {
        const frame = document.querySelector('[role=region][aria-label^="Speed by"]');
        return frame.scrollWidth - frame.clientWidth;
      })()`);
    await expect.poll(hidden, { message: path }).toBe(0);
    await page.context().close();
  }
});

test('whoever drains the last route of a model is asked first, and the model says that it refuses', limit, async () => {
  const page = await open('/admin/models?search=test/gain');
  const drain = async (word: RegExp) => {
    await page.getByRole('button', { name: /^More for test\/gain/ }).click();
    await page.getByRole('menuitem', { name: word }).click();
  };
  await drain(/^Drain/);
  const dialog = page.getByRole('dialog');
  await dialog.getByText('It is the only route of test/gain.').waitFor();
  await page.getByRole('menu').waitFor({ state: 'detached' });
  expect(await violationsIn(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Drain it' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await page.getByText('Every route is drained: new calls are refused (502).').waitFor();
  expect(await violationsIn(page)).toEqual([]);
  await drain(/^End the drain/);
  await page.getByText('Every route is drained').waitFor({ state: 'detached' });
  await page.context().close();
});

test(
  'first steps are for those who may take them, and notices about a person for that person alone',
  limit,
  async () => {
    const fresh = await ownerOfNew(service, 'Newcomer');
    const viewer = await memberOf(service, fresh, 'viewer');
    const homeOf = async (user_id: string) => {
      const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
      const { page } = await watchedPage(context, service.url);
      await signIn(page, service.app, user_id);
      await page.getByRole('heading', { name: 'Balance' }).waitFor();
      return page;
    };
    const own = await homeOf(fresh.user_id);
    await own.getByText('Receive a webhook').waitFor();
    await own.getByText('Come back without a link').waitFor();
    await own.context().close();
    const theirs = await homeOf(viewer.user_id);
    expect(await theirs.getByText('Receive a webhook').count()).toBe(0);
    await theirs.context().close();

    const page = await open(`/admin/accounts/${fresh.account_id}`);
    await page.getByRole('button', { name: 'View as' }).click();
    await page.getByRole('complementary', { name: 'Viewing another account' }).waitFor();
    await page.getByRole('heading', { name: 'Balance' }).waitFor();
    expect(await page.getByText(/Come back without a link|Receive a webhook/).count()).toBe(0);
    await page.context().close();
  },
);

test('the audit log has the names of projects, not their ids', limit, async () => {
  const project = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name: 'Window shop' }));
  okBody(await owner.post(`${owner.base}/keys`, { name: 'Front', project: project.id }));
  const page = await open('/settings?tab=audit');
  const created = page.getByRole('row', { name: /key\.create/ }).filter({ hasText: 'Front' });
  await created.getByText('project: Window shop').waitFor();
  await page
    .getByRole('row', { name: /project\.create/ })
    .getByRole('cell', { name: 'Window shop', exact: true })
    .waitFor();
  expect(await page.getByText(project.id).count()).toBe(0);
  await page.context().close();
});

for (const [look, options] of [
  ['light', { colorScheme: 'light' }],
  ['dark, on a phone', { colorScheme: 'dark', viewport: { width: 390, height: 844 } }],
] as const) {
  test(`Activity opens on everything, and shows the highest costs of a time (${look})`, limit, async () => {
    const page = await open('/activity', options);
    await page.getByRole('tab', { name: 'All', selected: true }).waitFor();
    const table = page.getByRole('table', { name: 'Generations and chat calls, newest first' });
    await table.waitFor();
    await table.getByRole('button', { name: 'Cost' }).press('Enter');
    await page.waitForURL((url) => url.searchParams.get('sort') === 'cost');
    await page.getByText(/^The 100 highest costs since/).waitFor();
    const sorted = page.getByRole('table', { name: 'Generations and chat calls, highest cost first' });
    await sorted.waitFor();
    const models = async () =>
      (await sorted.getByRole('row').allTextContents())
        .slice(1)
        .map((text) => /test\/(gain|loss|even)/.exec(text)?.[0]);
    await expect.poll(models).toEqual(['test/gain', 'test/gain', 'test/loss', 'test/even']);
    await expect
      .poll(() => sorted.getByRole('columnheader', { name: 'Cost' }).getAttribute('aria-sort'))
      .toBe('descending');
    expect(await sidewaysOf(page)).toBe(0);
    expect(await violationsIn(page)).toEqual([]);
    await page.goto(`${service.url}/activity?status=failed`); // as an older link has it
    await page.getByRole('tab', { name: 'Generations', selected: true }).waitFor();
    await page.context().close();
  });
}

test('Activity is filtered by project', limit, async () => {
  const project = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name: 'Empty' }));
  const page = await open('/activity');
  const keyboard = keyboardOf(page);
  await keyboard.tabTo('combobox', 'Project');
  await page.keyboard.type('empt');
  await page.getByRole('option', { name: 'Empty' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('project') === project.id);
  await page.getByText('Nothing matches these filters').waitFor();
  await expect.poll(() => page.getByRole('combobox', { name: 'Project' }).inputValue()).toBe('Empty');
  await page.context().close();
});

for (const [look, options] of [
  ['light', { colorScheme: 'light' }],
  ['dark, on a phone', { colorScheme: 'dark', viewport: { width: 390, height: 844 } }],
] as const) {
  test(`a task, a call and a delivery show their charge, headers and JSON (${look})`, limit, async () => {
    const page = await open('/activity', options);
    await page.getByRole('link', { name: 'a lake' }).last().click();
    const table = page.getByRole('table', { name: 'Charged, by unit' });
    await table.getByText('1 image', { exact: true }).waitFor();
    await table.getByText('× $0.02').waitFor();
    const sum = table.getByRole('row').filter({ hasText: 'Charged' });
    await sum.getByText('$0.02', { exact: true }).waitFor();
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);

    const messages = [{ role: 'user', content: 'Hello' }];
    const answer = await client.call('POST', '/v1/chat/completions', { model: 'test/chat', messages });
    await page.goto(`${service.url}/chats/${answer.headers.get('x-request-id')}`);
    await table.getByText(/^[\d,]+ input tokens?$/).waitFor();
    await table.getByText('× $3.00 / 1 M').waitFor();
    await page.getByText(/^Prices as they were/).waitFor();
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);

    const failing = { models: ['test/chat', 'test/other'], messages: [{ role: 'user', content: '[[fail]] Hello' }] };
    const failed = await client.call('POST', '/v1/chat/completions', failing);
    expect(failed.status).toBe(502);
    await page.goto(`${service.url}/chats/${failed.headers.get('x-request-id')}`);
    await page
      .getByRole('alert', { name: 'The error that its caller got' })
      .getByText(failed.json.error.message)
      .waitFor();
    const tried = page.getByRole('table', { name: 'Routes that were tried' }).getByRole('row');
    await expect.poll(() => tried.filter({ hasText: 'test/chat' }).filter({ hasText: 'Failed' }).count()).toBe(1);
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);

    const { data } = okBody<{ data: { id: string }[] }>(await owner.get(`${owner.base}/deliveries`));
    await page.goto(`${service.url}/webhooks/${data.at(-1)?.id}`);
    await page.getByRole('button', { name: 'Request headers of attempt 1' }).click();
    await page.getByText(/x-service-signature: sha256=…/).waitFor();
    await page.getByText('The headers of the answer are not stored.').waitFor();
    await page.getByRole('region', { name: 'payload', exact: true }).getByText('"status": "succeeded"').waitFor();
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);
    await page.getByRole('tab', { name: 'As sent' }).click();
    await page.getByRole('region', { name: 'payload as sent' }).getByText('"status":"succeeded"').waitFor();
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
  await expect.poll(() => field.getAttribute('aria-invalid')).toBe('true');
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
  await expect.poll(() => key.textContent()).toMatch(/^mdl_/);
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
  // It is shown for ten seconds: who begins to look behind the click may come too late.
  await Promise.all([
    page.getByText('Medley was updated').waitFor(),
    page.getByRole('link', { name: 'Usage', exact: true }).first().click(),
  ]);
  await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor();
  expect(refused).toBeGreaterThan(1);
  await context.close();
});

test('the billing details in the form are those of the account that is chosen', limit, async () => {
  const [first, second] = [await ownerOfNew(service, 'First'), await ownerOfNew(service, 'Second')];
  const { user_id } = first;
  await addMember(service.app.db, { account_id: second.account_id, user_id, role: 'owner' }, new Date());
  for (const [{ account_id }, company] of [
    [first, 'Company of First'],
    [second, 'Company of Second'],
  ] as const)
    await setDetails(service.app.db, account_id, { ...no_details, company }, new Date());
  const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  const { page } = await watchedPage(context, service.url);
  await signIn(page, service.app, user_id, '/billing?tab=details');
  const company = page.getByRole('textbox', { name: 'Company or name' });
  const choose = async (name: string) => {
    await page.getByRole('combobox', { name: 'Account' }).click();
    await page.getByRole('option', { name }).click();
  };
  for (const name of ['Second', 'First', 'Second', 'First']) {
    await choose(name);
    await expect.poll(() => company.inputValue()).toBe(`Company of ${name}`);
  }
  await company.fill('Typed in First');
  await choose('Second');
  await expect.poll(() => company.inputValue()).toBe('Company of Second');
  await context.close();
});
