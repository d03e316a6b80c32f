import type { Page } from 'playwright-core';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { ownerOf } from '../../src/accounts/members.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';
import { keyboardOf, type Keyboard } from '../helpers/keyboard.ts';

/** The playground as somebody uses it who has a keyboard and no mouse. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let page: Page;
let problems: string[];
let keyboard: Keyboard;

/** For a machine that has much else to do. */
const patience = { timeout: 120_000 };

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  const { db } = service.app;
  const account = await createAccount(db, { name: 'Own', currency: 'USD', initial_credit: 5_000_000n }, new Date());
  const context = await chromium.browser.newContext({ viewport: { width: 1200, height: 900 } });
  context.setDefaultTimeout(patience.timeout);
  ({ page, problems } = await watchedPage(context, service.url));
  keyboard = keyboardOf(page);
  await signIn(page, service.app, await ownerOf(db, account.id, new Date()));
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

const open = (path: string) => page.goto(service.url + path);

test('an image is made by keyboard alone, with its price before and its cost after', async () => {
  await open('/playground?model=sandbox%2Fimage');
  await keyboard.fill(/^Prompt/, 'A green bicycle');
  const run = page.getByRole('button', { name: /^Run/ });
  await expect.poll(() => run.textContent(), patience).toBe('Run · holds $0.01');
  await page.getByText('$5.00 available').waitFor();
  await keyboard.press('Control+Enter');
  const result_image = page.getByRole('img', { name: 'Result 1 of sandbox/image' });
  await result_image.waitFor();
  await expect
    .poll(() => result_image.evaluate((image) => ('naturalWidth' in image ? image.naturalWidth : 0)), patience)
    .toBe(768);
  const facts = page.getByRole('main');
  await expect.poll(() => facts.innerText(), patience).toMatch(/Held\s+\$0\.01\s+Cost\s+\$0\.01\s+Released\s+\$0\.00/);
  await page.getByText('$4.99 available').waitFor();
  expect(await violationsIn(page)).toEqual([]);
  await keyboard.enter('link', 'All details of this task');
  await page.waitForURL(({ pathname }) => pathname.startsWith('/tasks/task_'));
  await page.getByRole('heading', { name: 'Task', level: 1 }).waitFor();
});

test('a double click, and Ctrl+Enter that is held, run it once', async () => {
  await open('/playground?model=sandbox%2Fimage');
  let runs = 0;
  await page.route('**/generate', async (route) => {
    runs += 1;
    await route.continue();
  });
  const run = page.getByRole('button', { name: /^Run/ });
  const isOver = async (count: number) => {
    await expect.poll(() => runs, patience).toBe(count);
    await expect.poll(() => run.isEnabled(), patience).toBe(true);
  };
  const prompt = page.getByRole('textbox', { name: /^Prompt/ });
  await prompt.fill('A blue bicycle');
  await expect.poll(() => run.textContent(), patience).toBe('Run · holds $0.01');
  await run.click();
  await isOver(1);
  // The second click of a double one, once the first has been answered.
  await page.mouse.down({ clickCount: 2 });
  await page.mouse.up({ clickCount: 2 });
  await prompt.focus(); // the button loses it while it starts
  await page.keyboard.down('Control');
  await page.keyboard.down('Enter');
  await isOver(2);
  await page.keyboard.down('Enter'); // still held
  await page.keyboard.up('Enter');
  await page.keyboard.up('Control');
  await keyboard.press('Control+Enter');
  await isOver(3);
  await page.unroute('**/generate');
});

test('a mistake in the input is shown at its field, and nothing can be run', async () => {
  await open('/playground?model=sandbox%2Fimage');
  const width = page.getByRole('textbox', { name: 'Width' });
  await width.fill('5000');
  await page.getByText('width must be at most 2048 (got 5000).').first().waitFor();
  await expect.poll(() => page.getByRole('button', { name: /^Run/ }).isDisabled(), patience).toBe(true);
  expect(await violationsIn(page)).toEqual([]);
  await width.fill('64');
  await expect.poll(() => page.getByRole('button', { name: /^Run/ }).isEnabled(), patience).toBe(true);
});

