import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstOperator } from '../../src/accounts/members.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, settled, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let client: Client;
let operator: string;
let bicycle: string;

beforeAll(async () => {
  service = await startTestApp();
  client = await service.client({ credit: '5' });
  operator = await firstOperator(service.app.db, client.account_id, new Date());
  bicycle = await generate('A red bicycle beside a wall');
  await client.call('POST', '/v1/chat/completions', {
    model: 'sandbox/chat',
    messages: [{ role: 'user', content: 'Hello' }],
  });
  chromium = await launchBrowser();
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

/** As text: it runs in the page, which reads nothing again by itself then, unless it is told that something has changed. */
const without_long_intervals = `{
  const begin = globalThis.setInterval;
  globalThis.setInterval = (act, ms, ...rest) => begin(act, ms >= 5_000 ? 2 ** 30 : ms, ...rest);
}`;

async function generate(prompt: string): Promise<string> {
  const body = { model: 'sandbox/image', input: { prompt, width: 16, height: 16 } };
  return (await client.call('POST', '/v1/generate?wait=60', body)).json.id;
}

test.each([
  { look: 'light', colorScheme: 'light', width: 1280 },
  { look: 'dark, on a phone', colorScheme: 'dark', width: 360 },
] as const)(
  'the search opens by its key and leads to pages, words and ids ($look)',
  { timeout: 300_000 },
  async ({ colorScheme, width }) => {
    const viewport = { width, height: 800 };
    const context = await contextOf(chromium.browser, { colorScheme, viewport, reducedMotion: 'reduce' });
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, operator);
    await settled(page);

    // By the keyboard alone: a word of a prompt, chosen by an arrow, opened by Enter.
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox', { name: /^Search/ });
    await field.and(page.locator(':focus')).waitFor();
    await page.getByRole('option', { name: 'API keys' }).waitFor();
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);
    await page.keyboard.type('bicycle');
    const generations = page.getByRole('group', { name: 'Generations' });
    const option = generations.getByRole('option', { name: /red bicycle/, selected: true });
    await option.waitFor();
    await expect
      .poll(async () => (await field.getAttribute('aria-activedescendant')) === (await option.getAttribute('id')))
      .toBe(true);
    expect(await violationsIn(page)).toEqual([]);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/tasks/${bicycle}`);

    // An id that is pasted, and Enter at once.
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await field.fill(client.key_id);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/keys?**');

    // Arrows go round, and Escape goes back to where the focus was.
    const button = page.getByRole('button', { name: 'Search', exact: true });
    await button.focus();
    await page.keyboard.press('Control+k');
    await field.fill('prices');
    await page.getByRole('group', { name: 'Operator' }).getByRole('option', { name: 'Prices & margins' }).waitFor();
    await field.fill('a'); // pages that begin with it come before those that have it somewhere
    await page.getByRole('option', { name: 'Activity', selected: true }).waitFor();
    expect(await violationsIn(page)).toEqual([]);
    const place = await field.boundingBox();
    await field.fill('no such thing anywhere');
    await page.getByRole('status').filter({ hasText: 'Nothing matches.' }).waitFor();
    expect(await field.boundingBox()).toEqual(place); // it stays where it is, however long the list
    expect(await violationsIn(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await field.waitFor({ state: 'hidden' });
    await button.and(page.locator(':focus')).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  },
);

test.each([
  { look: 'light', colorScheme: 'light', width: 1280 },
  { look: 'dark, on a phone', colorScheme: 'dark', width: 360 },
] as const)(
  'the activity has both kinds, words, columns, both orders and rows that come by themselves ($look)',
  {
    timeout: 300_000,
  },
  async ({ colorScheme, width }) => {
    const viewport = { width, height: 900 };
    const context = await contextOf(chromium.browser, { colorScheme, viewport, reducedMotion: 'reduce' });
    const { page, problems } = await watchedPage(context, service.url);
    await page.addInitScript(without_long_intervals);
    await signIn(page, service.app, operator, '/activity?tab=all');
    await settled(page);
    const rows = page.getByRole('row');
    await rows.filter({ hasText: 'red bicycle' }).waitFor();
    await rows
      .filter({ hasText: /Call, / })
      .first()
      .waitFor();
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);

    // A task of a program appears by itself, without the list being read again every 15 s.
    const name = `a kingfisher of ${colorScheme}`;
    await generate(name);
    await rows.filter({ hasText: name }).waitFor();

    await page.getByRole('searchbox', { name: 'Words' }).fill('kingfisher');
    await rows.filter({ hasText: 'red bicycle' }).waitFor({ state: 'detached' });
    await rows.filter({ hasText: name }).waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('kingfisher');
    await page.getByRole('button', { name: 'Clear' }).click();
    await rows.filter({ hasText: 'red bicycle' }).waitFor();

    // The oldest first, by the head of its column.
    const created = page.getByRole('columnheader', { name: 'Created' });
    await expect.poll(() => created.getAttribute('aria-sort')).toBe('descending');
    await created.getByRole('button').click();
    await page.getByRole('table', { name: /oldest first/ }).waitFor();
    await expect.poll(() => rows.nth(1).textContent()).toContain('red bicycle');

    // A list that is saved is opened by its name.
    await page.getByRole('button', { name: 'Saved lists' }).click();
    const list_name = `Oldest of ${colorScheme}`;
    await page.getByRole('textbox', { name: 'Save this list as' }).fill(list_name);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: list_name, exact: true }).waitFor();
    expect(await violationsIn(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.goto(`${service.url}/activity`);
    await settled(page);
    await page.getByRole('button', { name: 'Saved lists' }).click();
    await page.getByRole('button', { name: list_name, exact: true }).click();
    await page.getByRole('table', { name: 'Generations and chat calls, oldest first' }).waitFor();

    // A column that is chosen stays so when the page is opened anew.
    await page.getByRole('button', { name: 'Columns' }).click();
    await page.getByRole('checkbox', { name: 'Id' }).check();
    expect(await violationsIn(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.reload();
    await page.getByRole('columnheader', { name: 'Id' }).waitFor();
    await rows.filter({ hasText: bicycle }).waitFor();

    await page.getByRole('button', { name: 'Download' }).click();
    const download = page.waitForEvent('download');
    await page.getByRole('menuitem', { name: 'JSONL' }).click();
    expect((await download).suggestedFilename()).toBe('medley-all.jsonl');
    expect(problems).toEqual([]);
    await context.close();
  },
);
