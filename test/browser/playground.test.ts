import type { Page } from 'playwright-core';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { ownerOf } from '../../src/accounts/members.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** The playground as somebody uses it who has a keyboard and no mouse. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let page: Page;
let complaints: string[];

/** For a machine that has much else to do. */
const patience = { timeout: 60_000 };

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  const { db } = service.app;
  const account = await createAccount(db, { name: 'Own', currency: 'USD', initial_credit: 5_000_000n }, new Date());
  const context = await chromium.browser.newContext({ viewport: { width: 1200, height: 900 } });
  context.setDefaultTimeout(patience.timeout);
  ({ page, complaints } = await watchedPage(context, service.url));
  await signIn(page, service.app, await ownerOf(db, account.id, new Date()));
}, 180_000);

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

const open = (path: string) => page.goto(service.url + path);

/** Goes on by Tab until this has the focus. */
async function tabTo(name: string | RegExp, role: 'textbox' | 'button' | 'link' | 'radio'): Promise<void> {
  const target = page.getByRole(role, { name }).first();
  await target.waitFor();
  for (let presses = 0; presses < 60; presses += 1) {
    if (await target.evaluate((element) => element === element.ownerDocument.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not lead to ${name}`);
}

test('a picture is made by keyboard alone: its price before, its cost after', async () => {
  await open('/playground?model=sandbox%2Fimage');
  await tabTo(/^Prompt/, 'textbox');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('A green bicycle');
  const run = page.getByRole('button', { name: /^Run/ });
  await expect.poll(() => run.textContent(), patience).toBe('Run · holds $0.01');
  await page.keyboard.press('Control+Enter');
  const picture = page.getByRole('img', { name: 'Result 1 of sandbox/image' });
  await picture.waitFor();
  await expect
    .poll(() => picture.evaluate((image) => ('naturalWidth' in image ? image.naturalWidth : 0)), patience)
    .toBe(768);
  const facts = page.getByRole('main');
  await expect.poll(() => facts.innerText(), patience).toMatch(/Held\s+\$0\.01\s+Cost\s+\$0\.01\s+Released\s+\$0\.00/);
  expect(await violationsIn(page)).toEqual([]);
  await tabTo('The whole story of this task', 'link');
  await page.keyboard.press('Enter');
  await page.waitForURL(({ pathname }) => pathname.startsWith('/tasks/task_'));
  await page.getByRole('heading', { name: 'Task', level: 1 }).waitFor();
}, 180_000);

test('what is wrong with the input is said where it is, and nothing can be run', async () => {
  await open('/playground?model=sandbox%2Fimage');
  const width = page.getByRole('textbox', { name: 'Width' });
  await width.fill('5000');
  await page.getByText('width must be at most 2048 (got 5000).').first().waitFor();
  await expect.poll(() => page.getByRole('button', { name: /^Run/ }).isDisabled(), patience).toBe(true);
  expect(await violationsIn(page)).toEqual([]);
  await width.fill('64');
  await expect.poll(() => page.getByRole('button', { name: /^Run/ }).isEnabled(), patience).toBe(true);
}, 180_000);

test('a chat answers word by word, and tells what it cost', async () => {
  await open('/playground?model=sandbox%2Fchat');
  await tabTo('Message', 'textbox');
  await page.keyboard.type('Good morning');
  await page.keyboard.press('Control+Enter');
  const log = page.getByRole('log', { name: 'Conversation with Sandbox chat' });
  await log.getByText(/\d+ in, \d+ out · \$0\.\d+/).waitFor();
  expect(await log.innerText()).toContain('Good morning');
  expect(await violationsIn(page)).toEqual([]);
}, 180_000);

test('a file that was made becomes the input of another model', async () => {
  await open('/playground?model=sandbox%2Fedit');
  const png = await sharp({ create: { width: 32, height: 32, channels: 3, background: '#c02020' } })
    .png()
    .toBuffer();
  const file = { name: 'red.png', mimeType: 'image/png', buffer: png };
  await page.locator('input[type=file]').first().setInputFiles(file);
  await page.getByText('red.png').waitFor();
  expect(await violationsIn(page)).toEqual([]);
  const run = page.getByRole('button', { name: /^Run · holds/ });
  await run.click();
  await page.getByRole('img', { name: 'Result 1 of sandbox/edit' }).waitFor();
}, 180_000);

test('nothing complained in the meantime', () => {
  expect(complaints).toEqual([]);
});
