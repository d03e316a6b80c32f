import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NewKeyView } from '../../src/dashboard/views/keys.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, settled, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** Contents of chats: switched on in the form of a key, read and deleted on the page of a call. */

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;
let key: NewKeyView;

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  owner = await ownerOfNew(service);
  key = okBody<NewKeyView>(await owner.post(`${owner.base}/keys`, { name: 'Website' }));
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

async function chat(): Promise<string> {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'I am ada@example.com' },
    { role: 'assistant', content: 'Hello Ada' },
    { role: 'user', content: 'What is EMP-1234?' },
  ];
  const answer = await fetch(`${service.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/chat', messages, max_tokens: 77 }),
  });
  expect(answer.status, await answer.text()).toBe(200);
  await service.app.contents.flush();
  return answer.headers.get('x-request-id') ?? '';
}

test('an owner lets a key store contents, reads a call, and deletes what was said', async () => {
  const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  const { page, problems } = await watchedPage(context, service.url);
  await signIn(page, service.app, owner.user_id, '/keys');
  await page.getByRole('button', { name: 'Change Website' }).click();
  const form = page.getByRole('dialog');
  await form.getByRole('switch', { name: 'Store the content of chats' }).click({ force: true });
  await form.getByRole('textbox', { name: 'Replace these texts, too' }).fill('EMP-####');
  await form.getByRole('textbox', { name: 'Delete after days' }).fill('7');
  await settled(page);
  expect(await violationsIn(page)).toEqual([]);
  await form.getByRole('button', { name: 'Save' }).click();
  await form.waitFor({ state: 'hidden' });

  await page.getByText('chats stored for 7 days').waitFor();
  let id = await chat();
  await expect
    .poll(async () => (await owner.get(`${owner.base}/chats/${(id = await chat())}`)).text)
    .toContain('"has_content":true');
  await page.goto(`${service.url}/chats/${id}`);
  await page.getByRole('button', { name: 'Show the content' }).click();
  const messages = page.getByRole('list', { name: 'Messages' });
  await messages.getByText('I am [email]').waitFor();
  await messages.getByText('What is [redacted]?').first().waitFor();
  await page.getByRole('list', { name: 'Read by' }).getByText('read it').waitFor();
  await settled(page);
  expect(await violationsIn(page)).toEqual([]);
  expect(await sidewaysOf(page)).toBeLessThanOrEqual(0);

  await page.getByRole('button', { name: 'Delete the content' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('The content of this call is not stored, or no longer.').waitFor();
  expect(problems).toEqual([]);
  await context.close();
});

test('a viewer sees that there is content, and who may read it', async () => {
  const id = await chat();
  await expect.poll(async () => (await owner.get(`${owner.base}/chats/${id}`)).text).toContain('"has_content":true');
  const viewer = await memberOf(service, owner, 'viewer');
  const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  const { page } = await watchedPage(context, service.url);
  await signIn(page, service.app, viewer.user_id, `/chats/${id}`);
  const button = page.getByRole('button', { name: 'Show the content' });
  await button.waitFor();
  await expect.poll(() => button.getAttribute('aria-disabled')).toBe('true');
  await context.close();
});

test('what was said in one call is not on the page of the next', async () => {
  const ids = [await chat(), await chat()];
  for (const id of ids)
    await expect.poll(async () => (await owner.get(`${owner.base}/chats/${id}`)).text).toContain('"has_content":true');
  const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  const { page } = await watchedPage(context, service.url);
  await signIn(page, service.app, owner.user_id, `/chats/${ids[0]}`);
  await page.getByRole('button', { name: 'Show the content' }).click();
  const messages = page.getByRole('list', { name: 'Messages' });
  await messages.waitFor();
  await page.evaluate(`history.pushState({}, '', '/chats/${ids[1]}')`);
  await page.getByRole('main').getByText(`${ids[1]}`).first().waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Show the content' }).count()).toBe(1);
  expect(await messages.count()).toBe(0);
  await context.close();
});
