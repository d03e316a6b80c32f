import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { memberOf, ownerOfNew, type Someone } from '../dashboard/people.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** Thumbs on the pages of a task and of a call, and what becomes of them. */

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;
let client: Client;
let task: string;
let call: string;

const limit = { timeout: 300_000 };

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  owner = await ownerOfNew(service, 'Acme');
  client = await service.client({ account_id: owner.account_id });
  const input = { prompt: 'x', width: 16, height: 16 };
  task = (await client.call('POST', '/v1/generate?wait=60', { model: 'sandbox/image', input })).json.id;
  const messages = [{ role: 'user', content: 'Hello' }];
  const { headers } = await client.call('POST', '/v1/chat/completions', { model: 'sandbox/chat', messages });
  call = headers.get('x-request-id') ?? '';
  const words = { comment: 'Nearly what I wished', tags: ['colour'], user: 'ann' };
  for (const reference_id of [task, call]) {
    await client.call('POST', '/v1/feedback', { reference_id, score: 0.5, ...words });
  }
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

async function pageOf(person: string, path: string): Promise<{ page: Page; problems: string[] }> {
  const context = await contextOf(chromium.browser);
  const watched = await watchedPage(context, service.url);
  await signIn(watched.page, service.app, person, path);
  return watched;
}

const own = () =>
  service.app.db.query('select reference_id, score from feedback where end_user = $1 order by reference_id', [
    owner.user_id,
  ]);

test(
  'a thumb is given, turned and taken back by the keyboard, on the pages of a call and of a task',
  limit,
  async () => {
    const { page, problems } = await pageOf(owner.user_id, `/chats/${call}`);
    for (const [path, reference_id] of [
      [`/chats/${call}`, call],
      [`/tasks/${task}`, task],
    ] as const) {
      await page.goto(service.url + path);
      const thumbs = page.getByRole('group', { name: 'Your feedback' });
      const [good, bad] = ['Good result', 'Bad result'].map((name) => thumbs.getByRole('button', { name }));
      const pressed = async () => [await good?.getAttribute('aria-pressed'), await bad?.getAttribute('aria-pressed')];
      await page.getByText('Nearly what I wished').waitFor();
      await good?.press('Enter');
      await expect.poll(pressed, limit).toEqual(['true', 'false']);
      await expect.poll(own, limit).toEqual([{ reference_id, score: 1 }]);
      await bad?.press('Enter');
      await expect.poll(pressed, limit).toEqual(['false', 'true']);
      await expect.poll(own, limit).toEqual([{ reference_id, score: -1 }]);
      expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Bad result');
      await bad?.blur();
      await expect.poll(() => page.getByRole('tooltip').count()).toBe(0);
      expect(await violationsIn(page)).toEqual([]);
      await page.setViewportSize({ width: 390, height: 844 });
      expect(await sidewaysOf(page)).toBe(0);
      await page.setViewportSize({ width: 1280, height: 900 });
      await bad?.press('Enter');
      await expect.poll(pressed, limit).toEqual(['false', 'false']);
      await expect.poll(own, limit).toEqual([]);
    }
    expect(problems).toEqual([]);
  },
);

test('the page Speed has the mean of the scores, and none where there are none', limit, async () => {
  const { page } = await pageOf(owner.user_id, '/speed');
  await page.getByText('mean of 2, from −1 to +1').waitFor();
  await page
    .getByRole('row', { name: /sandbox\/image/i })
    .getByText('+0.5')
    .waitFor();
  const lonely = await ownerOfNew(service, 'Lonely');
  const theirs = await service.client({ account_id: lonely.account_id });
  const messages = [{ role: 'user', content: 'Hello' }];
  const { headers } = await theirs.call('POST', '/v1/chat/completions', { model: 'sandbox/chat', messages });
  await theirs.call('GET', `/v1/chat/${headers.get('x-request-id')}`); // waits for the record
  const { page: empty } = await pageOf(lonely.user_id, '/speed');
  await empty.getByText('Total time').first().waitFor();
  expect(await empty.getByText(/from −1 to \+1/).count()).toBe(0);
});

test('a viewer sees the scores, and thumbs that say why they do nothing', limit, async () => {
  const viewer = await memberOf(service, owner, 'viewer');
  const { page } = await pageOf(viewer.user_id, `/tasks/${task}`);
  await page.getByText('Nearly what I wished').waitFor();
  const thumb = page.getByRole('button', { name: /^Good result: Your role here \(viewer\) does not allow this/ });
  await expect.poll(() => thumb.getAttribute('aria-disabled')).toBe('true');
  expect(await violationsIn(page)).toEqual([]);
});
