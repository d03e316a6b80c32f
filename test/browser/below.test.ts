import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { makeLoginLink } from '../../src/accounts/sign-in/login-links.ts';
import { firstOperator } from '../../src/accounts/members.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, watchedPage, type Watched } from '../helpers/dashboard.ts';

/** The service below a path of its host: a proxy takes the path away, and has other things beside it. */

let proxy: Server;
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let user_id: string;

beforeAll(async () => {
  let port = 0;
  proxy = createServer((incoming, answered) => {
    const [, path] = /^\/medley(\/.*)$/.exec(incoming.url ?? '') ?? [];
    if (path === undefined) return void answered.writeHead(404).end('something else');
    const { method, headers } = incoming;
    const passed = request({ port, host: '127.0.0.1', path, method, headers }, (answer) => {
      answered.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(answered);
    });
    passed.on('error', () => answered.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port: own } = proxy.address() as AddressInfo;
  service = await startTestApp({ env: { MEDLEY_BASE_URL: `http://127.0.0.1:${own}/medley` } });
  port = Number(new URL(service.app.local_url()).port);
  const account = { name: 'Own', currency: 'USD', initial_credit: 0n };
  const { id } = await createAccount(service.app.db, account, new Date());
  user_id = await firstOperator(service.app.db, id, new Date());
  chromium = await launchBrowser();
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
  proxy?.close();
});

const signInLink = () => makeLoginLink(service.app.db, service.app.base_url(), user_id, new Date());

async function open(path: string): Promise<Watched> {
  const watched = await watchedPage(await contextOf(chromium.browser), `${service.url}/`);
  await watched.page.goto(service.url + path);
  return watched;
}

describe('the dashboard below a path', () => {
  test('signs in by a link, works on each page, and returns after another sign-in', async () => {
    const { page, problems } = await open((await signInLink()).slice(service.url.length));
    const at = (path: string) => page.waitForURL((url) => url.pathname === `/medley${path}`);
    await at('/');
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.getByRole('link', { name: 'Usage', exact: true }).first().click();
    await at('/usage');
    await expect
      .poll(() => page.getByRole('link', { name: 'Table (CSV)' }).getAttribute('href'))
      .toMatch(/^\/medley\/dash\//);
    await expect.poll(() => page.locator('a[data-active]').getAttribute('href')).toBe('/medley/usage');
    await page.goto(`${service.url}/models`);
    await page.locator('a[href="/medley/models/sandbox/image"]').first().click();
    await at('/models/sandbox/image');
    await page.getByRole('link', { name: 'Open in the playground' }).click();
    await at('/playground');
    await page.reload();
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(problems).toEqual([]);
    await page.context().clearCookies();
    await page.goto(`${service.url}/usage?days=7`);
    await at('/sign-in');
    expect(new URL(page.url()).searchParams.get('next')).toMatch(/^\/usage/);
    await page.goto(`${await signInLink()}&next=%2Fusage%3Fdays%3D7`);
    await at('/usage');
    await page.context().close();
  });

  test('has the guide, whose links and examples have the path', async () => {
    const { page, problems } = await open('/guide');
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.getByRole('list', { name: 'Use it' }).getByRole('link', { name: 'Embeddings' }).click();
    await page.waitForURL((url) => url.pathname === '/medley/guide/embeddings');
    await page.getByText(`curl -sS ${service.url}/v1/embeddings`).waitFor();
    await page.getByRole('button', { name: /^Search/ }).click();
    await page.getByRole('searchbox').fill('webhooks');
    await page.locator('#results a[href="/medley/guide/webhooks"]').waitFor();
    await page.goto(`${service.url}/docs`);
    await page.getByRole('link', { name: 'Guide', exact: true }).click();
    await page.waitForURL((url) => url.pathname === '/medley/guide');
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test('has the API reference, which loads nothing from elsewhere', async () => {
    for (const path of ['/docs', '/docs/']) {
      const { page, problems } = await open(path);
      await page.getByText('Create a generation task').first().waitFor();
      expect(problems).toEqual([]);
      await page.context().close();
    }
  });
});
