import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NewKeyView, ProjectsView } from '../../src/dashboard/views/keys.ts';
import type { RefusalsView } from '../../src/dashboard/views/refusals.ts';
import type { TeamView } from '../../src/dashboard/views/settings.ts';
import { memberOf, okBody, ownerOfNew, type Someone } from '../dashboard/people.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import {
  contextOf,
  leave,
  settled,
  sidewaysOf,
  signIn,
  violationsIn,
  visit,
  watchedPage,
} from '../helpers/dashboard.ts';

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  owner = await ownerOfNew(service, 'Agency');
  for (const name of ['Bakery', 'Zanzibar tours']) {
    const { id: project } = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name }));
    const log_content = { keep_days: 7, redact: [], patterns: [] };
    const response = await owner.post(`${owner.base}/keys`, { name: `Site of ${name}`, project, log_content });
    const { secret } = okBody<NewKeyView>(response);
    const body = { model: 'sandbox/chat', messages: [{ role: 'user', content: name }] };
    const answer = await fetch(`${service.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (answer.status !== 200) throw new Error(await answer.text());
  }
  await service.app.contents.flush();
});

afterAll(async () => {
  await chromium?.close();
  await expectExactBooks(service.app);
  await service?.stop();
});

const limit = { timeout: 300_000 };
const phone = { viewport: { width: 390, height: 844 } };

/** Takes the contents of calls along from the list of chats, as a file. */
async function downloadOn(guest: Page): Promise<string> {
  await guest.goto(`${service.url}/activity?tab=chats`);
  await guest.getByText('Site of Bakery').first().waitFor();
  await guest.getByRole('button', { name: 'Download' }).click();
  const download = guest.waitForEvent('download');
  await guest.getByRole('menuitem', { name: 'Contents as JSONL' }).click();
  const path = await (await download).path();
  return readFile(path, 'utf8');
}

/** Creates a key on the page of keys, whose form says what a key of one project reads. */
async function createKeyOn(guest: Page): Promise<void> {
  await guest.goto(`${service.url}/keys`);
  await guest.getByRole('button', { name: 'Create a key' }).first().click();
  const making = guest.getByRole('dialog', { name: 'Create a key' });
  await making.getByLabel('Name').fill('Staging');
  await making.getByText('Read: usage, speed, tasks and calls of its project, not the balance.').waitFor();
  await making.getByRole('button', { name: 'Create' }).click();
  await guest.getByRole('dialog').getByText(/mdl_/).first().waitFor();
  await guest.getByRole('button', { name: 'I have copied it' }).click();
  await guest.getByText('sees only its project').waitFor();
  const project = guest.getByRole('table', { name: 'Projects' }).getByRole('row').nth(1).getByRole('cell');
  await expect.poll(async () => (await project.allInnerTexts())[1]).toMatch(/^2$/); // the new one and Site of Bakery
  expect(await guest.getByText('Zanzibar').count()).toBe(0);
}

test(
  "an agency's owner gives a client's developer one project, who makes a key there and sees nothing else",
  limit,
  async () => {
    const context = await contextOf(chromium.browser, {});
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, owner.user_id, '/settings?tab=team');
    const roles = await page.getByRole('link', { name: 'What each role may do' }).getAttribute('href');
    expect(await (await fetch(service.url + (roles ?? ''))).text()).toContain('Limited developer');
    await page.getByRole('button', { name: 'Invite somebody' }).click();
    const dialog = page.getByRole('dialog', { name: 'Invite somebody to Agency' });
    await dialog.getByLabel('E-mail address').fill('dev@example.com');
    await dialog.getByRole('radio', { name: 'Only some projects' }).click();
    await dialog.getByText('Without a project, they see nothing').waitFor();
    await dialog.getByRole('checkbox', { name: 'Bakery' }).click();
    expect(await violationsIn(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Invite' }).click();
    await page.getByRole('dialog', { name: 'The invitation is ready' }).getByRole('button', { name: 'Done' }).click();
    await page.getByRole('row', { name: /dev@example\.com .*Bakery/ }).waitFor();
    const { invitations } = okBody<TeamView>(await owner.get(`${owner.base}/team`));
    await context.close();

    const other = await contextOf(chromium.browser, phone);
    const { page: guest, problems: faults } = await watchedPage(other, service.url);
    await guest.goto((invitations ?? [])[0]?.link ?? '');
    await guest.getByText('You will see only: Bakery.').waitFor();
    await guest.getByLabel('Your name').fill('Dora');
    await guest.locator('input[type=password]').fill('correct horse battery');
    await guest.getByRole('button', { name: 'Join' }).click();
    await guest.getByRole('heading', { name: 'Home' }).waitFor();
    await settled(guest);
    expect(await guest.getByText('Balance').count()).toBe(0);
    await guest.getByText('Create a key in your project').waitFor();
    await guest.getByText('Nobody has set a budget for your projects').waitFor();
    await guest.getByRole('link', { name: 'sandbox/chat' }).waitFor(); // a recent call
    expect(await sidewaysOf(guest)).toBe(0);
    expect(await violationsIn(guest)).toEqual([]);
    await guest.getByRole('button', { name: 'Open the menu' }).click();
    const menu = guest.getByRole('navigation', { name: 'Pages' });
    await menu.getByRole('link', { name: 'API keys' }).waitFor();
    for (const name of ['Billing', 'Webhooks'])
      expect(await menu.getByRole('link', { name, exact: true }).count()).toBe(0);

    await createKeyOn(guest);
    const live = guest.waitForResponse((answer) => answer.url().endsWith('/activity/events'));
    await guest.goto(`${service.url}/activity`);
    expect((await live).status()).toBe(200);
    await guest.getByText('sandbox/chat').first().waitFor();
    await expect.poll(() => guest.getByText('Site of Bakery').count()).toBeGreaterThan(0);
    expect(await guest.getByText('Zanzibar').count()).toBe(0);
    const contents = (await downloadOn(guest)).trim().split('\n');
    expect(contents).toEqual([expect.stringContaining('Bakery')]);
    await guest.goto(`${service.url}/usage`);
    await guest.getByText('Your keys answer with the usage of their project alone.').waitFor();
    await guest.getByText('Nothing was refused in this period.').waitFor();
    await guest.goto(`${service.url}/speed`);
    await guest.getByText('of 1', { exact: true }).waitFor();
    await guest.goto(`${service.url}/models/sandbox/chat`);
    await guest.getByText('1 of 1').waitFor();
    await guest.goto(`${service.url}/settings`);
    await guest.getByText('Sees some projects alone.').waitFor();
    await guest.goto(`${service.url}/playground?prompt=prompt_01m8kjj9k1e0rvr3a172k0kbg8`);
    await guest
      .getByRole('alert')
      .getByText(/^Saved prompts belong to the whole account/)
      .waitFor();
    await guest.goto(`${service.url}/billing`);
    await guest.getByText('This page is about the whole account').waitFor();
    expect(await violationsIn(guest)).toEqual([]);
    expect(await sidewaysOf(guest)).toBe(0);
    expect([...problems, ...faults]).toEqual([]);
    await other.close();
  },
);

test(
  'an owner limits a member in a dialog on a phone in the dark, and takes the last project away',
  limit,
  async () => {
    const member = await memberOf(service, owner, 'viewer');
    const context = await contextOf(chromium.browser, { ...phone, colorScheme: 'dark' });
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, owner.user_id, '/settings?tab=team');
    await page.getByRole('button', { name: 'Projects of A viewer: All projects' }).click();
    const dialog = page.getByRole('dialog', { name: 'Projects of A viewer' });
    await dialog.getByRole('radio', { name: 'Only some projects' }).click();
    await dialog.getByRole('checkbox', { name: 'Bakery' }).click();
    expect(await violationsIn(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Projects of A viewer: Bakery' }).click();
    await dialog.getByRole('checkbox', { name: 'Bakery' }).click();
    await dialog.getByText('Without a project, they see nothing').waitFor();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Projects of A viewer: No project: sees nothing' }).waitFor();
    await settled(page);
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);
    const theirs = await watchedPage(context, service.url);
    await signIn(theirs.page, service.app, member.user_id, '/activity');
    await theirs.page.getByRole('heading', { name: 'You have no project here' }).waitFor();
    await settled(theirs.page);
    expect(await violationsIn(theirs.page)).toEqual([]);
    expect([...problems, ...theirs.problems]).toEqual([]);
    await context.close();
  },
);

test(
  'a limited developer sees on Home how far the budget of their project is, and on Usage why a call of theirs was refused',
  limit,
  async () => {
    const developer = await memberOf(service, owner, 'developer');
    const [bakery] = okBody<ProjectsView>(await owner.get(`${owner.base}/projects`)).data.filter(
      ({ name }) => name === 'Bakery',
    );
    const project = bakery?.id ?? '';
    okBody(await owner.send('PATCH', `${owner.base}/team/${developer.user_id}`, { projects: [project] }));
    const budget = { name: 'Bakery in a month', scope: 'project', subject: project, period: 'month', kind: 'soft' };
    okBody(await owner.post(`${owner.base}/budgets`, { ...budget, amount: '0.0001' })); // of more, the bar has no width
    const rules = { name: 'Narrow', project, models: ['sandbox/image'] };
    const { secret } = okBody<NewKeyView>(await developer.post(`${developer.base}/keys`, rules));
    const refused = await fetch(`${service.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    expect(refused.status).toBe(403);
    const count = async () => okBody<RefusalsView>(await developer.get(`${developer.base}/refusals`)).total;
    await expect.poll(count, { timeout: 20_000 }).toBe(1);
    const { user_id } = developer;
    const home = await visit(chromium.browser, service.app, { user_id, path: '/', colorScheme: 'dark', ...phone });
    await home.page.getByRole('progressbar', { name: /^Bakery in a month: \d+ % used$/ }).waitFor();
    await home.page.getByRole('progressbar', { name: /^[12] of 3 steps done$/ }).waitFor();
    expect([await violationsIn(home.page), await sidewaysOf(home.page)]).toEqual([[], 0]);
    await leave(home);
    const usage = await visit(chromium.browser, service.app, { user_id, path: '/usage?period=2d' });
    await usage.page.getByRole('row', { name: /The key may not use the model.*Narrow/ }).waitFor();
    expect(await violationsIn(usage.page)).toEqual([]);
    await leave(usage);
  },
);
