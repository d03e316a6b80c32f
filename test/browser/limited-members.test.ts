import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NewKeyView } from '../../src/dashboard/views/keys.ts';
import type { TeamView } from '../../src/dashboard/views/settings.ts';
import { memberOf, okBody, ownerOfNew, type Someone } from '../dashboard/people.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, settled, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  owner = await ownerOfNew(service, 'Agency');
  for (const name of ['Bakery', 'Zanzibar tours']) {
    const { id: project } = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name }));
    const response = await owner.post(`${owner.base}/keys`, { name: `Site of ${name}`, project });
    const { secret } = okBody<NewKeyView>(response);
    const body = { model: 'sandbox/chat', messages: [{ role: 'user', content: name }] };
    const answer = await fetch(`${service.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (answer.status !== 200) throw new Error(await answer.text());
  }
}, 180_000);

afterAll(async () => {
  await chromium?.close();
  await expectExactBooks(service.app);
  await service?.stop();
});

const limit = { timeout: 240_000 };
const phone = { viewport: { width: 390, height: 844 } };

test(
  "an agency's owner gives a client's developer one project, who makes a key there and sees nothing else",
  limit,
  async () => {
    const context = await contextOf(chromium.browser, {});
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, owner.user_id, '/settings?tab=team');
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
    expect(await violationsIn(guest)).toEqual([]);
    await guest.getByRole('button', { name: 'Open the menu' }).click();
    const menu = guest.getByRole('navigation', { name: 'Pages' });
    await menu.getByRole('link', { name: 'API keys' }).waitFor();
    for (const name of ['Billing', 'Webhooks', 'Speed'])
      expect(await menu.getByRole('link', { name, exact: true }).count()).toBe(0);

    await guest.goto(`${service.url}/keys`);
    await guest.getByRole('button', { name: 'Create a key' }).first().click();
    const making = guest.getByRole('dialog', { name: 'Create a key' });
    await making.getByLabel('Name').fill('Staging');
    await making.getByRole('button', { name: 'Create' }).click();
    await guest.getByRole('dialog').getByText(/mdl_/).first().waitFor();
    await guest.getByRole('button', { name: 'I have copied it' }).click();
    await guest.getByText('sees only its project').waitFor();
    const project = guest.getByRole('table', { name: 'Projects' }).getByRole('row').nth(1).getByRole('cell');
    await expect.poll(async () => (await project.allInnerTexts())[1]).toMatch(/^2$/); // the new one and Site of Bakery
    expect(await guest.getByText('Zanzibar').count()).toBe(0);

    await guest.goto(`${service.url}/activity`);
    await guest.getByText('sandbox/chat').first().waitFor();
    await expect.poll(() => guest.getByText('Site of Bakery').count()).toBeGreaterThan(0);
    expect(await guest.getByText('Zanzibar').count()).toBe(0);
    await guest.goto(`${service.url}/models/sandbox/chat`);
    await guest.getByText('Not shown to members of some projects.').waitFor();
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
