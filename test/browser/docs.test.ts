import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf } from '../helpers/dashboard.ts';

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

type Opened = { page: Page; requests: string[]; problems: string[] };

/** Opens a page and collects everything that it asks for and complains about. */
async function open(path: string): Promise<Opened> {
  const page = await (await contextOf(chromium.browser)).newPage();
  const requests: string[] = [];
  const problems: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(service.url + path);
  return { page, requests, problems };
}

describe('/docs', () => {
  test('shows the API reference and loads nothing from elsewhere', async () => {
    const { page, requests, problems } = await open('/docs');
    await page.getByRole('heading', { name: 'Medley' }).waitFor();
    await page.getByText('Create a generation task').first().click();
    await page.getByText('sandbox/image').first().waitFor();
    await page.getByText('Authorization: Bearer $KEY').first().waitFor(); // its own sample, in curl
    await page.getByRole('button', { name: 'curl' }).first().click();
    await page.getByRole('option', { name: 'Python' }).first().click();
    await page.getByText('requests.post(').first().waitFor();
    expect(await page.getByText(/ask ai/i).count()).toBe(0);
    await page.evaluate('new Promise((done) => requestIdleCallback(done))');
    expect(requests).toContain(`${service.url}/openapi.json`);
    expect(requests.filter((url) => !url.startsWith(`${service.url}/`) && !/^(data|blob):/.test(url))).toEqual([]);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test('sends requests with a key that is typed in', async () => {
    const { key } = await service.client();
    const { page, problems } = await open('/docs');
    await page.getByPlaceholder('Token').first().fill(key);
    await page.getByText('Create a generation task').first().click();
    await page
      .getByRole('button', { name: /test request/i })
      .first()
      .click();
    const asking = page.waitForRequest((request) => request.url().startsWith(`${service.url}/v1/generate`));
    await page.getByRole('dialog').getByRole('button', { name: /^send/i }).first().click();
    const response = await (await asking).response();
    if (!response) throw new Error('the request failed');
    expect(response.status()).toBe(202);
    expect(await response.json()).toMatchObject({ model: 'sandbox/image', status: 'succeeded' });
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test('cannot reach another server', async () => {
    const { page, problems } = await open('/docs');
    const outcome = await page.evaluate(async () => {
      try {
        await fetch('https://proxy.scalar.com/');
        return 'reached';
      } catch {
        return 'refused';
      }
    });
    expect(outcome).toBe('refused');
    await expect.poll(() => problems.join('\n')).toContain('Content Security Policy');
    await page.context().close();
  });

  test('has a script that is compressed and cacheable', async () => {
    const answer = await fetch(`${service.url}/docs/scalar.js`);
    expect(answer.headers.get('content-encoding')).toBe('gzip');
    expect(answer.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(answer.headers.get('cache-control')).toContain('max-age');
    expect((await answer.text()).length).toBeGreaterThan(1_000_000);
  });
});

describe('/', () => {
  test('links to the API reference', async () => {
    const { page, requests, problems } = await open('/');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.evaluate('getComputedStyle(document.body).margin')).toBe('0px'); // its style was let in
    await page.getByRole('link', { name: 'API reference' }).click();
    await page.waitForURL(`${service.url}/guide/reference`);
    expect(requests[0]).toBe(`${service.url}/`);
    expect(problems.filter((text) => !/status of 401/.test(text))).toEqual([]); // nobody has signed in yet
    await page.context().close();
  });

  test('is a page that loads nothing', async () => {
    const answer = await fetch(`${service.url}/`);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
  });
});
