import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { openPlaygroundKey } from '../../src/accounts/keys.ts';
import { addMember, ownerOf } from '../../src/accounts/members.ts';
import type { Role } from '../../src/accounts/roles.ts';
import { newId } from '../../src/lib/ids.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import {
  comeBackLater,
  contextOf,
  settled,
  sidewaysOf,
  signIn,
  violationsIn,
  watchedPage,
} from '../helpers/dashboard.ts';
import { keyboardOf } from '../helpers/keyboard.ts';
import { depth } from '../helpers/depth.ts';

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let account_id: string;
let owner_id: string;

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  const now = new Date();
  const account = await createAccount(
    service.app.db,
    { name: 'Own', currency: 'USD', initial_credit: 5_000_000n },
    now,
  );
  account_id = account.id;
  owner_id = await ownerOf(service.app.db, account_id, now);
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

/** Returns the output of a command that somebody pastes into a terminal. */
async function typed(command: string): Promise<string> {
  return (await promisify(execFile)('sh', ['-c', command])).stdout;
}

/** Asks for an image with this key and returns its status, or that of the refusal. */
async function callWith(key: string): Promise<string | number> {
  const response = await fetch(`${service.url}/v1/generate?wait=60`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/image', input: { prompt: 'x', width: 64, height: 64 } }),
  });
  return response.status === 202 ? ((await response.json()) as { status: string }).status : response.status;
}

test(
  'an owner creates a key, uses it by curl, rotates it and deletes it, all by keyboard',
  { timeout: 300_000 },
  async () => {
    const context = await contextOf(chromium.browser);
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, owner_id, '/keys');
    await settled(page);
    expect(await violationsIn(page)).toEqual([]);

    const keyboard = keyboardOf(page);
    await keyboard.enter('button', 'Create a key');
    await keyboard.isOn('textbox', 'Name');
    await keyboard.fill('Name', 'Worker');
    await keyboard.fill(/Monthly limit/, '2,5');
    await keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: /Worker/ });
    const secret = (await dialog.getByText(/^mdl_/).first().textContent()) ?? '';
    expect(secret).toMatch(/^mdl_[0-9A-Za-z]{36}$/);
    expect(await violationsIn(page)).toEqual([]);
    await keyboard.tabTo('tab', '.env');
    await keyboard.press('ArrowRight');
    const command = (await dialog.getByRole('region', { name: 'curl code' }).textContent()) ?? '';
    expect(command).toMatch(/^curl /);
    expect(JSON.parse(await typed(command))).toMatchObject({ status: 'succeeded', model: 'sandbox/image' });
    await keyboard.enter('button', 'I have copied it');
    await dialog.waitFor({ state: 'hidden' });
    await keyboard.isOn('button', 'Create a key');
    await expect.poll(() => page.content()).not.toContain(secret);
    expect(page.url()).not.toContain('mdl_');

    await page.reload();
    await page.getByText('of $2.50').waitFor();
    await keyboard.enter('button', 'Rotate Worker');
    await keyboard.enter('button', 'Rotate', page.getByRole('dialog'));
    const fresh = (await page.getByRole('dialog').getByText(/^mdl_/).first().textContent()) ?? '';
    expect([await callWith(secret), await callWith(fresh)]).toEqual(['succeeded', 'succeeded']);
    await keyboard.enter('button', 'I have copied it');
    await page.getByText('Rotated').waitFor();

    const old = page.getByRole('row', { name: /Rotated/ });
    await keyboard.enter('button', 'Delete Worker', old);
    await keyboard.isOn('textbox', /Type/);
    await expect.poll(() => page.getByRole('button', { name: 'Delete', exact: true }).isDisabled()).toBe(true);
    await keyboard.fill(/Type/, 'Worker');
    await keyboard.enter('button', 'Delete');
    await old.waitFor({ state: 'hidden' });
    await expect.poll(() => callWith(secret)).toBe(401);
    expect(await callWith(fresh)).toBe('succeeded');
    expect(problems).toEqual([]);
    await context.close();
  },
);

