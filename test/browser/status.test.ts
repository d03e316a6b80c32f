import { afterAll, beforeAll, expect, test } from 'vitest';
import { addUpModelHours } from '../../src/monitoring/model-hours.ts';
import { ownerOfNew, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { limits } from '../helpers/catalog.ts';
import { contextOf, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

let open: TestApp;
let closed: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let owner: Someone;

const limit = { timeout: 300_000 };
const yaml = (is_public: boolean) => `version: 1\n${limits()}\nstatus_page: { public: ${is_public} }\n`;

beforeAll(async () => {
  open = await startTestApp({ yaml: yaml(true) });
  closed = await startTestApp({ yaml: yaml(false), worker: false });
  chromium = await launchBrowser();
  owner = await ownerOfNew(open);
  const client = await open.client({ account_id: owner.account_id });
  for (const prompt of ['A red bicycle', 'A blue one', 'A green one', '[[fail]] a failure']) {
    const input = { prompt, width: 16, height: 16 };
    await client.call('POST', '/v1/generate?wait=60', { model: 'sandbox/image', input });
  }
  await open.app.db.query(
    `insert into model_hours (model, start, calls, failed) values ('sandbox/image', $1, 100, 15)`,
    [new Date(Date.now() - 5 * 86_400_000)],
  );
  await addUpModelHours(open.app);
});

afterAll(async () => {
  await chromium?.close();
  await open?.stop();
  await closed?.stop();
});

test.each([
  { look: 'light', colorScheme: 'light', width: 1280 },
  { look: 'dark, on a phone', colorScheme: 'dark', width: 390 },
] as const)('the status leads from the models to how each serves ($look)', limit, async ({ colorScheme, width }) => {
  const viewport = { width, height: 900 };
  const context = await contextOf(chromium.browser, { colorScheme, viewport, reducedMotion: 'reduce' });
  const { page, problems } = await watchedPage(context, open.url);
  await signIn(page, open.app, owner.user_id, '/models');
  await page.getByRole('link', { name: 'Status' }).click();
  await page.getByRole('heading', { name: 'Status', level: 1 }).waitFor();
  await page.getByText('All models are available.').waitFor();
  await page.getByText('Last 24 hours: 75 % succeeded').waitFor();
  await page.getByRole('img', { name: /The worst of 90 days was .*: 75 % succeeded/ }).waitFor();
  expect(await violationsIn(page)).toEqual([]);
  expect(await sidewaysOf(page)).toBe(0);
  expect(problems).toEqual([]);
  await context.close();
});

test('anybody sees a public status, without signing in', limit, async () => {
  const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  const { page, problems } = await watchedPage(context, open.url);
  await page.goto(`${open.url}/status`);
  await page.getByText('Last 24 hours: 75 % succeeded').waitFor();
  expect(problems).toEqual([]);
  await context.close();
});

test('a status for users leads to the sign-in, and back', limit, async () => {
  const somebody = await ownerOfNew(closed);
  const context = await contextOf(chromium.browser, { reducedMotion: 'reduce' });
  const { page } = await watchedPage(context, closed.url);
  await page.goto(`${closed.url}/status`);
  await page.getByRole('link', { name: 'Sign in' }).click();
  await page.waitForURL((url) => url.pathname === '/sign-in' && url.searchParams.get('next') === '/status');
  await signIn(page, closed.app, somebody.user_id, '/status');
  await page.getByText('No calls in the last 24 hours').first().waitFor();
  expect(new URL(page.url()).pathname).toBe('/status');
  await context.close();
});
