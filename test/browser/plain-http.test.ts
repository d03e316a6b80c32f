import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { ownerOf } from '../../src/accounts/members.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, followLink, watchedPage } from '../helpers/dashboard.ts';

/** The dashboard and the guide on plain http, as in a network at home: the browser keeps its clipboard from such pages. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let context: BrowserContext;
let page: Page;
let problems: string[];

const limit = { timeout: 300_000 };
const url = 'http://medley.test';

beforeAll(async () => {
  service = await startTestApp({ worker: false, env: { MEDLEY_BASE_URL: url } });
  const { host } = new URL(service.app.local_url());
  chromium = await launchBrowser([`--host-resolver-rules=MAP medley.test ${host}`]);
  context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  ({ page, problems } = await watchedPage(context, url));
  const account = await createAccount(
    service.app.db,
    { name: 'Own', currency: 'USD', initial_credit: 1_000_000n },
    new Date(),
  );
  await followLink(page, service.app, await ownerOf(service.app.db, account.id, new Date()));
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

test('a key is copied from its dialog, which keeps the focus', limit, async () => {
  await page.goto(`${url}/keys`);
  expect(await page.evaluate('window.isSecureContext')).toBe(false);
  await page.getByRole('button', { name: 'Create a key' }).first().click();
  await page.getByRole('dialog').getByLabel('Name').fill('Shop');
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
  const key = await page.getByRole('region', { name: 'key', exact: true }).innerText();
  await page.getByRole('button', { name: 'Copy key' }).focus();
  // It says so for a moment only.
  await Promise.all([
    page.getByRole('button', { name: 'Copied', exact: true }).waitFor(),
    page.keyboard.press('Enter'),
  ]);
  await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('BUTTON');
  await page.getByRole('button', { name: 'I have copied it' }).click();
  await page.getByRole('button', { name: 'Create a key' }).first().click();
  const name = page.getByRole('dialog').getByLabel('Name');
  await name.press('Control+v');
  await expect.poll(() => name.inputValue()).toBe(key.trim());
});

test('code in an answer is copied', limit, async () => {
  await page.goto(`${url}/playground?model=sandbox%2Fchat`);
  const message = page.getByRole('textbox', { name: 'Message' });
  await message.fill('Look:\n```js\nlet answer = 42;\n```\nThat is all.');
  await message.press('Control+Enter');
  const code = page.getByRole('group', { name: 'Code in js' });
  await Promise.all([
    code.getByRole('button', { name: 'Copied' }).waitFor(),
    code.getByRole('button', { name: 'Copy' }).click(),
  ]);
  await message.press('Control+v');
  await expect.poll(() => message.inputValue()).toBe('let answer = 42;');
});

test('where the browser copies nothing at all, the page says so', limit, async () => {
  await page.goto(`${url}/webhooks?tab=setup`);
  await page.evaluate('document.execCommand = () => false');
  const copy = page.getByRole('button', { name: /^Copy/ }).first();
  await copy.click();
  await page.getByText('Your browser does not let this page copy.').waitFor();
  expect(await page.getByRole('button', { name: 'Copied' }).count()).toBe(0);
});

test('the guide copies its examples', limit, async () => {
  await page.goto(`${url}/guide/embeddings`);
  await Promise.all([
    page.getByRole('button', { name: 'Copied' }).waitFor(),
    page.getByRole('button', { name: 'Copy' }).first().click(),
  ]);
  await page.keyboard.press('Control+k');
  await page.getByRole('searchbox').focus();
  await page.keyboard.press('Control+v');
  await expect.poll(() => page.getByRole('searchbox').inputValue()).toContain(`curl -sS ${url}/v1/embeddings`);
  const from_page = problems.filter((problem) => !problem.startsWith('The Cross-Origin-Opener-Policy header'));
  expect(from_page).toEqual([]); // but for that remark of browsers about plain http
});