test('an owner sets an expiry, scopes and addresses of a key, and a wrong address is refused at its field', async () => {
  const context = await contextOf(chromium.browser);
  const { page, problems } = await watchedPage(context, service.url);
  await signIn(page, service.app, owner_id, '/keys');
  await page.getByRole('button', { name: 'Create a key' }).first().click();
  const form = page.getByRole('dialog', { name: 'Create a key' });
  await form.getByLabel('Name').fill('Batch');
  await form
    .getByRole('textbox', { name: 'Expires' })
    .or(form.getByRole('combobox', { name: 'Expires' }))
    .first()
    .click();
  await page.getByRole('option', { name: 'In 90 days' }).click();
  await form.getByText('Media', { exact: true }).click();
  await form.getByText('Read', { exact: true }).click();
  await form.getByLabel('Allowed addresses').fill('example.com');
  expect(await violationsIn(page)).toEqual([]);
  await form.getByRole('button', { name: 'Create' }).click();
  await form.getByText(/must have addresses such as/).waitFor();
  await form.getByLabel('Allowed addresses').fill('203.0.113.7, 10.0.0.0/8');
  await form.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('button', { name: 'I have copied it' }).click();
  const row = page.getByRole('row', { name: /Batch/ });
  await row.getByText('chat only, from 2 address ranges').waitFor();
  await row.getByText(/^ends /).waitFor();
  await row.getByRole('button', { name: 'Change Batch' }).click();
  const change = page.getByRole('dialog', { name: 'Change Batch' });
  await expect.poll(() => change.getByLabel('Allowed addresses').inputValue()).toBe('203.0.113.7/32\n10.0.0.0/8');
  await change.getByText('Read', { exact: true }).click();
  await change.getByRole('button', { name: 'Save' }).click();
  await row.getByText('chat and reading only').waitFor();
  expect(problems.filter((each) => !each.includes('400'))).toEqual([]);
  await context.close();
});

test('an owner limits a key to models and requests per minute, and a wrong model is refused at its field', async () => {
  const context = await contextOf(chromium.browser);
  const { page, problems } = await watchedPage(context, service.url);
  await signIn(page, service.app, owner_id, '/keys');
  await page.getByRole('button', { name: 'Create a key' }).first().click();
  const form = page.getByRole('dialog', { name: 'Create a key' });
  await form.getByLabel('Name').fill('Narrow');
  const modelsOf = (dialog: Locator) =>
    dialog
      .getByRole('textbox', { name: 'Allowed models' })
      .or(dialog.getByRole('combobox', { name: 'Allowed models' }));
  const models = modelsOf(form);
  await models.fill('acme/none');
  await models.press('Enter');
  await form.getByLabel('Requests per minute').fill('7');
  expect(await violationsIn(page)).toEqual([]);
  await form.getByRole('button', { name: 'Create', exact: true }).click();
  await form.getByText(/There is no model "acme\/none"/).waitFor();
  await models.press('Backspace');
  await models.fill('sandbox/im');
  await page.getByRole('option', { name: 'sandbox/image' }).click();
  await form.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('button', { name: 'I have copied it' }).click();
  const row = page.getByRole('row', { name: /Narrow/ });
  await row.getByText('sandbox/image only, 7 requests per minute').waitFor();
  await row.getByText('never').waitFor();
  await row.getByRole('button', { name: 'Change Narrow' }).click();
  const change = page.getByRole('dialog', { name: 'Change Narrow' });
  await modelsOf(change).press('Backspace');
  await change.getByLabel('Requests per minute').fill('');
  const { db } = service.app;
  await db.query(`update api_keys set addresses = '{203.0.113.7/32}' where name = 'Narrow'`); // by somebody else meanwhile
  await change.getByRole('button', { name: 'Save' }).click();
  await row.getByText('requests per minute').waitFor({ state: 'detached' });
  const rules = await db.query(`select models, addresses from api_keys where name = 'Narrow'`);
  expect(rules).toEqual([{ models: null, addresses: ['203.0.113.7/32'] }]);
  expect(problems.filter((each) => !each.includes('400'))).toEqual([]);
  await context.close();
});

