import type { Locator, Page, Request } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { okBody, ownerOfNew, signInAs, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { leave, visit } from '../helpers/dashboard.ts';

/** Rows that go when they are clicked: the second click of a double one is at the next row, and does nothing to it. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;

const limit = { timeout: 300_000 };

beforeAll(async () => {
  service = await startTestApp({ worker: false });
  chromium = await launchBrowser();
  owner = await ownerOfNew(service, 'Acme');
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

const open = (path: string) => visit(chromium.browser, service.app, { user_id: owner.user_id, path });

/** Clicks twice at the place of the first of these buttons, the second time once its row is gone. Returns how many requests that made. */
async function requestsOfDoubleClick(page: Page, buttons: Locator): Promise<number> {
  const count = await buttons.count();
  let requests = 0;
  const onRequest = (request: Request) => {
    if (request.method() !== 'GET') requests += 1;
  };
  page.on('request', onRequest);
  await buttons.first().click();
  await expect.poll(() => buttons.count()).toBe(count - 1);
  await page.mouse.down({ clickCount: 2 });
  await page.mouse.up({ clickCount: 2 });
  await page.reload(); // what the click has begun is seen by now
  page.off('request', onRequest);
  return requests;
}

test('of the saved lists, one goes', limit, async () => {
  for (const name of ['First', 'Second', 'Third'])
    okBody(await owner.post(`${owner.base}/views`, { name, search: `status=${name.toLowerCase()}` }));
  const visited = await open('/activity');
  const { page } = visited;
  await page.getByRole('button', { name: 'Saved lists' }).click();
  const removes = page.getByRole('dialog').getByRole('button', { name: /^Remove / });
  await expect.poll(() => removes.count()).toBe(3);
  expect(await requestsOfDoubleClick(page, removes)).toBe(1);
  expect(okBody<{ data: unknown[] }>(await owner.get(`${owner.base}/views`)).data).toHaveLength(2);
  await leave(visited);
});

test('of the invitations, one is withdrawn', limit, async () => {
  for (const name of ['ada', 'bob', 'cyd'])
    okBody(await owner.post(`${owner.base}/team/invitations`, { email: `${name}@example.com`, role: 'viewer' }));
  const visited = await open('/settings?tab=team');
  const withdraws = visited.page.getByRole('button', { name: /^Withdraw / });
  await expect.poll(() => withdraws.count()).toBe(3);
  expect(await requestsOfDoubleClick(visited.page, withdraws)).toBe(1);
  await expect.poll(() => withdraws.count()).toBe(2);
  await leave(visited);
});

test('of the files of a message, one goes', limit, async () => {
  const visited = await open('/playground?model=sandbox%2Fchat');
  const { page } = visited;
  const files = ['a', 'b', 'c'].map((name) => ({
    name: `${name}.txt`,
    mimeType: 'text/plain',
    buffer: Buffer.from(name),
  }));
  await page.locator('input[type=file]').setInputFiles(files);
  const removes = page.getByRole('group', { name: 'Attached files' }).getByRole('button', { name: /^Remove / });
  await expect.poll(() => removes.count()).toBe(3);
  await removes.first().click();
  await expect.poll(() => removes.count()).toBe(2);
  await page.mouse.down({ clickCount: 2 });
  await page.mouse.up({ clickCount: 2 });
  await removes.nth(1).focus(); // once the click was handled
  expect(await removes.count()).toBe(2);
  await leave(visited);
});

test('of the sessions, one is ended', limit, async () => {
  await signInAs(service, owner.user_id, owner.account_id);
  await signInAs(service, owner.user_id, owner.account_id);
  const visited = await open('/settings?tab=security');
  const ends = visited.page.getByRole('button', { name: /^Sign out (?!everywhere)/ });
  await expect.poll(() => ends.count()).toBeGreaterThanOrEqual(3);
  const count = await ends.count();
  expect(await requestsOfDoubleClick(visited.page, ends)).toBe(1);
  await expect.poll(() => ends.count()).toBe(count - 1);
  await leave(visited);
});
