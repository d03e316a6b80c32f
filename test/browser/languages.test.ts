import { join } from 'node:path';
import type { Browser, Page, Request } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setLanguage } from '../../src/accounts/language.ts';
import { firstOperator } from '../../src/accounts/members.ts';
import { readCatalogue } from '../../web/languages/catalogue.mjs';
import { memberOf } from '../dashboard/people.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { limits } from '../helpers/catalog.ts';
import { bringAxe, contextOf, settled, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';
import { lostCellsIn, phone, smallTargetsIn, strayButtonsIn } from '../helpers/phone.ts';

/** The dashboard in Polish, which is longer than English and has other plurals. */

let service: TestApp;
let client: Client;
let chrome: { browser: Browser; close(): Promise<void> };
let operator: string;
let task: string;

beforeAll(async () => {
  service = await startTestApp({ yaml: `version: 1\nnet: { allow: ["127.0.0.0/8"] }\n${limits()}\n` });
  client = await service.client({ credit: '5', limit: '1.00' });
  operator = await firstOperator(service.app.db, client.account_id, new Date());
  const body = { model: 'sandbox/image', input: { prompt: 'Czerwony rower' } };
  task = (await client.call('POST', '/v1/generate?wait=30', body)).json.id;
  await client.call('POST', '/v1/generate?wait=30', {
    model: 'sandbox/image',
    input: { prompt: '[[fail]] błąd' },
    webhook_url: 'http://127.0.0.1:8099/hook',
  });
  await client.call('POST', '/v1/chat/completions', {
    model: 'sandbox/chat',
    messages: [{ role: 'user', content: 'Cześć' }],
  });
  chrome = await launchBrowser();
});

afterAll(async () => {
  await chrome.close();
  await service.stop();
});

const { entries } = readCatalogue(join(import.meta.dirname, '../../web'), 'pl');

/** English messages as patterns of whole texts: values may be anything. Messages of values alone tell nothing. */
const english = entries
  .filter(({ text, forms }) => !forms.includes(text) && /\p{L}{2}/u.test(text.replaceAll(/<\/?\d+\/?>|\{\d+\}/g, '')))
  .flatMap(({ text, plural = text }) => [text, plural])
  .map((text) => text.replaceAll(/<\/?\d+\/?>/g, ''))
  .filter((text) => /\p{L}{3}/u.test(text.replaceAll(/\{\d+\}/g, '')))
  .map((text) => {
    const pieces = text.split(/\{\d+\}/).map((piece) => RegExp.escape(piece));
    return { text, pattern: new RegExp(`^${pieces.join('.+')}$`, 'u') };
  });

const polish = entries
  .flatMap(({ forms }) => forms)
  .map((form) => form.replaceAll(/<\/?\d+\/?>/g, '').split(/\{\d+[^}]*\}/))
  .map((pieces) => new RegExp(`^${pieces.map((piece) => RegExp.escape(piece)).join('.+')}$`, 'u'));

/** Texts and labels of the page that are English messages. Codes, and what callers and providers wrote, are not messages. */
async function englishIn(page: Page): Promise<string[]> {
  const texts: string[] = await page.evaluate(`[...document.querySelectorAll('body *')]
    .filter((each) => !each.closest('code, pre, script, style, [lang]:not(html), .mantine-Code-root'))
    .flatMap((each) => [
      ...['aria-label', 'title', 'placeholder', 'alt'].map((name) => each.getAttribute(name) ?? ''),
      ...[...each.childNodes].filter(({ nodeType }) => nodeType === 3).map(({ data }) => data),
      ...(/^(P|H1|H2|LI|TD|BUTTON|A)$/.test(each.tagName) ? [each.textContent] : []),
    ])`);
  const distinct = new Set(texts.map((text) => text.trim()).filter((text) => /\p{L}{3}/u.test(text)));
  for (const text of sent_by_service) distinct.delete(text);
  return [...distinct].filter((text) => english.some(({ pattern }) => pattern.test(text)) && !isPolish(text));
}

/** A pattern with values may fit a Polish text, too. */
function isPolish(text: string): boolean {
  return polish.some((pattern) => pattern.test(text));
}