test('the form of the playground’s key has a limit and no rule that the playground does not obey', async () => {
  const own = { account_id, name: 'Playground', limit_month: null };
  await service.app.db.tx((tx) => openPlaygroundKey(tx, own, new Date()));
  const context = await contextOf(chromium.browser);
  const { page, problems } = await watchedPage(context, service.url);
  await signIn(page, service.app, owner_id, '/keys');
  await page.getByRole('button', { name: 'Change Playground' }).click();
  const form = page.getByRole('dialog', { name: 'Change Playground' });
  await form.getByLabel('Monthly limit').fill('7');
  await form.getByText('Store the content of chats').waitFor();
  for (const label of ['Expires', 'May be used for', 'Allowed addresses', 'Allowed models'])
    expect(await form.getByText(label).count()).toBe(0);
  await form.getByRole('button', { name: 'Save' }).click();
  await page
    .getByRole('row', { name: /Playground/ })
    .getByText('7.00')
    .waitFor();
  expect(problems).toEqual([]);
  await context.close();
});

test('an owner makes a project, puts a key into it, and sees its keys alone and its spending', async () => {
  const context = await contextOf(chromium.browser, { viewport: { width: 390, height: 844 } });
  const { page, problems } = await watchedPage(context, service.url);
  await signIn(page, service.app, owner_id, '/keys');
  await settled(page);
  await page.getByRole('button', { name: 'Create a project' }).click();
  const dialog = page.getByRole('dialog', { name: 'Create a project' });
  await dialog.getByLabel('Name').fill('default');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await dialog.getByText(/There is a project "default" already/).waitFor();
  await dialog.getByLabel('Name').fill('Web shop');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('button', { name: 'Rename Web shop' }).waitFor();

  await page.getByRole('button', { name: 'Create a key' }).first().click();
  const form = page.getByRole('dialog', { name: 'Create a key' });
  await form.getByLabel('Name').fill('Till');
  await form.getByRole('combobox', { name: 'Project' }).click();
  await page.getByRole('option', { name: 'Web shop' }).click();
  await form.getByRole('button', { name: 'Create' }).click();
  const created = page.getByRole('dialog', { name: /Till/ });
  const secret = (await created.getByText(/^mdl_/).first().textContent()) ?? '';
  await created.getByRole('button', { name: 'I have copied it' }).click();
  expect(await callWith(secret)).toBe('succeeded');
  await page.getByText('in Web shop').waitFor();
  await page.goto(`${service.url}/keys`);
  await settled(page);
  await page.getByRole('combobox', { name: 'Project' }).click();
  await page.getByRole('option', { name: 'Web shop' }).click();
  await page.waitForURL(/project=project_/);
  await expect.poll(() => page.getByRole('button', { name: /^Change / }).count()).toBe(1);
  expect(await sidewaysOf(page)).toBe(0);
  expect(await violationsIn(page)).toEqual([]);

  await page.getByRole('link', { name: 'Usage by project' }).click();
  await page.getByRole('heading', { name: 'By project' }).waitFor();
  await page.getByText('Web shop', { exact: true }).filter({ visible: true }).first().waitFor();
  expect(await violationsIn(page)).toEqual([]);
  expect(problems.filter((each) => !each.includes('400'))).toEqual([]);
  await context.close();
});

async function newMember(name: string, role: Role): Promise<string> {
  const user_id = newId('user');
  await service.app.db.query(`insert into auth."user" (id, name, email, "emailVerified") values ($1, $2, $3, false)`, [
    user_id,
    name,
    `${name.toLowerCase()}@example.com`,
  ]);
  await addMember(service.app.db, { account_id, user_id, role }, new Date());
  return user_id;
}

