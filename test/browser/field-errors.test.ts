import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ownerOfNew, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, followLink, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** Refusals stand at their field, in the words of the page. */

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;
let page: Page;

const limit = { timeout: 300_000 };

beforeAll(async () => {
  service = await startTestApp({ worker: false });
  chromium = await launchBrowser();
  owner = await ownerOfNew(service);
  ({ page } = await watchedPage(await contextOf(chromium.browser, { reducedMotion: 'reduce' }), service.url));
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

/** Expects the text that a screen reader reads with the field, and no other message. */
async function expectMarked(field: Locator, message: string | RegExp): Promise<void> {
  await expect.poll(() => field.getAttribute('aria-invalid')).toBe('true');
  const described = async () => {
    const ids = ((await field.getAttribute('aria-describedby')) ?? '').split(' ');
    const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).allTextContents()));
    return texts.flat().join(' ');
  };
  await expect.poll(described).toMatch(message);
  expect(await page.getByRole('alert').filter({ hasText: 'This did not work' }).count()).toBe(0);
  expect(await violationsIn(page)).toEqual([]);
}

test('a password that is easy to guess is refused at its field, where somebody sets themselves up', limit, async () => {
  await followLink(page, service.app, owner.user_id);
  await page.getByRole('button', { name: 'Set them now' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Your name').fill('Ada');
  await dialog.getByLabel('E-mail address').fill('ada@example.com');
  const password = dialog.locator('input[type=password]');
  await password.fill('password123');
  await page.keyboard.press('Enter');
  await expectMarked(password, /password/i);
});

test('who is a member already cannot be invited, and the address says so', limit, async () => {
  await service.app.db.query(`update auth."user" set email = 'ada@example.com' where id = $1`, [owner.user_id]);
  await signIn(page, service.app, owner.user_id, '/settings?tab=team');
  await page.getByRole('button', { name: 'Invite' }).first().click();
  const email = page.getByRole('dialog').getByLabel('E-mail address');
  await email.fill('ada@example.com');
  await page.keyboard.press('Enter');
  await expectMarked(email, 'is a member already');
});

test('a webhook of alerts that is nowhere, and quiet hours without a length, are marked', limit, async () => {
  await signIn(page, service.app, owner.user_id, '/settings?tab=alerts');
  const webhook = page.getByLabel('Webhook', { exact: true });
  await webhook.fill('https://10.0.0.1/alerts');
  await page.getByRole('button', { name: 'Save' }).click();
  await expectMarked(webhook, /^.*The address /);
  await webhook.fill('');
  await page.getByLabel(/Quiet hours/).check();
  const to = page.getByLabel('To', { exact: true });
  await to.fill(await page.getByLabel('From', { exact: true }).inputValue());
  await page.getByRole('button', { name: 'Save' }).click();
  await expectMarked(to, 'Quiet hours must end at another time than they begin.');
});

test('a program gets no key with a limit that is no amount', limit, async () => {
  const body = new URLSearchParams({ client_id: 'tool', device_name: 'box' });
  const begun = await fetch(`${service.url}/oauth/device_authorization`, { method: 'POST', body });
  const { user_code } = (await begun.json()) as { user_code: string };
  await signIn(page, service.app, owner.user_id, `/device?code=${user_code}`);
  await page.getByRole('button', { name: 'Continue' }).click();
  const money = page.getByLabel(/Monthly limit/);
  await money.fill('a lot');
  await page.getByRole('button', { name: 'Give a key' }).click();
  await expectMarked(money, /Monthly limit must be an amount such as 25 or 12\.50/);
});
