import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { ownerOf } from '../../src/accounts/members.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** Prompts with variables: saved, changed, handed on by a link, and run on a table. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let page: Page;
let problems: string[];

/** For a machine that has much else to do. */
const patience = { timeout: 120_000 };

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  const { db } = service.app;
  const account = await createAccount(db, { name: 'Own', currency: 'USD', initial_credit: 5_000_000n }, new Date());
  ({ page, problems } = await watchedPage(await contextOf(chromium.browser), service.url));
  await signIn(page, service.app, await ownerOf(db, account.id, new Date()));
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

const message = () => page.getByRole('textbox', { name: 'Message', exact: true });
const log = () => page.getByRole('log', { name: 'Conversation with Sandbox chat' });

test('a prompt with variables is saved, filled in, changed, compared and opened by its link', async () => {
  await page.goto(`${service.url}/playground?model=sandbox%2Fchat`);
  await message().fill('Greet {{name}} from {{city}}');
  await page.getByRole('textbox', { name: 'System prompt' }).fill('Be kind.');
  await page.getByRole('button', { name: 'Save as a prompt' }).click();
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Greeting');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Version 1', { exact: true }).waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
  await page.getByText('Fill in name, city below.').waitFor();
  await page.getByRole('textbox', { name: 'name', exact: true }).fill('Ada');
  await page.getByRole('textbox', { name: 'city', exact: true }).fill('London');
  await page.getByRole('tab', { name: 'Code' }).click();
  await expect
    .poll(() => page.getByRole('region', { name: 'curl code' }).innerText())
    .toContain('Greet Ada from London');
  await page.getByRole('button', { name: 'Send' }).click();
  await log().getByText('“Greet Ada from London”').waitFor();
  await expect.poll(() => message().inputValue()).toBe('Greet {{name}} from {{city}}');

  await message().fill('Greet {{name}} politely');
  await page.getByRole('button', { name: 'Save version 2' }).click();
  await page.getByText('Version 2', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Versions', exact: true }).click();
  const difference = page.getByRole('group', { name: 'Difference of the message' });
  await expect
    .poll(() => difference.innerText(), patience)
    .toBe('− Greet {{name}} from {{city}}\n+ Greet {{name}} politely');
  expect(await violationsIn(page)).toEqual([]);
  await page.getByRole('button', { name: 'Use version 1' }).click();
  await expect.poll(() => message().inputValue(), patience).toBe('Greet {{name}} from {{city}}');
  await page.getByText('Version 2, changed since').waitFor();

  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy its link' }).click();
  const copied = () => page.evaluate<string>('navigator.clipboard.readText()');
  await expect.poll(copied, patience).toContain('prompt=');
  const link = await copied();
  await page.goto(link);
  await expect.poll(() => message().inputValue(), patience).toBe('Greet {{name}} politely');
  await expect.poll(() => page.getByRole('textbox', { name: 'System prompt' }).inputValue()).toBe('Be kind.');
  const { db } = service.app;
  const other = await createAccount(db, { name: 'Other', currency: 'USD', initial_credit: 1_000_000n }, new Date());
  const context = await contextOf(chromium.browser);
  const { page: stranger } = await watchedPage(context, service.url);
  await signIn(stranger, service.app, await ownerOf(db, other.id, new Date()), link.slice(service.url.length));
  await stranger.getByText(/^No prompt prompt_\w+ in this account/).waitFor();
  await context.close();
}, 300_000);

/** Lines of the file with the answers. */
async function downloadedLines(): Promise<string[]> {
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download as CSV' }).click();
  const chunks: Buffer[] = [];
  for await (const chunk of await (await downloading).createReadStream()) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8').split('\r\n');
}

test('a prompt runs on each row of a CSV file, with the price before and the answers after', async () => {
  await page.goto(`${service.url}/playground?model=sandbox%2Fchat`);
  await message().fill('Say {{word}}');
  await page.getByRole('button', { name: 'Run on a CSV file' }).click();
  const choose = (text: string) =>
    page
      .locator('input[type=file][accept*=csv]')
      .last()
      .setInputFiles({
        name: 'words.csv',
        mimeType: 'text/csv',
        buffer: Buffer.from(text),
      });
  await choose('other\nx\n');
  await page.getByText('The file has no column word. It has: other.').waitFor();
  await choose('word\n"unclosed');
  await page.getByText('A quotation mark is opened and never closed.').waitFor();
  await choose('word\nalpha\n');
  await page.getByText('1 row', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Run 1 row', exact: true }).waitFor();
  await choose('word\nalpha\n=1+1\n"[[error 400]]"\n');
  await page.getByText('Say alpha', { exact: true }).waitFor();
  await page.getByText(/^At most about \$0\.\d+ in all/).waitFor();
  expect(await violationsIn(page)).toEqual([]);
  await page.getByRole('button', { name: 'Run 3 rows' }).click();
  await page.getByText('3 of 3 rows have ended, 1 of them failed.').waitFor();
  const rows = page.getByRole('region', { name: 'Rows and their answers' }).getByRole('row');
  await expect.poll(() => rows.nth(1).innerText(), patience).toContain('“Say alpha”');
  await expect.poll(() => rows.nth(3).innerText()).toContain('Failed:');
  const lines = await downloadedLines();
  expect(lines[0]).toBe('\uFEFFword,answer,state,cost,currency,milliseconds,call');
  expect(lines[1]).toMatch(/^alpha,.*“Say alpha”.*,done,0\.\d{6},USD,\d+,req_\w+$/);
  expect(lines[2]).toMatch(/^'=1\+1,/);
  expect(lines[3]).toMatch(/failed: .*,,USD,,req_\w+$/); // what it costs is not known here
  expect(await violationsIn(page)).toEqual([]);
  await page.route('**/chat/completions', async (route) => {
    if (!(route.request().postData() ?? '').includes('Say beta')) await route.continue();
  });
  await choose('word\nalpha\nbeta\n');
  await page.getByRole('button', { name: 'Run 2 rows' }).click();
  await expect.poll(() => rows.nth(1).innerText(), patience).toContain('“Say alpha”');
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('2 of 2 rows have ended.').waitFor();
  await page.getByText(/^The cost is that of the rows that are done/).waitFor();
  const [, answered, stopped] = await downloadedLines();
  expect(answered).toMatch(/,done,0\.\d{6},USD,/);
  expect(stopped).toBe('beta,,stopped,,USD,,');
  await page.unroute('**/chat/completions');
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await sidewaysOf(page)).toBe(0);
  expect(problems).toEqual([]);
}, 300_000);