test('a viewer sees the keys and why creating them is not possible', async () => {
  const user_id = await newMember('Vera', 'viewer');
  const context = await contextOf(chromium.browser);
  const { page, problems } = await watchedPage(context, service.url);
  await signIn(page, service.app, user_id, '/keys');
  await settled(page);
  const create = page.getByRole('button', { name: /Create a key/ }).first();
  await expect.poll(() => create.getAttribute('aria-disabled')).toBe('true');
  expect(await violationsIn(page)).toEqual([]);
  const keyboard = keyboardOf(page);
  await keyboard.tabTo('button', /^Create a key/);
  await page.getByRole('tooltip').filter({ hasText: 'Your role here (viewer)' }).waitFor();
  await keyboard.press('Enter');
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
  const answer = await page.request.post(`${service.url}/dash/accounts/${account_id}/keys`, {
    headers: { origin: service.url, 'sec-fetch-site': 'same-origin' },
    data: { name: 'Sly', limit: null },
  });
  expect(answer.status()).toBe(403);
  expect(await service.app.db.query(`select 1 from api_keys where name = 'Sly'`)).toEqual([]);
  expect(problems).toEqual([]);
  await context.close();
});

test.each(depth(['dark'] as const, ['light', 'dark'] as const))(
  'the webhook setup and every tab of the settings fit a phone in %s',
  { timeout: 300_000 },
  async (scheme) => {
    const context = await contextOf(chromium.browser, { colorScheme: scheme, viewport: { width: 360, height: 780 } });
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, owner_id);
    // The other pages, and the first tabs of these, are looked at in pages.test.ts.
    const tabs = ['security', 'team', 'alerts', 'appearance'].map((tab) => `/settings?tab=${tab}`);
    for (const path of ['/webhooks?tab=setup', ...tabs]) {
      await page.goto(service.url + path);
      await settled(page);
      expect([path, await sidewaysOf(page)]).toEqual([path, 0]);
      expect([path, ...(await violationsIn(page))]).toEqual([path]);
    }
    expect(problems).toEqual([]);
    await context.close();
  },
);

/** Two minutes later somebody comes back to this tab. */
test('what one person typed is gone when somebody else of the account has signed in behind the page', async () => {
  const context = await contextOf(chromium.browser);
  const { page, problems } = await watchedPage(context, service.url);
  await signIn(page, service.app, owner_id, '/keys');
  await page.getByRole('button', { name: 'Create a key' }).first().click();
  const name = page.getByRole('dialog', { name: 'Create a key' }).getByLabel('Name');
  await name.fill('Of the owner');
  const other = await newMember('Dev', 'developer');
  const { page: second } = await watchedPage(context, service.url);
  await signIn(second, service.app, other, '/keys');
  await comeBackLater(page);
  await name.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'You: Dev' }).waitFor();
  expect(problems).toEqual([]);
  await context.close();
});

test('a secret that is shown once stays when the page cannot be read again who is here', async () => {
  const context = await contextOf(chromium.browser);
  const { page } = await watchedPage(context, service.url);
  await signIn(page, service.app, owner_id, '/keys');
  await page.getByRole('button', { name: 'Create a key' }).first().click();
  const form = page.getByRole('dialog', { name: 'Create a key' });
  await form.getByLabel('Name').fill('Once');
  await form.getByRole('button', { name: 'Create' }).click();
  const created = page.getByRole('dialog', { name: /Once/ });
  const secret = created.getByText(/^mdl_/).first();
  const shown = await secret.textContent();
  let refused = 0;
  await page.route('**/dash/me*', async (route) => {
    refused += 1;
    const error = { type: 'rate_limit', message: 'Too many requests.' };
    await route.fulfill({ status: 429, json: { error } });
  });
  await comeBackLater(page);
  await expect.poll(() => refused).toBeGreaterThan(0);
  await expect.poll(() => page.evaluate('document.querySelector("main") !== null')).toBe(true);
  await settled(page);
  expect(await secret.textContent({ timeout: 5_000 })).toBe(shown);
  await context.close();
});
