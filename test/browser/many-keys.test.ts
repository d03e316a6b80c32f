import { afterAll, beforeAll, expect, test } from 'vitest';
import { createProject } from '../../src/accounts/projects.ts';
import { firstOperator } from '../../src/accounts/members.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { leave, settled, sidewaysOf, violationsIn, visit } from '../helpers/dashboard.ts';
import { insertKeys } from '../helpers/many-keys.ts';

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let client: Client;
let operator: string;
let ids: string[];

beforeAll(async () => {
  service = await startTestApp();
  client = await service.client({ credit: '5' });
  const { db } = service.app;
  operator = await firstOperator(db, client.account_id, new Date());
  const project = await createProject(db, { account_id: client.account_id, name: 'Shops' }, new Date());
  if (typeof project === 'string') throw new Error(project);
  ids = await insertKeys(db, client.account_id, 1_000, project.id);
  chromium = await launchBrowser();
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

const at = (path: string, options: object = {}) => ({ user_id: operator, path, ...options });

const limit = { timeout: 300_000 };
const phone = { colorScheme: 'dark', viewport: { width: 390, height: 844 } } as const;

test.each([
  ['light', {}],
  ['dark, on a phone', phone],
] as const)('many keys are shown in pages, searched and filtered (%s)', limit, async (_look, options) => {
  const visited = await visit(chromium.browser, service.app, at('/keys', options));
  const { page } = visited;
  const rows = page.getByRole('table', { name: /^API keys/ }).locator('tbody tr');
  await expect.poll(() => rows.count()).toBe(50);
  await page.getByRole('button', { name: 'Show more' }).click();
  await expect.poll(() => rows.count()).toBe(100);
  expect(await violationsIn(page)).toEqual([]);
  expect(await sidewaysOf(page)).toBe(0);
  await page.getByRole('searchbox', { name: 'Search' }).fill('tomer 0042');
  await expect.poll(() => rows.count()).toBe(1);
  await rows.getByText('Customer 0042').waitFor();
  await page.getByRole('searchbox', { name: 'Search' }).fill('0043');
  await page.getByText('No key matches').waitFor();
  await page.getByLabel('Status', { exact: true }).first().click();
  await page.getByRole('option', { name: 'Expired or deleted' }).click();
  await rows.getByText('Customer 0043').waitFor();
  expect(new URL(page.url()).search).toContain('state=ended');
  await page.getByRole('button', { name: 'Clear' }).click();
  await expect.poll(() => rows.count()).toBe(100); // the pages that were shown before
  await leave(visited);
});

test('a link to one key shows it, deleted or not', limit, async () => {
  const visited = await visit(chromium.browser, service.app, at(`/keys?search=${ids[0]}&state=all`));
  const rows = visited.page.getByRole('table', { name: /^API keys/ }).locator('tbody tr');
  await rows.getByText('Customer 0001').waitFor();
  await expect.poll(() => rows.count()).toBe(1);
  await leave(visited);
});

test('a filter by key finds one of many as one types, and names the chosen one after a reload', limit, async () => {
  const visited = await visit(chromium.browser, service.app, at('/activity'));
  const { page } = visited;
  const key = page.getByRole('combobox', { name: 'Key' });
  await key.click();
  await page.getByRole('option', { name: 'Customer 1000' }).waitFor();
  await expect.poll(() => page.getByRole('option').count()).toBe(25);
  await key.fill('tomer 0007');
  await page.getByRole('option', { name: 'Customer 0007 (deleted)' }).waitFor();
  await expect.poll(() => page.getByRole('option').count()).toBe(1);
  await key.press('Enter');
  await page.getByText('Nothing matches these filters').waitFor();
  expect(new URL(page.url()).searchParams.get('key')).toBe(ids[6]);
  await page.reload();
  await settled(page);
  await expect.poll(() => key.inputValue()).toBe('Customer 0007 (deleted)');
  expect(await violationsIn(page)).toEqual([]);
  await key.click();
  await page.getByRole('option', { name: 'Customer 1000' }).waitFor();
  await leave(visited);
});

test('operators see the keys of an account in pages, and search them', limit, async () => {
  const path = `/admin/accounts/${client.account_id}`;
  const visited = await visit(chromium.browser, service.app, at(path));
  const rows = visited.page.getByRole('table', { name: 'Active keys' }).locator('tbody tr');
  await expect.poll(() => rows.count()).toBe(50);
  await visited.page.getByRole('searchbox', { name: 'Search keys' }).fill('Customer 0044');
  await expect.poll(() => rows.count()).toBe(1);
  expect(await violationsIn(visited.page)).toEqual([]);
  await leave(visited);
});
