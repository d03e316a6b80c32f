import type { Browser, Request } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstOperator } from '../../src/accounts/members.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { limits } from '../helpers/catalog.ts';
import {
  bringAxe,
  contextOf,
  followLink,
  settled,
  sidewaysOf,
  signIn,
  violationsIn,
  watchedPage,
} from '../helpers/dashboard.ts';
import { unseenIn } from '../helpers/keyboard.ts';
import { depth } from '../helpers/depth.ts';
import { lostCellsIn, phone, smallTargetsIn, strayButtonsIn } from '../helpers/phone.ts';

/**
 * Pages, on a phone: no fault by axe, the focus in sight, nothing from elsewhere, nothing cut off. By night every page,
 * light and dark, wide and narrow.
 */

let service: TestApp;
let client: Client;
let chrome: { browser: Browser; close(): Promise<void> };
let operator: string;
let pages: Map<string, string>;

beforeAll(async () => {
  service = await startTestApp({
    yaml: `version: 1\nnet: { allow: ["127.0.0.0/8"] }\n${limits()}\n`,
  });
  client = await service.client({ credit: '5', limit: '1.00' });
  operator = await firstOperator(service.app.db, client.account_id, new Date());
  const done = await generate('A red bicycle, leaning on a wall at dusk', '?wait=30');
  const failed = await generate('[[fail]] a failure', '?wait=30', 'http://127.0.0.1:8099/hook');
  await generate('[[delay 3600s]] a slow one', '');
  const chat = await client.call('POST', '/v1/chat/completions', {
    model: 'sandbox/chat',
    messages: [{ role: 'user', content: 'Hello' }],
  });
  pages = new Map([
    ['home', '/'],
    ['playground', '/playground'],
    ['models', '/models'],
    ['model', '/models/sandbox/image'],
    ['tasks', '/activity?tab=tasks'],
    ['chats', '/activity?tab=chats'],
    ['task', `/tasks/${done}`],
    ['failed task', `/tasks/${failed}`],
    ['chat', `/chats/${chat.headers.get('x-request-id')}`],
    ['usage', '/usage'],
    ['speed', '/speed'],
    ['status', '/status'],
    ['billing', '/billing'],
    ['budgets', '/budgets'],
    ['keys', '/keys'],
    ['webhooks', '/webhooks'],
    ['settings', '/settings'],
    ['admin', '/admin'],
    ['admin accounts', '/admin/accounts'],
    ['admin account', `/admin/accounts/${client.account_id}`],
    ['admin models', '/admin/models'],
    ['admin providers', '/admin/providers'],
    ['admin speed', '/admin/speed'],
    ['admin calls', '/admin/calls'],
    ['admin failures', '/admin/failures'],
    ['admin queue', '/admin/queue'],
    ['admin alerts', '/admin/alerts'],
    ['admin deliveries', '/admin/deliveries'],
    ['admin prices', '/admin/prices'],
    ['admin audit', '/admin/audit'],
    ['admin configuration', '/admin/configuration'],
  ]);
  chrome = await launchBrowser();
});

afterAll(async () => {
  await chrome.close();
  await service.stop();
});

async function generate(prompt: string, query: string, webhook_url?: string): Promise<string> {
  const body = { model: 'sandbox/image', input: { prompt }, ...(webhook_url !== undefined && { webhook_url }) };
  return (await client.call('POST', `/v1/generate${query}`, body)).json.id;
}

const looks = [
  { look: 'light', colorScheme: 'light', width: 1280 },
  { look: 'dark', colorScheme: 'dark', width: 1280 },
  { look: 'a phone', colorScheme: 'light', width: 360 },
  { look: '400 % zoom', colorScheme: 'dark', width: 320 },
] as const;

/** One of each form: a page of tiles, of a form, of a list, of tabs, of one thing, of charts, and the operator's. */
const usual_pages: readonly string[] = [
  'home',
  'playground',
  'model',
  'tasks',
  'task',
  'failed task',
  'chat',
  'usage',
  'billing',
  'settings',
  'admin',
  'admin account',
  'admin configuration',
];

describe.each(looks.filter(({ look }) => depth(['a phone'], [look]).includes(look)))(
  '$look',
  ({ colorScheme, width }) => {
    it('shows its pages completely, without a finding of axe, from this service alone', async () => {
      const context = await contextOf(chrome.browser, {
        colorScheme,
        viewport: { width, height: 900 },
        reducedMotion: 'reduce',
      });
      const { page, problems } = await watchedPage(context, service.url);
      await signIn(page, service.app, operator);
      await bringAxe(page);
      const faults: string[] = [];
      for (const [name, path] of [...pages].filter(
        ([page_name]) => depth(usual_pages, undefined)?.includes(page_name) ?? true,
      )) {
        await page.goto(service.url + path);
        const problem = await settled(page).catch((error: unknown) => `${name}: never came to rest (${error})`);
        if (typeof problem === 'string') faults.push(problem);
        for (const violation of await violationsIn(page)) faults.push(`${name}: ${violation}`);
        // Colours change nothing in it: once for each width.
        for (const unseen of colorScheme === 'light' ? await unseenIn(page) : []) faults.push(`${name}: ${unseen}`);
        const sideways = await sidewaysOf(page);
        if (sideways > 0) faults.push(`${name}: is ${sideways} px wider than the window`);
        if ((await page.getByRole('heading', { level: 1 }).count()) !== 1) faults.push(`${name}: has no single h1`);
      }
      await context.close();
      expect(faults).toEqual([]);
      expect(problems).toEqual([]);
    });
  },
);

