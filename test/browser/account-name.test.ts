import { afterAll, beforeAll, expect, test } from 'vitest';
import { memberOf, ownerOfNew, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { bringAxe, contextOf, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** Owners alone give the account another name, and read its audit log. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;

beforeAll(async () => {
  service = await startTestApp({ worker: false });
  chromium = await launchBrowser();
  owner = await ownerOfNew(service, 'Demo');
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

test(
  'an owner renames the account, and a developer is told that the audit log is for owners',
  { timeout: 300_000 },
  async () => {
    const context = await contextOf(chromium.browser, {
      reducedMotion: 'reduce',
      viewport: { width: 390, height: 800 },
    });
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, owner.user_id, '/settings?tab=team');
    await page.getByLabel('Name of the account').fill('Weiss & Co');
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByRole('heading', { name: 'People of Weiss & Co' }).waitFor();
    expect(await sidewaysOf(page)).toBe(0);
    await bringAxe(page);
    expect(await violationsIn(page)).toEqual([]);

    const developer = await memberOf(service, owner, 'developer');
    await signIn(page, service.app, developer.user_id, '/settings?tab=team');
    await page.getByRole('heading', { name: 'People of Weiss & Co' }).waitFor();
    expect(await page.getByLabel('Name of the account').count()).toBe(0);
    await page.goto(`${service.url}/settings?tab=audit`);
    await page.getByRole('heading', { name: 'The audit log is for owners' }).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  },
);