/** Names of an account, its project and its key, kinds of models and an operator's figures: the service sends them, they are no messages. */
const sent_by_service = [
  'Test',
  'Default',
  'Key',
  'image',
  'chat',
  'second',
  'Queue',
  'Workers',
  'Routes',
  'Generations',
  'Chat',
  'Address',
];

const pages = () => [
  '/',
  '/keys',
  '/models',
  '/models/sandbox/image',
  '/playground',
  '/activity',
  '/activity?tab=tasks',
  `/tasks/${task}`,
  '/usage',
  '/speed',
  '/billing',
  '/billing?tab=details',
  '/budgets',
  '/webhooks',
  '/webhooks?tab=setup',
  '/settings',
  '/settings?tab=security',
  '/settings?tab=team',
  '/settings?tab=alerts',
  '/settings?tab=appearance',
  '/admin',
  '/admin/models',
  '/admin/providers',
  '/admin/prices',
  '/admin/queue',
  '/admin/configuration',
];

describe('the dashboard in Polish', () => {
  it('has no English message on any page, no finding of axe, and fits a phone', async () => {
    const context = await contextOf(chrome.browser, { ...phone, locale: 'pl-PL' });
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, operator);
    await bringAxe(page);
    const faults: string[] = [];
    for (const path of pages()) {
      await page.goto(service.url + path);
      await settled(page);
      const sideways = await sidewaysOf(page);
      if (sideways > 0) faults.push(`${path}: is ${sideways} px wider than the window`);
      for (const faultsIn of [englishIn, violationsIn, smallTargetsIn, strayButtonsIn, lostCellsIn])
        faults.push(...(await faultsIn(page)).map((fault) => `${path}: ${fault}`));
    }
    expect(faults).toEqual([]);
    expect(problems).toEqual([]);
    await context.close();
  }, 300_000);

  it('writes amounts and dates as Polish does', async () => {
    const context = await contextOf(chrome.browser, { locale: 'pl-PL' });
    const { page } = await watchedPage(context, service.url);
    await signIn(page, service.app, operator, '/billing');
    const balance = page.locator('main .figure').first();
    await balance.waitFor();
    await expect.poll(() => balance.textContent()).toMatch(/^4,9\d\s\$$/);
    await page.goto(`${service.url}/tasks/${task}`);
    const created = page.locator('main time').first();
    await created.waitFor();
    const { created_at } = (await client.call('GET', `/v1/tasks/${task}`)).json;
    const day = new Intl.DateTimeFormat('pl', { dateStyle: 'medium' }).format(new Date(created_at));
    await expect.poll(() => created.textContent()).toContain(day);
    await context.close();
  });

  it('writes the amounts of a top-up as Polish does', async () => {
    const context = await contextOf(chrome.browser, { locale: 'pl-PL' });
    const { page } = await watchedPage(context, service.url);
    await page.route(/\/dash\/accounts\/[^/]+\/billing$/, async (route) => {
      const billing = await (await route.fetch()).json();
      const top_up = { by: 'card', smallest: '5.00', largest: '25000.00' };
      await route.fulfill({ json: { ...billing, top_up } });
    });
    await signIn(page, service.app, operator, '/billing');
    const amounts = page.getByText(/^Od 5\s\$ do /);
    await expect.poll(() => amounts.textContent()).toMatch(/ do 25\s000\s\$$/);
    await context.close();
  });

  it('numbers the routes of a call in Polish for those who do not see their names', async () => {
    const { headers } = await client.call('POST', '/v1/chat/completions', {
      model: 'sandbox/chat',
      messages: [{ role: 'user', content: 'Cześć' }],
    });
    const { user_id } = await memberOf(service, client, 'viewer');
    const context = await contextOf(chrome.browser, { locale: 'pl-PL' });
    const { page } = await watchedPage(context, service.url);
    await signIn(page, service.app, user_id, `/chats/${headers.get('x-request-id')}`);
    await page.getByRole('cell', { name: 'Trasa 1' }).waitFor();
    expect(await englishIn(page)).toEqual([]);
    await context.close();
  });
});