/** Other tabs of pages. */
const more_pages = {
  'all activity': '/activity',
  invoices: '/billing?tab=invoices',
  'billing details': '/billing?tab=details',
  'webhook setup': '/webhooks?tab=setup',
  device: '/device',
  security: '/settings?tab=security',
  team: '/settings?tab=team',
  'alert settings': '/settings?tab=alerts',
  appearance: '/settings?tab=appearance',
};

describe('a phone of 390 pixels', () => {
  it('shows every page without sideways scrolling, lists as cards, and nothing that a finger may miss', async () => {
    const context = await contextOf(chrome.browser, phone);
    const { page, problems } = await watchedPage(context, service.url);
    await signIn(page, service.app, operator);
    const faults: string[] = [];
    for (const [name, path] of [...pages, ...Object.entries(more_pages)]) {
      await page.goto(service.url + path);
      await settled(page);
      const sideways = await sidewaysOf(page);
      if (sideways > 0) faults.push(`${name}: is ${sideways} px wider than the window`);
      for (const faultsIn of [smallTargetsIn, strayButtonsIn, lostCellsIn])
        faults.push(...(await faultsIn(page)).map((fault) => `${name}: ${fault}`));
    }
    expect(faults).toEqual([]);
    expect(problems).toEqual([]);
    await context.close();
  }, 300_000);

  it('shows a row of a list as a card: its title, and each value beside the name of its column', async () => {
    const context = await contextOf(chrome.browser, phone);
    const { page } = await watchedPage(context, service.url);
    await signIn(page, service.app, operator, '/admin/accounts');
    const table = page.getByRole('table', { name: 'Accounts, newest first' });
    const card = table.getByRole('row').nth(1);
    await card.waitFor();
    await expect.poll(() => table.getByRole('columnheader').allTextContents()).toContain('Available');
    const cells: { left: number; top: number; label: string }[] = await page.evaluate(`
      [...document.querySelectorAll('.list tbody tr:first-child > :is(td, th)')].map((cell) => {
        const { left, top } = cell.getBoundingClientRect();
        return { left, top, label: getComputedStyle(cell, '::before').content };
      })`);
    const tops = cells.map(({ top }) => top);
    expect(tops).toEqual(tops.toSorted((one, other) => one - other));
    expect(new Set(tops).size).toBe(cells.length);
    expect(cells[0]?.label).toBe('none');
    expect(cells[1]?.label).toMatch(/^"Status"/);
    expect(cells.every(({ left }) => left < 40)).toBe(true);
    await context.close();
  });
});

describe('the dashboard before sign-in', () => {
  it('loads at most 250 KiB of JavaScript for the sign-in page and Home', async () => {
    const { page } = await watchedPage(await contextOf(chrome.browser), service.url);
    const scripts: Request[] = [];
    page.on('requestfinished', (request) => {
      if (request.resourceType() === 'script') scripts.push(request);
    });
    await followLink(page, service.app, operator);
    await settled(page);
    // Asked for now, not when each has come: one that came later would be asked for while the page closes.
    const sizes = await Promise.all(scripts.map((request) => request.sizes()));
    const loaded_bytes = sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0);
    expect(loaded_bytes).toBeGreaterThan(50 * 1_024);
    expect(loaded_bytes).toBeLessThanOrEqual(250 * 1_024);
    await page.context().close();
  });

  it('leads to the sign-in page and from there to the requested page', async () => {
    const { page, problems } = await watchedPage(await contextOf(chrome.browser), service.url);
    await page.goto(`${service.url}/activity?status=failed&tab=tasks`);
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    expect(new URL(page.url()).search).toBe(`?next=${encodeURIComponent('/activity?status=failed&tab=tasks')}`);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  const strangers_pages = ['/sign-in?token=wrong', '/invitation?id=x', '/sign-in', '/reset-password?token=x'];

  it.each(strangers_pages.slice(0, depth(2, strangers_pages.length)))('has no finding of axe on %s', async (path) => {
    const viewport = { width: 360, height: 800 };
    const context = await contextOf(chrome.browser, { colorScheme: 'light', viewport, reducedMotion: 'reduce' });
    const { page, problems } = await watchedPage(context, service.url);
    await page.goto(service.url + path);
    await settled(page);
    expect(await violationsIn(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.locator('[data-mantine-color-scheme=dark]').first().waitFor();
    expect(await violationsIn(page)).toEqual([]);
    expect(problems).toEqual([]);
    await context.close();
  });
});
