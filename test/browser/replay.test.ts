import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ChatContentView } from '../../src/dashboard/views/activity.ts';
import type { NewKeyView } from '../../src/dashboard/views/keys.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, settled, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** A call whose key stores contents is opened in the playground, changed, and asked again. */

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;
let key: NewKeyView;
let context: BrowserContext;
let page: Page;
let problems: string[];

beforeAll(async () => {
  service = await startTestApp({ yaml });
  chromium = await launchBrowser();
  owner = await ownerOfNew(service);
  const log_content = { keep_days: 7, redact: ['email'], patterns: [] };
  key = okBody<NewKeyView>(await owner.post(`${owner.base}/keys`, { name: 'Website', log_content }));
  context = await contextOf(chromium.browser);
  ({ page, problems } = await watchedPage(context, service.url));
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

/** A second model of chat. */
const yaml = `version: 1
models:
  - id: own/chat
    kind: chat
    name: Own chat
    max_output_tokens: 16384
    price:
      - { unit: input_token, per: 1000000, amount: "1.00" }
      - { unit: output_token, per: 1000000, amount: "4.00" }
    routes:
      - { provider: sandbox, upstream_model: chat }
`;

const limit = { timeout: 300_000 };
const patience = { timeout: 120_000 };

async function call(body: object, status = 200): Promise<string> {
  const answer = await fetch(`${service.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/chat', ...body }),
  });
  expect(answer.status, await answer.text()).toBe(status);
  await service.app.contents.flush();
  return answer.headers.get('x-request-id') ?? '';
}

const logOf = (on: Page, model = 'Sandbox chat') => on.getByRole('log', { name: `Conversation with ${model}` });
const readers = () => page.getByRole('list', { name: 'Read by' }).getByText('read it');

/** The body that a click sends. */
async function sentBy(click: () => Promise<void>): Promise<unknown> {
  const [request] = await Promise.all([
    page.waitForRequest((each) => each.url().endsWith('/chat/completions') && each.method() === 'POST'),
    click(),
  ]);
  return request.postDataJSON();
}

const streamed = { stream: true, stream_options: { include_usage: true } };

test(
  'a stored call is opened in the playground, asked again as it was, and then with a changed word',
  limit,
  async () => {
    const settings = { temperature: 0.5, max_tokens: 77, reasoning_effort: 'low' };
    const system = { role: 'system', content: 'Be brief.' };
    const before = [
      { role: 'user', content: 'I am ada@example.com' },
      { role: 'assistant', content: 'Hello Ada' },
    ];
    const id = await call({ messages: [system, ...before, { role: 'user', content: 'Name a river' }], ...settings });

    await signIn(page, service.app, owner.user_id);
    await page.getByRole('navigation').getByRole('link', { name: 'Activity' }).click();
    await page.getByRole('tab', { name: 'Chat', exact: true }).click();
    await page.getByRole('main').getByRole('table').getByRole('link').first().click();
    await page.getByRole('heading', { level: 1, name: 'Chat call' }).waitFor();
    await page.getByRole('button', { name: 'Open in the playground' }).click();

    const log = logOf(page);
    await log.getByText('I am [email]').waitFor();
    await log.getByText('“Name a river”').waitFor();
    await expect.poll(() => page.getByRole('textbox', { name: 'System prompt' }).inputValue()).toBe('Be brief.');
    await expect.poll(() => page.getByRole('textbox', { name: 'Maximum output tokens' }).inputValue()).toBe('77');
    await expect.poll(() => page.getByRole('textbox', { name: 'Temperature' }).inputValue()).toBe('0.5');
    const note = page.getByRole('note').filter({ hasText: 'From a stored call' });
    await note.getByText('Words in brackets stand for what was replaced before it was stored: email.').waitFor();
    await note.getByText('Nothing is saved in this browser until then.').waitFor();
    await log.getByText(/\d+ in, \d+ out · \$0\.\d+/).waitFor();
    await settled(page);
    expect(await violationsIn(page)).toEqual([]);

    const redacted = [system, { ...before[0], content: 'I am [email]' }, before[1]];
    const again = await sentBy(() => log.getByRole('button', { name: 'Regenerate the answer' }).last().click());
    const messages = [...redacted, { role: 'user', content: 'Name a river' }];
    expect(again).toEqual({ model: 'sandbox/chat', messages, ...settings, ...streamed });
    await log.getByRole('img', { name: 'Version 2 of 2' }).waitFor();

    await log.getByRole('button', { name: 'Edit the message' }).last().click();
    await log.getByRole('textbox', { name: 'The message, changed' }).fill('Name a mountain');
    const changed = await sentBy(() => log.getByRole('button', { name: 'Ask again' }).click());
    expect(changed).toMatchObject({ messages: [...redacted, { role: 'user', content: 'Name a mountain' }] });
    await log.getByText('“Name a mountain”').waitFor();
    await log.getByText(/\d+ in, \d+ out · \$0\.\d+/).waitFor();

    // From now on it is a conversation as any other: a reload shows it, and reads nothing of the account.
    await expect.poll(() => new URL(page.url()).searchParams.get('chat'), patience).toMatch(/^[0-9a-f]{24}$/);
    expect(new URL(page.url()).searchParams.has('call')).toBe(false);
    await page.getByRole('button', { name: 'More for I am [email]' }).waitFor();
    await page.reload();
    await log.getByText('“Name a mountain”').waitFor();
    await note.getByText(/stand for what was replaced/).waitFor();
    await note.getByRole('link', { name: 'The call' }).click();
    await page.waitForURL(({ pathname }) => pathname === `/chats/${id}`);
    await readers().first().waitFor();
    await expect.poll(() => readers().count()).toBe(1);
    expect(problems).toEqual([]);
  },
);

test(
  'looking at a stored call saves nothing in the browser, and another model can be asked the same',
  limit,
  async () => {
    const id = await call({ messages: [{ role: 'user', content: 'Only a look' }] });
    await page.goto(`${service.url}/playground?call=${id}`);
    await logOf(page).getByText('“Only a look”').waitFor();
    await page.getByRole('combobox', { name: 'Model', exact: true }).click();
    await page.getByRole('option', { name: /own\/chat/ }).click();
    const other = logOf(page, 'Own chat');
    await other.getByText('Only a look').waitFor();
    await page.getByRole('button', { name: 'Start over' }).click();
    await other.getByText('Only a look').waitFor({ state: 'detached' });
    await expect.poll(() => new URL(page.url()).searchParams.has('call')).toBe(false);
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Playground' }).waitFor();
    await page.getByRole('button', { name: 'More for I am [email]' }).waitFor();
    expect(await page.getByRole('button', { name: 'More for Only a look' }).count()).toBe(0);
  },
);

test('a call that failed is opened without an answer, which can be asked for', limit, async () => {
  const id = await call({ messages: [{ role: 'user', content: 'Please answer [[error 400]]' }] }, 400);
  await page.goto(`${service.url}/chats/${id}`);
  await page.getByRole('button', { name: 'Open in the playground' }).click();
  await page.getByText('No answer of this call is stored.').waitFor();
  const body = await sentBy(() => logOf(page).getByRole('button', { name: 'Ask for an answer' }).click());
  expect(body).toMatchObject({ messages: [{ role: 'user', content: 'Please answer [[error 400]]' }] });
  await logOf(page).getByRole('alert').waitFor();
});

test('contents that are gone are said to be gone, on the page of the call and in the playground', limit, async () => {
  const id = await call({ messages: [{ role: 'user', content: 'Gone soon' }] });
  okBody<ChatContentView>(await owner.send('DELETE', `${owner.base}/chats/${id}/content`, {}));
  await page.goto(`${service.url}/playground?model=sandbox%2Fchat&call=${id}`);
  await page.getByText('There is no content of this call: its key stores none, or its time is over.').waitFor();
  await page.getByRole('textbox', { name: 'Message', exact: true }).waitFor();
  await page.goto(`${service.url}/chats/${id}`);
  await page.getByText('The content of this call is not stored, or no longer.').waitFor();
  expect(await page.getByRole('button', { name: 'Open in the playground' }).count()).toBe(0);
});

test(
  'a viewer cannot open a call in the playground, not by its address either, and no read is written',
  limit,
  async () => {
    const id = await call({ messages: [{ role: 'user', content: 'Not for viewers' }] });
    const viewer = await memberOf(service, owner, 'viewer');
    const theirs = await contextOf(chromium.browser);
    const { page: other } = await watchedPage(theirs, service.url);
    await signIn(other, service.app, viewer.user_id, `/chats/${id}`);
    const button = other.getByRole('button', { name: 'Open in the playground' });
    await button.waitFor();
    await expect.poll(() => button.getAttribute('aria-disabled')).toBe('true');
    await other.goto(`${service.url}/playground?model=sandbox%2Fchat&call=${id}`);
    await other.getByText(/role/i).first().waitFor();
    await logOf(other).waitFor();
    expect(await other.getByText('Not for viewers').count()).toBe(0);
    await theirs.close();
    const { text } = await owner.get(`${owner.base}/chats/${id}/content/accesses`);
    expect(JSON.parse(text)).toEqual({ data: [] });
  },
);

test('on a phone the opened call needs no scrolling sideways', limit, async () => {
  const link = `https://example.com/${'long-name/'.repeat(12)}a.png`;
  const content = [
    { type: 'image_url', image_url: { url: link } },
    { type: 'text', text: 'Look' },
  ];
  const id = await call({ messages: [{ role: 'user', content }], user: 'u1' });
  const phone = await contextOf(chromium.browser, { viewport: { width: 390, height: 844 } });
  const { page: small } = await watchedPage(phone, service.url);
  await signIn(small, service.app, owner.user_id, `/playground?call=${id}`);
  await small.getByText('Left out, so that runs here do not count for somebody else: user.').waitFor();
  await logOf(small).getByRole('link', { name: link }).waitFor();
  expect(await sidewaysOf(small)).toBe(0);
  expect(await violationsIn(small)).toEqual([]);
  await phone.close();
});