test('an earlier run returns its parameters, and a link carries them to others', async () => {
  await open('/playground?model=sandbox%2Fimage');
  const prompt = page.getByRole('textbox', { name: /^Prompt/ });
  await prompt.fill('Something else');
  const earlier = page.getByRole('listitem').filter({ hasText: 'A green bicycle' });
  await earlier.getByRole('button').click();
  await page.getByRole('img', { name: 'Result 1 of sandbox/image' }).waitFor();
  await expect.poll(() => prompt.inputValue(), patience).toBe('A green bicycle');
  await page.reload();
  await expect.poll(() => prompt.inputValue(), patience).toBe('A green bicycle');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  // It says so for a moment only.
  await Promise.all([
    page.getByRole('button', { name: 'Link copied' }).waitFor(),
    page.getByRole('button', { name: 'Copy a link' }).click(),
  ]);
  const link = new URL(await page.evaluate<string>('navigator.clipboard.readText()'));
  expect([...link.searchParams.keys()]).toEqual(['model', 'input']);
  await open('/');
  await page.goto(link.href);
  await expect.poll(() => prompt.inputValue(), patience).toBe('A green bicycle');
});

/** A picture of this size, all of it red. */
function redImage(size: number) {
  const image = sharp({ create: { width: size, height: size, channels: 3, background: '#c02020' } });
  return image.png().toBuffer();
}

test('a chat answers word by word in both styles, reads an image, and shows its cost', async () => {
  await open('/playground?model=sandbox%2Fchat');
  await keyboard.fill('Message', 'Good morning');
  const file = { name: 'red.png', mimeType: 'image/png', buffer: await redImage(32) };
  await page.locator('input[type=file]').setInputFiles(file);
  await page.getByRole('group', { name: 'Attached files' }).getByText('red.png').waitFor();
  await page.getByText(/^Holds \$0\.\d+/).waitFor();
  await keyboard.tabTo('textbox', 'Message');
  await keyboard.press('Control+Enter');
  const log = page.getByRole('log', { name: 'Conversation with Sandbox chat' });
  await log.getByText(/\d+ in, \d+ out · \$0\.\d+/).waitFor();
  await expect.poll(() => log.innerText()).toContain('Good morning');
  await expect.poll(() => log.innerText()).toContain('32 × 32 pixels');
  await log.getByText(/^Stream: \d+ events$/).click();
  await log.getByText('data: [DONE]').waitFor();

  await page.getByRole('combobox', { name: 'Style of the call' }).click();
  await page.getByRole('option', { name: /^Messages/ }).click();
  await page.getByRole('textbox', { name: 'Message' }).fill('And now?');
  await page.getByRole('button', { name: 'Send' }).click();
  const bills = log.getByText(/\d+ in, \d+ out · \$0\.\d+/);
  await bills.nth(1).waitFor();
  await log
    .getByText(/^Stream: \d+ events$/)
    .last()
    .click();
  await log.getByText(/event: message_stop/).waitFor();

  await page.getByRole('tab', { name: 'Code' }).click();
  const code = page.getByRole('region', { name: 'curl code' });
  await expect.poll(() => code.innerText()).toContain('/v1/messages');
  await expect.poll(() => code.innerText()).toContain('"media_type": "image/png"');
  expect(await violationsIn(page)).toEqual([]);
});

test('a message waits for a file that is still being read', async () => {
  await open('/playground?model=sandbox%2Fchat');
  await page.getByRole('textbox', { name: 'Message' }).fill('What is it?');
  const send = page.getByRole('button', { name: 'Send' });
  await expect.poll(() => send.isEnabled(), patience).toBe(true);
  await page.evaluate(`{
    const { readAsDataURL } = FileReader.prototype;
    FileReader.prototype.readAsDataURL = function (file) {
      globalThis.goOn = () => readAsDataURL.call(this, file);
      FileReader.prototype.readAsDataURL = readAsDataURL;
    };
    undefined;
  }`);
  const file = { name: 'red.png', mimeType: 'image/png', buffer: await redImage(32) };
  await page.locator('input[type=file]').setInputFiles(file);
  await expect.poll(() => send.isDisabled(), patience).toBe(true);
  await page.evaluate('globalThis.goOn()');
  await page.getByRole('group', { name: 'Attached files' }).getByText('red.png').waitFor();
  await expect.poll(() => send.isEnabled(), patience).toBe(true);
});

test('an output file becomes the input of another model', async () => {
  await open('/playground?model=sandbox%2Fedit');
  const file = { name: 'red.png', mimeType: 'image/png', buffer: await redImage(32) };
  await page.locator('input[type=file]').first().setInputFiles(file);
  await page.getByText('red.png').waitFor();
  expect(await violationsIn(page)).toEqual([]);
  const run = page.getByRole('button', { name: /^Run · holds/ });
  await run.click();
  await page.getByRole('img', { name: 'Result 1 of sandbox/edit' }).waitFor();
});

