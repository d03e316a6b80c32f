import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { makeLoginLink } from '../../src/accounts/sign-in/login-links.ts';
import { memberOf, ownerOfNew, type Someone } from '../dashboard/people.ts';
import {
  comeBackLater,
  contextOf,
  signIn,
  settled,
  sidewaysOf,
  violationsIn,
  watchedPage,
} from '../helpers/dashboard.ts';
import { password, startWithZoe, type Stage } from './zoe.ts';

/** Acts that ask who is there once more, 15 minutes after the last proof. */
let stage: Stage;
let service: Stage['service'];
let chromium: Stage['chromium'];
let zoe: Stage['zoe'];
let context: BrowserContext;
let page: Page;
let problems: string[];

const limit = { timeout: 300_000 };

beforeAll(async () => {
  stage = await startWithZoe();
  ({ service, chromium, zoe } = stage);
});

afterAll(() => stage?.stop());

beforeEach(async () => {
  context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  ({ page, problems } = await watchedPage(context, service.url));
});

afterEach(async () => {
  await context.close();
  if (problems.length > 0) throw new Error(problems.join('\n'));
});

async function anHourLater({ user_id }: Someone): Promise<void> {
  await service.app.db.query(
    `update auth.session set "createdAt" = now() - interval '1 hour', "provedAt" = null where "userId" = $1`,
    [user_id],
  );
}

const dialog = (name: string) => page.getByRole('dialog', { name, exact: true });
const question = () => dialog('Is it still you?');

/** On the page of keys. */
async function fillKeyForm(): Promise<void> {
  await page.getByRole('button', { name: 'Create a key' }).first().click();
  await dialog('Create a key').getByLabel('Name').fill('From the dialog');
  await anHourLater(zoe);
  await dialog('Create a key').getByRole('button', { name: 'Create' }).click();
  await question().waitFor();
}

/** Gives the right password, and sees the key that the act made. */
async function givePassword(): Promise<void> {
  await question().locator('input[type=password]').fill(password);
  await page.keyboard.press('Enter');
  await page
    .getByText(/mdl_\w{36}/)
    .first()
    .waitFor();
}

test('a key: a dialog asks for the password, refuses a wrong one, and then the key is there', limit, async () => {
  await signIn(page, service.app, zoe.user_id, '/keys');
  await fillKeyForm();
  expect(await violationsIn(page)).toEqual([]);
  await question().locator('input[type=password]').fill('not my password');
  await question().getByRole('button', { name: 'Continue' }).click();
  await question().getByText('This is not your password.').waitFor();
  await givePassword();
  await question().waitFor({ state: 'detached' });
});

test('whoever does not give it keeps the form, and nothing has happened', limit, async () => {
  await signIn(page, service.app, zoe.user_id, '/keys');
  await fillKeyForm();
  await page.keyboard.press('Escape');
  await question().waitFor({ state: 'detached' });
  const form = dialog('Create a key');
  await form.getByText('Confirm that it is you').waitFor();
  await expect.poll(() => form.getByLabel('Name').inputValue()).toBe('From the dialog');
  await form.getByRole('button', { name: 'Create' }).click();
  await question().getByRole('button', { name: 'Cancel' }).click();
  await question().waitFor({ state: 'detached' });
  await expect.poll(() => form.count()).toBe(1);
});

test('who has no password opens another sign-in link, and goes on', limit, async () => {
  const nina = await ownerOfNew(service, 'New');
  await signIn(page, service.app, nina.user_id, '/webhooks?tab=setup');
  await page.getByRole('button', { name: 'Reveal' }).waitFor();
  await anHourLater(nina);
  await page.getByRole('button', { name: 'Reveal' }).click();
  await question().waitFor();
  const second = await context.newPage();
  await second.goto(await makeLoginLink(service.app.db, service.url, nina.user_id, new Date()));
  await second.waitForURL((url) => url.pathname === '/');
  await second.close();
  await question().getByRole('button', { name: 'I have signed in again' }).click();
  await question().waitFor({ state: 'detached' });
  const shown = page.getByText(/whsec_[\w+/=]{40}/).first();
  await shown.waitFor();
  await expect.poll(() => shown.innerText()).not.toContain('•');
});

test('a session that ends behind the dialog: the next sign-in is asked again', limit, async () => {
  await signIn(page, service.app, zoe.user_id, '/keys');
  await fillKeyForm();
  await service.app.db.query('delete from auth.session where "userId" = $1', [zoe.user_id]);
  await question().locator('input[type=password]').fill(password);
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/sign-in/);
  await page.getByLabel('E-mail address').fill('zoe@example.com');
  await page.locator('input[type=password]').fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor();
  await fillKeyForm();
  await givePassword();
  await expect.poll(() => question().count()).toBe(0);
});

test('somebody else who signs in behind the dialog does not do what was asked for', limit, async () => {
  const colleague = await memberOf(service, zoe, 'developer');
  await signIn(page, service.app, zoe.user_id, '/keys');
  const keys = () => service.app.db.query('select name from api_keys where account_id = $1', [zoe.account_id]);
  const before = await keys();
  await fillKeyForm();
  const second = await context.newPage();
  await signIn(second, service.app, colleague.user_id, '/keys');
  await second.close();
  await comeBackLater(page);
  await page.getByRole('button', { name: 'You: A developer' }).waitFor();
  await question().waitFor({ state: 'detached' });
  await settled(page);
  expect(await keys()).toEqual(before);
});

test('the dialog fits a phone', limit, async () => {
  await context.close();
  context = await contextOf(chromium.browser, { viewport: { width: 360, height: 700 }, reducedMotion: 'reduce' });
  ({ page, problems } = await watchedPage(context, service.url));
  await signIn(page, service.app, zoe.user_id, '/keys');
  await fillKeyForm();
  expect(await sidewaysOf(page)).toBe(0);
  expect(await violationsIn(page)).toEqual([]);
});
