import type { BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ownerOfNew, type Someone } from '../dashboard/people.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, settled, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** Calls are found by what their caller said of them, beginning at the first page. */

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;
let client: Client;

const long_value = 'a very long value '.repeat(28).trim();

beforeAll(async () => {
  service = await startTestApp();
  owner = await ownerOfNew(service, 'Labels');
  client = await service.client({ account_id: owner.account_id });
  await chat('Hello', { user: 'ada', metadata: { team: 'red', tags: 'night,day', note: long_value } });
  await chat('Hello', { user: 'bob', metadata: { team: 'blue', tags: 'day' } });
  await chat('[[fail]]', { user: 'ada', metadata: { version: '1.0' } });
  const metadata = { user: 'ada', team: 'red', tags: 'night' };
  await client.call('POST', '/v1/generate?wait=60', { model: 'sandbox/image', input: { prompt: 'A bay' }, metadata });
  await vi.waitUntil(async () => (await service.app.db.query('select from chat_calls')).length === 3, {
    timeout: 60_000,
  });
  chromium = await launchBrowser();
}, 180_000);

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

async function chat(content: string, labels: object): Promise<void> {
  await client.call('POST', '/v1/chat/completions', {
    model: 'sandbox/chat',
    messages: [{ role: 'user', content }],
    ...labels,
  });
}

type Look = { colorScheme: NonNullable<BrowserContextOptions['colorScheme']>; width: number };

/** Opens a page of the owner in a window of its own. */
async function open({ colorScheme, width }: Look, path: string) {
  const viewport = { width, height: 900 };
  const context = await contextOf(chromium.browser, { colorScheme, viewport, reducedMotion: 'reduce' });
  const { page, problems } = await watchedPage(context, service.url);
  await signIn(page, service.app, owner.user_id, path);
  await settled(page);
  const look = async () => {
    await settled(page);
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);
  };
  const lines = page.locator('main table.list tbody tr');
  const parameters = () => Object.fromEntries(new URL(page.url()).searchParams);
  const close = async () => {
    expect(problems).toEqual([]);
    await context.close();
  };
  return { page, lines, parameters, look, close };
}

const looks = [
  { look: 'light', colorScheme: 'light', width: 1280 },
  { look: 'dark, on a phone', colorScheme: 'dark', width: 390 },
] as const;

const limit = { timeout: 240_000 };

test.each(looks)(
  'labels lead to all calls with them, and filters are added and removed ($look)',
  limit,
  async (each) => {
    const { page, lines, parameters, look, close } = await open(each, '/');

    // Words find a chat call by its labels.
    if (each.width < 600) await page.goto(`${service.url}/activity`);
    else await page.getByRole('link', { name: 'Activity' }).first().click();
    await expect.poll(() => lines.count()).toBe(4);
    await page.getByRole('searchbox', { name: 'Words' }).fill('bob');
    await expect.poll(() => lines.count()).toBe(1);
    await page.getByRole('searchbox', { name: 'Words' }).fill('hello');
    await page.getByText('Their prompts are not searched').waitFor();
    await look();
    await page.getByRole('searchbox', { name: 'Words' }).fill('502');
    await expect.poll(() => lines.count()).toBe(1);

    // The call's page: each label leads to all with it.
    await lines.getByRole('link').first().click();
    await page.getByRole('heading', { name: 'Chat call' }).waitFor();
    await page.getByRole('link', { name: 'error: upstream_error' }).waitFor();
    await page.getByRole('link', { name: 'version: 1.0' }).click();
    await expect.poll(() => lines.count()).toBe(1);
    expect(parameters()).toEqual({ 'metadata.version': '1.0' });
    await page.goBack();
    await page.getByRole('link', { name: 'user: ada' }).click();
    await expect.poll(() => lines.count()).toBe(3);
    expect(parameters()).toEqual({ user: 'ada' });
    await look();

    // One more filter, by keyboard; then both go.
    await page.getByRole('button', { name: 'More filters' }).press('Enter');
    await page.getByRole('combobox', { name: 'Filter by' }).selectOption('Metadata');
    expect(await violationsIn(page)).toEqual([]);
    await page.getByRole('textbox', { name: 'Name' }).fill('team');
    await page.getByRole('textbox', { name: 'Value' }).fill('red');
    await page.keyboard.press('Enter');
    await expect.poll(() => lines.count()).toBe(2);
    expect(parameters()).toEqual({ user: 'ada', 'metadata.team': 'red' });
    await page.getByRole('tab', { name: 'Chat' }).click();
    await expect.poll(() => lines.count()).toBe(1);
    expect(parameters()).toEqual({ tab: 'chats', user: 'ada', 'metadata.team': 'red' });
    await look();
    await page.getByRole('button', { name: 'Remove End user: ada' }).click();
    await expect.poll(parameters).toEqual({ tab: 'chats', 'metadata.team': 'red' });
    await page.getByRole('tab', { name: 'All' }).click();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await expect.poll(() => lines.count()).toBe(4);
    expect(parameters()).toEqual({});
    await close();
  },
);

test.each(looks)(
  'labels are a column, are on pages of both kinds, and rows of Usage lead to their calls ($look)',
  limit,
  async (each) => {
    const { page, lines, parameters, look, close } = await open(each, '/activity');

    // Labels are a column, too, and a long one stays within it.
    await page.getByRole('button', { name: 'Columns' }).click();
    await page.getByRole('checkbox', { name: 'Labels' }).check();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'tag: night' }).first().waitFor();
    await look();
    await page.getByRole('button', { name: 'Columns' }).click();
    await page.getByRole('checkbox', { name: 'Labels' }).uncheck();
    await page.keyboard.press('Escape');

    // On the page of a call, too.
    await lines.last().getByRole('link').first().click();
    await page.getByRole('link', { name: /^note: a very long value/ }).waitFor();
    await look();

    // A generation has them, too.
    await page.goto(`${service.url}/activity?tab=tasks&tag=night`);
    await lines.getByRole('link').first().click();
    await page.getByRole('heading', { name: 'Task', exact: true }).waitFor();
    await page.getByRole('link', { name: 'tag: night' }).waitFor();
    await look();

    // A row of Usage leads to its calls, with the period.
    await page.goto(`${service.url}/usage?group=metadata.team&period=today`);
    await page.getByRole('table', { name: 'Sums by team' }).getByRole('link', { name: 'red' }).click();
    await expect.poll(() => lines.count()).toBe(2);
    const today = new Date().toISOString().slice(0, 10);
    expect(parameters()).toEqual({ 'metadata.team': 'red', from: today, to: today });
    await close();
  },
);
