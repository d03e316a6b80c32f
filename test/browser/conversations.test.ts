import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { ownerOf } from '../../src/accounts/members.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { giveAway, savedConversations } from '../helpers/conversations.ts';
import { contextOf, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** Conversations of the playground: how answers look, what stays of them, and what a hostile answer can do. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let context: BrowserContext;
let page: Page;
let problems: string[];
let person: string;

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  const { db } = service.app;
  const account = await createAccount(db, { name: 'Own', currency: 'USD', initial_credit: 50_000_000n }, new Date());
  person = await ownerOf(db, account.id, new Date());
  context = await contextOf(chromium.browser);
  ({ page, problems } = await watchedPage(context, service.url));
  await signIn(page, service.app, person);
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

/** For a machine that has much else to do. */
const patience = { timeout: 120_000 };

const chat = '/playground?model=sandbox%2Fchat';

const logOf = (on: Page) => on.getByRole('log', { name: 'Conversation with Sandbox chat' });

async function say(on: Page, text: string): Promise<void> {
  await on.getByRole('textbox', { name: 'Message', exact: true }).fill(text);
  await on.getByRole('button', { name: 'Send' }).click();
}

/** An answer of a model as the chat-completions style streams it. */
function streamOf(parts: readonly string[]): string {
  const events = parts.map((content) => JSON.stringify({ choices: [{ index: 0, delta: { content } }] }));
  return [...events, '[DONE]'].map((data) => `data: ${data}\n\n`).join('');
}

/** Has the next calls answered by this, in place of a model. */
async function answerWith(on: Page, parts: readonly string[]): Promise<void> {
  await on.route('**/chat/completions', (route) =>
    route.fulfill({ status: 200, contentType: 'text/event-stream', body: streamOf(parts) }),
  );
}

test('an answer is drawn as Markdown: tables, code with its language and a button that copies it, formulas', async () => {
  await page.goto(service.url + chat);
  const answer = [
    '### Result',
    'Some **bold** text with [a page](https://example.com/).',
    '| Name | Size |\n|---|--:|\n| one | 1 |',
    '```python\nprint("hello")\n```',
    'It is $e^{i\\pi} + 1 = 0$.',
    '$$\\sum_{k=1}^n k = \\frac{n(n+1)}{2}$$',
  ].join('\n\n');
  await answerWith(page, answer.split(/(?<= )/));
  await say(page, 'Show me');
  const log = logOf(page);
  await log.getByRole('heading', { name: 'Result', level: 3 }).waitFor();
  const cells = log.getByRole('table').getByRole('cell');
  await expect.poll(() => cells.allInnerTexts(), patience).toEqual(['one', '1']);
  const link = log.getByRole('link', { name: 'a page' });
  await expect.poll(() => link.getAttribute('rel')).toBe('noopener noreferrer nofollow');
  await expect.poll(() => link.getAttribute('target')).toBe('_blank');
  await log.locator('.hljs-string', { hasText: '"hello"' }).waitFor();
  await expect.poll(() => log.locator('math').count(), patience).toBe(2);
  await expect.poll(() => log.locator('math msup').count()).toBeGreaterThan(0);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await log.getByRole('group', { name: 'Code in python' }).getByRole('button', { name: 'Copy' }).click();
  await expect.poll(() => page.evaluate<string>('navigator.clipboard.readText()'), patience).toBe('print("hello")');
  expect(await violationsIn(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await violationsIn(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.unroute('**/chat/completions');
});

test('a hostile answer runs nothing, loads nothing from elsewhere, and leads nowhere by itself', async () => {
  await page.goto(service.url + chat);
  const answer = [
    '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">',
    '![pixel](https://evil.example/pixel.png?secret)',
    '[click](javascript:window.hacked=1) <a href="javascript:window.hacked=1">there</a>',
    '```"><img src=x onerror="window.hacked=1">\n</code></pre><script>window.hacked = 1</script>\n```',
    '```html\n<script>window.hacked = 1</script>\n```',
    '$\\href{javascript:window.hacked=1}{x} \\includegraphics{https://evil.example/p.png}$',
    '$$\\def\\a{\\a\\a}\\a$$',
    '| <img src=x onerror="window.hacked = 1"> |\n|---|\n| <iframe src="https://evil.example"></iframe> |',
  ].join('\n\n');
  await answerWith(page, [answer]);
  await say(page, 'Be evil');
  const log = logOf(page);
  await log.getByRole('link', { name: 'Image: pixel' }).waitFor();
  await log.locator('.hljs-tag').first().waitFor();
  await expect
    .poll(() => log.innerText())
    .toContain('<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">');
  expect(await log.locator('img, script, iframe, a[href^="javascript"]').count()).toBe(0);
  expect(await page.evaluate('window.hacked')).toBeUndefined();
  expect(problems).toEqual([]);
  await page.unroute('**/chat/completions');
});

test('an answer of 200 kB leaves the page responsive while it comes', async () => {
  await page.goto(service.url + chat);
  const words = 'Some words and **bold** ones, with `code`. '.repeat(30);
  const block = `${words}\n\n- one\n- two\n\n\`\`\`ts\nconst x = 1;\n\`\`\`\n\n`;
  const text = block.repeat(Math.ceil(200_000 / block.length));
  await answerWith(page, text.match(/[^]{1,50}/g) ?? []);
  await say(page, 'A long one');
  // The longest time for which nothing else could run, in relation to a page that draws the same at once.
  await page.evaluate(`(() => {
    let before = performance.now();
    window.longest = 0;
    window.ticking = setInterval(() => {
      const now = performance.now();
      window.longest = Math.max(window.longest, now - before);
      before = now;
    }, 10);
  })()`);
  const log = logOf(page);
  await log.getByRole('button', { name: 'Copy the answer' }).waitFor();
  await expect.poll(() => log.locator('ul').count(), patience).toBe(text.split('- one').length - 1);
  const longest_ms = await page.evaluate<number>('(clearInterval(window.ticking), window.longest)');
  expect(longest_ms).toBeLessThan(60_000); // on a machine that stops for seconds; squared it would be minutes
  await page.unroute('**/chat/completions');
}, 300_000);

test('a conversation survives a reload, has versions of messages and answers, and can be renamed and deleted', async () => {
  await page.goto(service.url + chat);
  await say(page, 'Good morning');
  const log = logOf(page);
  const bills = log.getByText(/\d+ in, \d+ out · \$0\.\d+/);
  await bills.first().waitFor();
  await expect.poll(() => new URL(page.url()).searchParams.get('chat'), patience).toMatch(/^[0-9a-f]{24}$/);

  await log.getByRole('button', { name: 'Regenerate the answer' }).click();
  await log.getByRole('img', { name: 'Version 2 of 2' }).waitFor();
  await bills.first().waitFor();
  await log.getByRole('button', { name: 'Edit the message' }).focus();
  await page.keyboard.down('Enter'); // opens the editor
  const editor = log.getByRole('textbox', { name: 'The message, changed' });
  await editor.waitFor();
  await page.keyboard.down('Control');
  await page.keyboard.down('Enter'); // still held, and now in it
  await page.keyboard.up('Enter');
  await page.keyboard.up('Control');
  await editor.fill('Good evening');
  await log.getByRole('button', { name: 'Ask again' }).click();
  await log.getByText('“Good evening”').waitFor();
  await bills.first().waitFor();
  const message = log.getByRole('group', { name: 'Versions of the message' });
  await message.getByRole('button', { name: 'Previous version' }).click();
  await log.getByText('“Good morning”').waitFor();
  await message.getByRole('button', { name: 'Next version' }).click();
  await log.getByRole('button', { name: 'Good answer' }).click();
  const votes = () => service.app.db.query('select score, name, end_user from feedback');
  await expect.poll(votes, patience).toEqual([{ score: 1, name: 'rating', end_user: person }]);
  expect(await violationsIn(page)).toEqual([]);

  const saved = page.getByRole('button', { name: /^Good morning/ });
  await saved.waitFor();
  // The end of the answer and its vote, a quarter of a second after they are shown: a page that is closed saves nothing more.
  await expect.poll(() => savedConversations(page), patience).toMatch(/Good evening.*"vote":"up"/);
  await expect.poll(() => savedConversations(page), patience).not.toContain('"streaming"');
  await page.reload();
  await log.getByText('“Good evening”').waitFor();
  await expect
    .poll(() => log.getByRole('button', { name: 'Good answer' }).getAttribute('aria-pressed'), patience)
    .toBe('true');
  await log.getByRole('img', { name: 'Version 2 of 2' }).waitFor();

  await page.getByRole('button', { name: 'More for Good morning' }).click();
  await page.getByRole('menuitem', { name: 'Rename' }).click();
  await page.getByRole('textbox', { name: 'Title' }).fill('Greetings');
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByRole('button', { name: /^Greetings/ }).waitFor();

  await page.getByRole('button', { name: 'More for Greetings' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('menuitem', { name: 'Export as Markdown' }).click();
  expect((await download).suggestedFilename()).toMatch(/^conversation-\d{4}-\d\d-\d\d\.md$/);

  await page.getByRole('button', { name: 'More for Greetings' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('button', { name: /^Greetings/ }).waitFor({ state: 'detached' });
  await expect.poll(() => log.innerText(), patience).not.toContain('Good evening');
}, 300_000);

test('a conversation outlives its session, and nobody else sees it', async () => {
  await page.goto(service.url + chat);
  await say(page, 'Only for me');
  await logOf(page)
    .getByText(/\d+ in, \d+ out/)
    .waitFor();
  await expect.poll(() => savedConversations(page), patience).toContain('“Only for me”');
  await expect.poll(() => new URL(page.url()).searchParams.has('chat'), patience).toBe(true);
  const path = page.url().slice(service.url.length);
  await context.clearCookies();
  const { db } = service.app;
  const account = await createAccount(db, { name: 'Other', currency: 'USD', initial_credit: 1_000_000n }, new Date());
  await signIn(page, service.app, await ownerOf(db, account.id, new Date()), path);
  await page.getByText('This conversation is not in this browser, or no longer.').waitFor();
  expect(await page.getByRole('button', { name: /^Only for me/ }).count()).toBe(0);
  await context.clearCookies();
  await signIn(page, service.app, person, path);
  await logOf(page).getByText('“Only for me”').waitFor();
});

test('a conversation that belongs to somebody else by now is not saved over, and the page says so', async () => {
  await page.goto(service.url + chat);
  await say(page, 'Said before');
  await logOf(page)
    .getByText(/\d+ in, \d+ out/)
    .waitFor();
  await expect.poll(() => savedConversations(page), patience).toContain('“Said before”');
  await giveAway(page, 'Said before');
  await say(page, 'Said after');
  await page.getByText('This conversation is of another account. Begin a new one here.').waitFor();
  await logOf(page).getByText('“Said after”').waitFor();
  expect(await savedConversations(page)).not.toContain('Said after');
}, 300_000);

test('what one tab says is in the other, and a conversation that one deletes is closed in the other', async () => {
  await page.goto(service.url + chat);
  await say(page, 'From the first tab');
  await logOf(page)
    .getByText(/\d+ in, \d+ out/)
    .waitFor();
  await expect.poll(() => savedConversations(page), patience).toContain('From the first tab');
  const { page: second } = await watchedPage(context, service.url);
  await second.goto(page.url());
  await logOf(second).getByText('“From the first tab”').waitFor();
  await logOf(second)
    .getByText(/\d+ in, \d+ out/)
    .waitFor();
  await say(second, 'From the second tab');
  await expect.poll(() => savedConversations(page), patience).toContain('From the second tab');
  await logOf(second)
    .getByText(/\d+ in, \d+ out/)
    .nth(1)
    .waitFor();
  await say(page, 'And again');
  await expect
    .poll(async () => {
      const texts = await savedConversations(page);
      return ['From the second tab', 'And again'].every((text) => texts.includes(text));
    }, patience)
    .toBe(true);
  await second.getByRole('button', { name: 'More for From the first tab' }).click();
  await second.getByRole('menuitem', { name: 'Delete' }).click();
  await second.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('This conversation was deleted in another tab or browser.').waitFor();
  await second.close();
}, 300_000);

test('where the browser saves nothing, the page says so and works on', async () => {
  const closed = await contextOf(chromium.browser);
  await closed.addInitScript(`indexedDB.open = () => { throw new DOMException('no', 'SecurityError'); }`);
  const { page: private_page } = await watchedPage(closed, service.url);
  await signIn(private_page, service.app, person, chat);
  await private_page
    .getByText(/This browser saves nothing here/)
    .first()
    .waitFor();
  await say(private_page, 'Hello');
  await logOf(private_page)
    .getByText(/\d+ in, \d+ out/)
    .waitFor();
  await private_page.getByText('This conversation is not saved').waitFor();
  expect(await violationsIn(private_page)).toEqual([]);
  await closed.close();
});

test('on a phone a conversation with a wide table and long code needs no scrolling sideways', async () => {
  const phone = await contextOf(chromium.browser, { viewport: { width: 390, height: 844 } });
  const { page: small } = await watchedPage(phone, service.url);
  await signIn(small, service.app, person, chat);
  const table = `| ${'a column | '.repeat(12)}\n|${'---|'.repeat(12)}\n| ${'a field | '.repeat(12)}`;
  await answerWith(small, [
    `${table}\n\n\`\`\`\n${'x'.repeat(300)}\n\`\`\`\n\n$$${'x + '.repeat(60)}1$$\n\n${'word'.repeat(200)}`,
  ]);
  const long_title = 'Wide as the sea between two shores that nobody has seen from one side';
  await say(small, long_title);
  await logOf(small).getByRole('table').waitFor();
  await expect.poll(() => logOf(small).locator('math').count(), patience).toBe(1);
  expect(await sidewaysOf(small)).toBe(0);
  expect(await violationsIn(small)).toEqual([]);
  // The menu of a conversation stands beside its title, which is cut: not behind it, out of sight.
  const menu = small.getByRole('button', { name: /^More for Wide as the sea/ });
  await menu.waitFor();
  const right = async () => {
    const box = await menu.boundingBox();
    return box ? box.x + box.width : Number.NaN;
  };
  await expect.poll(right, patience).toBeLessThan(390 - 16);
  await phone.close();
});

test('the browser console has no errors after all that', () => {
  expect(problems).toEqual([]);
});