test('an upload that ends late changes nothing but its field, and adds to what is in a list by then', async () => {
  await open('/playground?model=sandbox%2Fedit');
  const file = { name: 'red.png', mimeType: 'image/png', buffer: await redImage(32) };
  const held: (() => void)[] = [];
  await page.route('**/files', async (route) => {
    await new Promise<void>((goOn) => held.push(goOn));
    await route.continue();
  });
  await page.locator('input[type=file]').first().setInputFiles(file);
  await expect.poll(() => held.length, patience).toBe(1);
  const link = page.getByRole('textbox', { name: 'Another of Images: link' });
  await link.fill('https://example.com/a.png');
  await link.press('Enter');
  await page.getByRole('textbox', { name: 'Images 1: link' }).waitFor();
  held.pop()?.();
  await page.getByText('red.png').waitFor();
  await expect
    .poll(() => page.getByRole('textbox', { name: 'Images 1: link' }).inputValue(), patience)
    .toBe('https://example.com/a.png');

  await page.locator('input[type=file]').last().setInputFiles(file); // the mask
  await expect.poll(() => held.length, patience).toBe(1);
  await page.getByRole('tab', { name: 'JSON' }).click();
  const json = page.getByRole('textbox', { name: 'Input' });
  const written = async (): Promise<Record<string, unknown>> => JSON.parse(await json.inputValue());
  await json.fill(JSON.stringify({ ...(await written()), prompt: 'A blue bicycle' }));
  held.pop()?.();
  await expect
    .poll(written, patience)
    .toMatchObject({ prompt: 'A blue bicycle', mask: expect.stringMatching(/^file_/) });
  await page.getByRole('tab', { name: 'Form' }).click();
  const prompt = page.getByRole('textbox', { name: /^Prompt/ });
  await expect.poll(() => prompt.inputValue()).toBe('A blue bicycle');

  // Nothing of the input of an earlier run that took the place of this one meanwhile.
  await page.getByRole('button', { name: 'Mask: remove' }).click();
  await page.locator('input[type=file]').last().setInputFiles(file);
  await expect.poll(() => held.length, patience).toBe(1);
  await page.getByTitle('Copies its parameters into the form').first().click();
  await expect.poll(() => prompt.inputValue()).not.toBe('A blue bicycle');
  await Promise.all([page.waitForResponse('**/files'), held.pop()?.()]);
  await page.getByRole('tab', { name: 'JSON' }).click();
  await expect.poll(written, patience).toHaveProperty('prompt');
  expect(await written()).not.toHaveProperty('mask');
  await page.unroute('**/files');
});

test('documents are ordered by a query, with the hold before and the cost after', async () => {
  await open('/playground?model=sandbox%2Frerank');
  await page.getByRole('textbox', { name: 'Query' }).fill('a red bicycle');
  await page.getByRole('textbox', { name: 'Documents' }).fill('Two blue cars\n\nA bicycle, painted red\nBicycle lanes');
  await page.getByRole('textbox', { name: 'Results' }).fill('2');
  const run = page.getByRole('button', { name: /^Run/ });
  await expect.poll(() => run.textContent(), patience).toBe('Run · holds $0.001');
  await run.click();
  const ranking = page.getByRole('list', { name: 'Documents, the most relevant first' });
  await ranking.waitFor();
  const items = async () => (await ranking.getByRole('listitem').allInnerTexts()).map((text) => text.split('\n')[0]);
  await expect.poll(items, patience).toEqual(['A bicycle, painted red', 'Bicycle lanes']);
  await expect.poll(() => page.getByRole('main').innerText()).toMatch(/Cost\s+\$0\.001/);
  expect(await violationsIn(page)).toEqual([]);
  await page.getByRole('tab', { name: 'Code' }).click();
  await page.getByRole('tab', { name: 'Cohere SDK' }).click();
  await expect.poll(() => page.getByRole('region', { name: 'Cohere SDK code' }).innerText()).toContain('topN: 2');
  await keyboard.enter('link', 'All details of this call');
  await page.waitForURL(({ pathname }) => pathname.startsWith('/chats/req_'));
  await page.getByText('Search units').waitFor();
});

test('a text is judged by its categories, free of charge', async () => {
  await open('/playground?model=sandbox%2Fmoderation');
  await page.getByRole('textbox', { name: 'Text' }).fill('A fight [[flag hate]]');
  await page.getByText('free', { exact: true }).waitFor();
  await page.getByRole('button', { name: /^Run/ }).click();
  await page.getByText('Flagged', { exact: true }).first().waitFor();
  const rows = page.getByRole('region', { name: 'Categories of the input' }).getByRole('row');
  await expect.poll(() => rows.nth(1).innerText()).toMatch(/^hate\s+yes\s+0\.990$/);
  await expect.poll(() => rows.count()).toBe(14);
  expect(await violationsIn(page)).toEqual([]);
});

test('the browser console has no errors after all that', () => {
  expect(problems).toEqual([]);
});
