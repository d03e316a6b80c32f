import type { BrowserContext, Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { EndpointsView } from '../../src/dashboard/views/webhooks.ts';
import { okBody } from '../dashboard/people.ts';
import { contextOf, signIn, watchedPage } from '../helpers/dashboard.ts';
import { totpOf } from '../helpers/totp.ts';
import { password, startWithZoe, type Stage } from './zoe.ts';

/** Secrets that are shown once stay until their own button closes them, also while their answer is on its way. */
let stage: Stage;
let service: Stage['service'];
let zoe: Stage['zoe'];
let context: BrowserContext;
let page: Page;
let problems: string[];

const limit = { timeout: 300_000 };

beforeAll(async () => {
  stage = await startWithZoe();
  ({ service, zoe } = stage);
});

afterAll(() => stage?.stop());

beforeEach(async () => {
  context = await contextOf(stage.chromium.browser, { reducedMotion: 'reduce' });
  ({ page, problems } = await watchedPage(context, service.url));
});

afterEach(async () => {
  await context.close();
  if (problems.length > 0) throw new Error(problems.join('\n'));
});

const dialog = (name: string) => page.getByRole('dialog', { name, exact: true });

/** Presses Escape while the answer of this path is on its way, and once it is there. */
async function escapeDuring(path: string, act: () => Promise<void>): Promise<void> {
  const arrived = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const hold = async (route: Route) => {
    arrived.resolve();
    await goOn.promise;
    await route.continue();
  };
  await page.route(path, hold, { times: 1 });
  await act();
  await arrived.promise;
  await page.keyboard.press('Escape');
  goOn.resolve();
}

/** Expects this dialog with such a text, and that Escape does not close it. Returns the text. */
async function expectStays(name: string, text: RegExp): Promise<string> {
  const shown = dialog(name).getByText(text).first();
  await shown.waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await expect.poll(() => shown.isVisible()).toBe(true);
  expect(await dialog(name).getByRole('button', { name: 'Close' }).count()).toBe(0);
  return (await shown.innerText()).trim();
}

test('the secret of a new endpoint, and the next one when it is rotated', limit, async () => {
  await signIn(page, service.app, zoe.user_id, '/webhooks?tab=endpoints');
  await page.getByRole('button', { name: 'Add an endpoint' }).click();
  const form = dialog('Add an endpoint');
  await form.getByRole('textbox', { name: 'Address' }).fill('https://example.com/hook');
  await form.getByRole('textbox', { name: 'Description' }).fill('Shop');
  await escapeDuring('**/webhooks/endpoints', () => form.getByRole('button', { name: 'Add' }).click());
  const first = await expectStays('The secret of Shop', /^whsec_/);
  await page.getByRole('button', { name: 'I have copied it' }).click();
  await page.getByRole('button', { name: 'Rotate the secret' }).click();
  const question = dialog('Rotate the secret of Shop');
  await escapeDuring('**/rotate', () => question.getByRole('button', { name: 'Rotate' }).click());
  expect(await expectStays('The secret of Shop', /^whsec_/)).not.toBe(first);
  await page.getByRole('button', { name: 'I have copied it' }).click();
  await dialog('The secret of Shop').waitFor({ state: 'detached' });
  const { data } = okBody<EndpointsView>(await zoe.get(`${zoe.base}/webhooks/endpoints`));
  expect(data).toHaveLength(1);
});

test('the backup codes of a second factor, and new ones in their place', limit, async () => {
  await signIn(page, service.app, zoe.user_id, '/settings?tab=security');
  await page.getByRole('button', { name: 'Turn on' }).click();
  const turning_on = dialog('Turn the second factor on');
  await turning_on.locator('input[type=password]').fill(password);
  await escapeDuring('**/two-factor/enable', () => turning_on.getByRole('button', { name: 'Continue' }).click());
  const secret = await turning_on.getByRole('region', { name: 'secret', exact: true }).innerText();
  await turning_on.getByLabel('Code from the app').fill(totpOf(secret.trim()));
  await escapeDuring('**/verify-totp', () => turning_on.getByRole('button', { name: 'Turn on' }).click());
  const code = /^[\w-]{8,}$/;
  const first = await expectStays('Your backup codes', code);
  await page.getByRole('button', { name: 'I have saved them' }).click();
  await page.getByRole('button', { name: 'New backup codes' }).click();
  const asking = dialog('New backup codes');
  await asking.locator('input[type=password]').fill(password);
  await escapeDuring('**/generate-backup-codes', () => asking.getByRole('button', { name: 'Create codes' }).click());
  expect(await expectStays('Your backup codes', code)).not.toBe(first);
  await page.getByRole('button', { name: 'I have saved them' }).click();
  await dialog('Your backup codes').waitFor({ state: 'detached' });
});
