import type { BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createKey } from '../../src/accounts/keys.ts';
import type { EndpointsView, EndpointView } from '../../src/dashboard/views/webhooks.ts';
import { hasSignature } from '../../src/webhooks/sign.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { leave, sidewaysOf, violationsIn, visit } from '../helpers/dashboard.ts';
import { keyboardOf } from '../helpers/keyboard.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';

/** The endpoints of the page Webhooks. */
let receiver: Receiver;
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let zoe: Someone;

const limit = { timeout: 300_000 };

beforeAll(async () => {
  receiver = await startReceiver();
  service = await startTestApp({ yaml: 'version: 1\nnet: { allow: [127.0.0.1/32] }\n' });
  chromium = await launchBrowser();
  zoe = await ownerOfNew(service, 'Acme');
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
  await receiver.stop();
});

const pageOf = (options: BrowserContextOptions, { user_id }: Someone, path: string) =>
  visit(chromium.browser, service.app, { ...options, user_id, path });

const endpoints = async () => okBody<EndpointsView>(await zoe.get(`${zoe.base}/webhooks/endpoints`)).data;

async function runTask(): Promise<void> {
  const key = { account_id: zoe.account_id, name: 'Shop', limit_month: null };
  const { text } = await createKey(service.app.db, key, new Date());
  await fetch(`${service.url}/v1/generate?wait=30`, {
    method: 'POST',
    headers: { authorization: `Bearer ${text}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/image', input: { prompt: '[[fail]] x' }, metadata: { team: 'web' } }),
  });
}

test('an owner adds an endpoint by keyboard, copies its secret, tests it and sees its delivery', limit, async () => {
  const visited = await pageOf({}, zoe, '/webhooks?tab=endpoints');
  const { page } = visited;
  const keyboard = keyboardOf(page);
  await page.getByText('No endpoints yet').waitFor();
  await keyboard.enter('button', 'Add an endpoint');
  const dialog = page.getByRole('dialog', { name: 'Add an endpoint' });
  await keyboard.fill('Address', 'http://10.0.0.1/');
  await keyboard.press('Enter');
  await dialog.getByText(/url must be reachable from the internet/).waitFor();
  expect(await violationsIn(page)).toEqual([]);
  await dialog.getByRole('textbox', { name: 'Address' }).fill(`${receiver.url}/hook`);
  await keyboard.fill('Description', 'Shop backend');
  await dialog.getByRole('checkbox', { name: 'invoice.*' }).check();
  await dialog.getByRole('textbox', { name: 'Metadata' }).fill('team=web');
  await keyboard.enter('button', 'Add', dialog);
  await page.getByRole('dialog', { name: 'The secret of Shop backend' }).waitFor();
  const secret = (await page.getByRole('region', { name: 'secret', exact: true }).textContent()) ?? '';
  expect(secret).toMatch(/^whsec_/);
  await keyboard.enter('button', 'I have copied it');
  await expect.poll(() => page.content()).not.toContain(secret);
  expect(await endpoints()).toMatchObject([
    { description: 'Shop backend', events: ['task.*', 'invoice.*'], filters: { metadata: { team: 'web' } } },
  ]);

  await keyboard.enter('button', 'Send a test');
  const test_dialog = page.getByRole('dialog', { name: 'Send a test to Shop backend' });
  await keyboard.enter('button', 'Send', test_dialog);
  await test_dialog.getByText('Answered 204').waitFor();
  await test_dialog.getByLabel('Headers of the answer').waitFor();
  const sent = await receiver.nth('/hook', 1);
  expect(hasSignature(sent.body, String(sent.headers['x-service-signature']), secret)).toBe(true);
  await keyboard.enter('button', 'Close', test_dialog);

  await runTask();
  await receiver.nth('/hook', 2);
  await keyboard.enter('link', 'Deliveries');
  await page.waitForURL(/endpoint=whe_/);
  await page.getByRole('table').getByText('task.failed').waitFor();
  await expect.poll(() => page.getByRole('table').getByText('test', { exact: true }).count()).toBe(1);
  await page.getByRole('searchbox', { name: 'Task or address' }).fill('nowhere');
  await page.getByText('Nothing matches this filter').waitFor();
  await keyboard.enter('button', 'Clear');
  await page.getByRole('table').getByText('task.failed').waitFor();
  await leave(visited);
});

test(
  'what an endpoint missed while it was off is counted, then sent, and it is changed and deleted',
  limit,
  async () => {
    const [endpoint] = await endpoints();
    const path = `${zoe.base}/webhooks/endpoints/${endpoint?.id}`;
    await zoe.send('PATCH', path, { enabled: false });
    const { id: project } = okBody<{ id: string }>(await zoe.post(`${zoe.base}/projects`, { name: 'Shops' }));
    await runTask();
    const visited = await pageOf({}, zoe, '/webhooks?tab=endpoints');
    const { page } = visited;
    const keyboard = keyboardOf(page);
    await page.getByText('Somebody switched it off.').waitFor();
    await keyboard.enter('button', 'Enable');
    await page.getByText('Somebody switched it off.').waitFor({ state: 'detached' });
    const before = receiver.received.length;
    await keyboard.enter('button', 'Replay');
    const dialog = page.getByRole('dialog', { name: 'Replay events to Shop backend' });
    await keyboard.enter('button', 'Count', dialog);
    await dialog.getByText('1 event will be sent.').waitFor();
    expect(await violationsIn(page)).toEqual([]);
    expect(receiver.received).toHaveLength(before);
    // It says so for a few seconds only.
    await Promise.all([page.getByText('1 event queued').waitFor(), keyboard.enter('button', 'Send again', dialog)]);
    await receiver.nth('/hook', 3);

    await keyboard.enter('button', 'Rotate the secret');
    await keyboard.enter('button', 'Rotate', page.getByRole('dialog', { name: 'Rotate the secret of Shop backend' }));
    await keyboard.enter('button', 'I have copied it');
    await page.getByText(/The previous secret stays valid until/).waitFor();
    await keyboard.enter('button', 'Change');
    const form = page.getByRole('dialog', { name: 'Change Shop backend' });
    const filters = { models: ['sandbox/image'], metadata: { team: 'web' } };
    await zoe.send('PATCH', path, { description: 'Shop of Anna', enabled: false, filters }); // behind the form
    await page.getByText('Shop of Anna').first().waitFor();
    await form.getByRole('checkbox', { name: 'task.*' }).uncheck();
    await form.getByRole('checkbox', { name: 'task.failed' }).check();
    await form.getByRole('combobox', { name: 'Projects' }).click();
    await page.getByRole('option', { name: 'Shops' }).click();
    await page.keyboard.press('Tab');
    await keyboard.enter('button', 'Save', form);
    await form.waitFor({ state: 'detached' });
    expect((await endpoints())[0]).toMatchObject({
      description: 'Shop of Anna',
      enabled: false,
      events: ['invoice.*', 'task.failed'],
      filters: { models: ['sandbox/image'], metadata: { team: 'web' }, projects: [project] },
    });
    await page.getByText('project Shops', { exact: true }).waitFor();
    await keyboard.enter('button', 'Delete');
    await keyboard.enter('button', 'Delete', page.getByRole('dialog', { name: 'Delete Shop of Anna' }));
    await page.getByText('No endpoints yet').waitFor();
    expect(await endpoints()).toEqual([]);
    await leave(visited);
  },
);

const looks = [
  { look: 'light', colorScheme: 'light', width: 1280 },
  { look: 'dark', colorScheme: 'dark', width: 1280 },
  { look: 'a phone', colorScheme: 'dark', width: 390 },
] as const;

test.each(looks)(
  'endpoints have no faults in $look, and a viewer learns why they change nothing',
  limit,
  async ({ colorScheme, width }) => {
    const body = {
      url: `${receiver.url}/${'long/'.repeat(30)}`,
      events: ['*'],
      filters: { models: ['sandbox/image'] },
    };
    const { endpoint } = okBody<{ endpoint: EndpointView }>(await zoe.post(`${zoe.base}/webhooks/endpoints`, body));
    receiver.answer(new URL(body.url).pathname, 410);
    await runTask();
    await expect.poll(async () => (await endpoints()).at(-1)?.disabled_reason).toBe('gone');
    const viewer = await memberOf(service, zoe, 'viewer');
    const visited = await pageOf({ colorScheme, viewport: { width, height: 900 } }, viewer, '/webhooks?tab=endpoints');
    const { page } = visited;
    await page
      .getByText(/Its receiver answered 410/)
      .first()
      .waitFor();
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);
    await page.getByRole('button', { name: 'Add an endpoint' }).focus();
    await page
      .getByRole('tooltip')
      .getByText(/Your role here/)
      .waitFor();
    await leave(visited);
    await zoe.send('DELETE', `${zoe.base}/webhooks/endpoints/${endpoint.id}`);
  },
);
