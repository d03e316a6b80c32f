import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { memberOf, ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { bringAxe, contextOf, signIn, sidewaysOf, violationsIn, watchedPage } from '../helpers/dashboard.ts';
import { secretOf, totpOf } from '../helpers/totp.ts';

/** An owner asks the members for a second factor, and a member is led to turn one on. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;

const limit = { timeout: 300_000 };
const password = 'correct horse battery';

beforeAll(async () => {
  service = await startTestApp({ worker: false });
  chromium = await launchBrowser();
  owner = await ownerOfNew(service, 'Acme');
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true });

test(
  'a member of an account that asks for a second factor turns one on, and sees the account then',
  limit,
  async () => {
    const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, owner.user_id, '/settings?tab=team');
    const required = page.getByRole('switch', { name: 'Members must use a second factor' });
    await required.click();
    await page.getByText('Turn on your own second factor first').waitFor();
    await service.app.db.query('update auth."user" set "twoFactorEnabled" = true where id = $1', [owner.user_id]);
    await signIn(page, service.app, owner.user_id, '/settings?tab=team');
    await required.click();
    await expect.poll(() => required.isChecked()).toBe(true);
    await page.getByRole('tab', { name: 'Audit log' }).click();
    await page.getByRole('cell', { name: 'account.require_second_factor' }).waitFor();
    await bringAxe(page);
    expect(await violationsIn(page)).toEqual([]);

    const member = await memberOf(service, owner, 'viewer');
    okBody(await member.post('/auth/set-up', { email: 'mia@example.com', name: 'Mia', password }));
    await context.clearCookies();
    await page.setViewportSize({ width: 390, height: 800 });
    await page.goto(`${service.url}/usage`);
    await page.getByLabel('E-mail address').fill('mia@example.com');
    await page.locator('input[type=password]').fill(password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await heading(page, 'A second factor first').waitFor();
    expect(await sidewaysOf(page)).toBe(0);
    expect(await violationsIn(page)).toEqual([]);
    await page.getByRole('link', { name: 'Turn it on' }).click();
    await page.getByRole('button', { name: 'Turn on' }).click();
    await page.getByLabel('Your password').fill(password);
    const [enabled] = await Promise.all([
      page.waitForResponse((response) => response.url().endsWith('/auth/two-factor/enable')),
      page.getByRole('button', { name: 'Continue' }).click(),
    ]);
    const { totpURI } = (await enabled.json()) as { totpURI: string };
    await page.getByLabel('Code from the app').fill(totpOf(secretOf(totpURI)));
    await page.getByRole('dialog').getByRole('button', { name: 'Turn on' }).click();
    await page.getByRole('button', { name: 'I have saved them' }).click();
    await page.goto(`${service.url}/usage`);
    await heading(page, 'Usage').waitFor();
    expect(problems).toEqual([]);
    await context.close();
  },
);
