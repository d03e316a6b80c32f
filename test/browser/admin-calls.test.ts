import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ownerOfNew, type Someone } from '../dashboard/people.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { unseenIn } from '../helpers/keyboard.ts';
import { contextOf, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** The page of all calls of the service, for operators. */

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let operator: Someone;
let owner: Someone;
let client: Client;
let call: string;

const limit = { timeout: 300_000 };

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  operator = await ownerOfNew(service, 'Operating');
  await service.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  owner = await ownerOfNew(service, 'Acme');
  client = await service.client({ account_id: owner.account_id });
  await chat(client, '[[fail]] a failure', { user: 'ada', metadata: { tags: 'night', team: 'red' } });
  call = await chat(client, 'Words that nobody sees');
  const other = await service.client({ account_id: (await ownerOfNew(service, 'Beta')).account_id });
  const input = { prompt: 'Words of a prompt', width: 16, height: 16 };
  await other.call('POST', '/v1/generate?wait=60', { model: 'sandbox/image', input });
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

async function chat(by: Client, content: string, labels = {}): Promise<string> {
  const body = { model: 'sandbox/chat', messages: [{ role: 'user', content }], ...labels };
  const { headers } = await by.call('POST', '/v1/chat/completions', body);
  return headers.get('x-request-id') ?? '';
}

async function pageOf(path: string, options = {}): Promise<{ page: Page; problems: string[] }> {
  const context = await contextOf(chromium.browser, options);
  const watched = await watchedPage(context, service.url);
  await signIn(watched.page, service.app, operator.user_id, path);
  return watched;
}

const rowsOf = (page: Page) => page.getByRole('table').getByRole('row');
const views = () =>
  service.app.db.query("select action from audit_entries where account_id = $1 and action = 'account.view'", [
    owner.account_id,
  ]);

test(
  'an operator sees the calls of all accounts, narrows them, and opens one, which is written down',
  limit,
  async () => {
    const { page, problems } = await pageOf('/admin/calls');
    await expect.poll(() => rowsOf(page).count(), limit).toBe(4);
    await page.getByText('last 24 hours, unless you choose another period').waitFor();
    expect(await page.getByText(/Words/).count()).toBe(0);
    expect([...(await violationsIn(page)), ...(await unseenIn(page))]).toEqual([]);

    await page.getByRole('combobox', { name: 'Status' }).click();
    await page.getByRole('option', { name: 'Failed' }).click();
    await expect.poll(() => rowsOf(page).count(), limit).toBe(2);
    await page.waitForURL(/status=failed/);
    await rowsOf(page).last().getByText('upstream_error').waitFor();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await page.getByRole('combobox', { name: 'Account' }).fill('Bet');
    await page.getByRole('option', { name: /Beta/ }).click();
    await expect.poll(() => rowsOf(page).count(), limit).toBe(2);
    await addFilter(page, 'Tag', 'nothing has it');
    await page.getByText('Nothing matches these filters').waitFor();

    await page.goto(`${service.url}/admin/calls?account=${owner.account_id}&status=succeeded`);
    await expect.poll(() => rowsOf(page).count(), limit).toBe(2);
    expect(await views()).toEqual([]);
    await rowsOf(page).last().getByRole('button').press('Enter');
    await page.getByRole('complementary', { name: 'Viewing another account' }).waitFor();
    await expect.poll(() => page.url(), limit).toBe(`${service.url}/chats/${call}`);
    await page.getByText('Output tokens', { exact: true }).waitFor();
    expect(await views()).toEqual([{ action: 'account.view' }]);
    expect(problems).toEqual([]);
  },
);

const addFilter = async (page: Page, by: string, value: string) => {
  await page.getByRole('button', { name: 'More filters' }).press('Enter');
  await page.getByRole('combobox', { name: 'Filter by' }).selectOption(by);
  await page.getByRole('textbox', { name: 'Value' }).fill(value);
  await page.keyboard.press('Enter');
};

test('filters by labels are those of an account, and by failures also those of all', limit, async () => {
  const { page, problems } = await pageOf('/admin/calls?tag=night');
  await expect.poll(() => rowsOf(page).count(), limit).toBeGreaterThan(3); // without an account no tag is looked for
  await page.getByRole('button', { name: 'More filters' }).click();
  await page.getByText('To filter by tag, end user or metadata, choose an account first.').waitFor();
  const by = page.getByRole('combobox', { name: 'Filter by' });
  expect(await by.getByRole('option').allTextContents()).toEqual(['Error', 'HTTP status']);
  expect(await violationsIn(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await addFilter(page, 'HTTP status', '502');
  await expect.poll(() => rowsOf(page).count(), limit).toBe(2);
  await page.waitForURL(/http_status=.*502/);
  await page.getByRole('button', { name: 'Clear', exact: true }).click();
  await expect.poll(() => new URL(page.url()).search, limit).toBe('');

  await page.goto(`${service.url}/admin/calls?account=${owner.account_id}`);
  await page.getByRole('button', { name: 'More filters' }).click();
  expect(await by.getByRole('option').allTextContents()).toEqual([
    'Tag',
    'End user',
    'Error',
    'HTTP status',
    'Metadata',
  ]);
  expect(await page.getByText('choose an account first').count()).toBe(0);
  await page.keyboard.press('Escape');
  await addFilter(page, 'End user', 'ada');
  await expect.poll(() => rowsOf(page).count(), limit).toBe(2);
  await addFilter(page, 'Tag', 'day');
  await page.getByText('Nothing matches these filters').waitFor();
  await page.getByRole('button', { name: 'Remove Tag: day' }).click();
  await expect.poll(() => rowsOf(page).count(), limit).toBe(2);
  expect([...(await violationsIn(page)), ...(await unseenIn(page))]).toEqual([]);
  expect(problems).toEqual([]);
});

test('new calls appear by themselves', limit, async () => {
  const { page } = await pageOf('/admin/calls?of=chats&status=succeeded');
  await expect.poll(() => rowsOf(page).count(), limit).toBe(2);
  await chat(client, 'Another one');
  await expect.poll(() => rowsOf(page).count(), limit).toBe(3);
});

test.each(['light', 'dark'] as const)(
  'on a phone (%s) it has cards, and nothing is cut off',
  limit,
  async (colorScheme) => {
    const { page } = await pageOf('/admin/calls', { colorScheme, viewport: { width: 390, height: 844 } });
    await page.getByText('Acme').first().waitFor();
    expect(await sidewaysOf(page)).toBe(0);
    expect(await violationsIn(page)).toEqual([]);
  },
);
