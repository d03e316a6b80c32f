import type { BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { updateAlerts } from '../../src/alerts/alert.ts';
import { runAccountAlerts } from '../../src/alerts/watch.ts';
import type { AlertsView } from '../../src/dashboard/views/alerts.ts';
import type { SpendMailView } from '../../src/dashboard/views/usage.ts';
import { signal } from '../alerts/setup.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { leave, sidewaysOf, violationsIn, visit } from '../helpers/dashboard.ts';
import { keyboardOf } from '../helpers/keyboard.ts';
import { startMailServer, type MailServer } from '../helpers/mail-server.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';

/** The pages of alerts: of an account in Settings, and of operators. */
let server: MailServer;
let receiver: Receiver;
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let zoe: Someone;

const limit = { timeout: 300_000 };

beforeAll(async () => {
  [server, receiver] = await Promise.all([startMailServer(), startReceiver()]);
  const yaml = `version: 1\nmail: { url: "${server.reference}", from: "medley@example.com" }\nnet: { allow: [127.0.0.1/32] }\n`;
  service = await startTestApp({ worker: false, yaml });
  chromium = await launchBrowser();
  zoe = await ownerOfNew(service, 'Acme');
  await service.app.db.query(
    `update auth."user" set email = 'zoe@example.com', "emailVerified" = true, "isOperator" = true where id = $1`,
    [zoe.user_id],
  );
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
  await Promise.all([server.stop(), receiver.stop()]);
});

const pageOf = (options: BrowserContextOptions, { user_id }: Someone, path: string) =>
  visit(chromium.browser, service.app, { ...options, user_id, path });

const settings = async () => okBody<AlertsView>(await zoe.get(`${zoe.base}/alerts`)).settings;

test('an owner chooses alerts by keyboard, is told what is wrong, and sees that it is saved', limit, async () => {
  const visited = await pageOf({ timezoneId: 'Europe/Warsaw' }, zoe, '/settings?tab=alerts');
  const { page } = visited;
  await page.getByText('Nothing is wrong, and nothing was lately.').waitFor();
  const keyboard = keyboardOf(page);
  await page.getByRole('checkbox', { name: 'Many calls fail, by no fault of their callers' }).focus();
  await keyboard.press('Space');
  await keyboard.fill('Webhook', 'http://10.0.0.1/x');
  await keyboard.press('Enter');
  await page.getByText(/The address/).waitFor();
  expect(await violationsIn(page)).toEqual([]);
  expect((await settings()).webhook_url).toBe(null);
  await page.getByRole('textbox', { name: 'Webhook' }).fill(`${receiver.url}/alerts`);
  await page.getByRole('checkbox', { name: 'Quiet hours: only what is critical is sent' }).focus();
  await keyboard.press('Space');
  await expect.poll(() => page.getByLabel('Time zone').first().inputValue()).toBe('Europe/Warsaw');
  await keyboard.enter('button', 'Save');
  await page.getByText('Saved.').waitFor();
  expect(await settings()).toMatchObject({
    error_percent: 20,
    webhook_url: `${receiver.url}/alerts`,
    quiet_hours: { from: '22:00', to: '07:00', time_zone: 'Europe/Warsaw' },
  });
  await page.getByLabel('Webhooks cannot be delivered').uncheck();
  await page.getByText('Saved.').waitFor({ state: 'detached' });
  await keyboard.enter('button', 'Send a test');
  await page.getByText('Webhook: answered 204').waitFor();
  await page.getByText('Mail to zoe@example.com', { exact: true }).waitFor();
  expect(server.mails.map(({ to }) => to)).toEqual([['zoe@example.com']]);
  await leave(visited);
});

test(
  'an open alert is on the page, on a phone and in the dark too; who may not change it reads why',
  limit,
  async () => {
    okBody(await zoe.send('PUT', `${zoe.base}/alerts`, { ...(await settings()), quiet_hours: null }));
    okBody(await zoe.send('PUT', `${zoe.base}/billing/alert`, { threshold: '50.00' }));
    await runAccountAlerts(service.app, signal);
    const viewer = await memberOf(service, zoe, 'viewer');
    const options = { colorScheme: 'dark', viewport: { width: 360, height: 780 } } as const;
    const visited = await pageOf(options, viewer, '/settings?tab=alerts');
    const { page } = visited;
    const open = page.getByRole('list', { name: 'Alerts of this account' });
    await open.getByText(/which is less than 50\.00 USD/).waitFor();
    expect(await sidewaysOf(page)).toBe(0);
    expect(await violationsIn(page)).toEqual([]);
    const save = page.getByRole('button', { name: /^Save/ });
    await save.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('tooltip').getByText('Your role here (viewer) does not allow this.').waitFor();
    expect(await page.getByText('Saved.').count()).toBe(0);
    await leave(visited);
  },
);

test('operators see what is wrong, where it goes, and whether a test arrives', limit, async () => {
  const visited = await pageOf({ colorScheme: 'dark' }, zoe, '/admin/alerts');
  const { page } = visited;
  await page.getByText('Nothing is wrong').waitFor();
  await page.getByText('Mail to zoe@example.com.').waitFor();
  await page.getByRole('button', { name: 'Send a test' }).click();
  await page.getByText('Delivered', { exact: true }).waitFor();
  const disk = {
    account_id: null,
    kind: 'disk',
    subject: 'box /data',
    level: 2,
    title: 'Little free space on box',
    summary: 'The disk of /data on box has 1.0 GB (2.0 %) left.',
    mark: null,
  } as const;
  await updateAlerts(service.app.db, 'operators', { causes: [disk] }, new Date());
  await page.setViewportSize({ width: 360, height: 780 });
  await page.reload();
  await page.getByText('Little free space on box').waitFor();
  await page.getByText('Critical', { exact: true }).waitFor();
  expect(await sidewaysOf(page)).toBe(0);
  expect(await violationsIn(page)).toEqual([]);
  await leave(visited);
});

test('a member asks for the spend by mail on the page of usage, and stops it', limit, async () => {
  const mail = async () => okBody<SpendMailView>(await zoe.get(`${zoe.base}/usage/mail`));
  for (const options of [{ colorScheme: 'dark' as const }, { viewport: { width: 390, height: 844 } }]) {
    const visited = await pageOf(options, zoe, '/usage?group=tag');
    const { page } = visited;
    const choose = async (every: string) => {
      await page.getByRole('combobox', { name: 'Send' }).click();
      await page.getByRole('option', { name: every }).click();
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      await page.getByText('Saved.').waitFor();
    };
    await page.getByRole('button', { name: 'Mail', exact: true }).click();
    await page.getByText('To zoe@example.com.').waitFor();
    await choose('Every Monday');
    expect(await mail()).toEqual({ mails: true, email: 'zoe@example.com', every: 'week', group: 'tag' });
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);
    await choose('Never');
    expect(await mail()).toMatchObject({ every: null, group: null });
    await leave(visited);
  }
});