/** Bytes of the scripts that the first page loads in a browser of this language. */
async function scriptBytes(locale: string): Promise<number> {
  const context = await contextOf(chrome.browser, { locale });
  const { page } = await watchedPage(context, service.url);
  const scripts: Request[] = [];
  page.on('requestfinished', (request) => {
    if (request.resourceType() === 'script') scripts.push(request);
  });
  await signIn(page, service.app, operator);
  await settled(page);
  const sizes = await Promise.all(scripts.map((request) => request.sizes()));
  await context.close();
  return sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0);
}

describe('the language of a page', () => {
  it('adds nothing to what the browser loads: messages are in the scripts, and there is no catalogue', async () => {
    const [english_bytes, polish_bytes] = [await scriptBytes('en-US'), await scriptBytes('pl-PL')];
    expect(english_bytes).toBeGreaterThan(50 * 1_024);
    expect(polish_bytes / english_bytes).toBeGreaterThan(0.95);
    expect(polish_bytes / english_bytes).toBeLessThan(1.05);
  });

  it('is that of the browser before signing in, and can be changed there', async () => {
    const context = await contextOf(chrome.browser, { locale: 'pl-PL' });
    const { page, problems } = await watchedPage(context, service.url);
    await page.goto(`${service.url}/sign-in`);
    await page.getByRole('heading', { name: 'Zaloguj się', level: 1 }).waitFor();
    expect(await page.locator('html').getAttribute('lang')).toBe('pl');
    expect(await violationsIn(page)).toEqual([]);
    await page.getByRole('button', { name: 'English' }).click();
    await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor();
    expect(await page.locator('html').getAttribute('lang')).toBe('en');
    await page.getByRole('button', { name: 'Polski' }).click();
    await page.getByRole('heading', { name: 'Zaloguj się', level: 1 }).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  it('is English for a browser that asks for a language which is not there', async () => {
    const context = await contextOf(chrome.browser, { locale: 'de-DE' });
    const { page, problems } = await watchedPage(context, service.url);
    await page.goto(`${service.url}/sign-in`);
    await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  it('is chosen in the settings, follows the person to another browser, and can be given back to the browser', async () => {
    const first = await contextOf(chrome.browser, { locale: 'en-US' });
    const { page, problems } = await watchedPage(first, service.url);
    await signIn(page, service.app, operator, '/settings?tab=appearance');
    await page.getByRole('combobox', { name: 'Language of the dashboard' }).click();
    await page.getByRole('option', { name: 'Polski' }).click();
    await page.getByRole('heading', { name: 'Ustawienia', level: 1 }).waitFor();

    const second = await contextOf(chrome.browser, { locale: 'en-US' });
    const other = await watchedPage(second, service.url);
    await signIn(other.page, service.app, operator, '/keys');
    await other.page.getByRole('heading', { name: 'Klucze API', level: 1 }).waitFor();
    await second.close();

    await page.getByRole('combobox', { name: 'Język panelu' }).click();
    await page.getByRole('option', { name: 'Jak w przeglądarce' }).click();
    await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor();
    expect([...problems, ...other.problems]).toEqual([]);
    await first.close();
  });

  it('is that of the browser for a person who has chosen none, after another person had one there', async () => {
    const { user_id: pole } = await memberOf(service, client, 'developer');
    await setLanguage(service.app.db, pole, 'pl');
    const context = await contextOf(chrome.browser, { locale: 'en-US' });
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, pole, '/keys');
    await page.getByRole('heading', { name: 'Klucze API', level: 1 }).waitFor();
    await signIn(page, service.app, operator, '/keys');
    await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  it('is the one that was chosen on the page to sign in for a person who has chosen none', async () => {
    const context = await contextOf(chrome.browser, { locale: 'en-US' });
    const { page, problems } = await watchedPage(context, service.url);
    await page.goto(`${service.url}/sign-in`);
    await page.getByRole('button', { name: 'Polski' }).click();
    await page.getByRole('heading', { name: 'Zaloguj się', level: 1 }).waitFor();
    await signIn(page, service.app, operator, '/keys');
    await page.getByRole('heading', { name: 'Klucze API', level: 1 }).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });
});
