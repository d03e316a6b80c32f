import type { Page, Response } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { assert } from '../../src/lib/assert.ts';
import { ownerOfNew } from '../dashboard/people.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

/** Small pictures of results, in a browser. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let page: Page;
let problems: string[];
let client: Client;

const patience = { timeout: 120_000, interval: 50 };
const images_count = 25;

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  const owner = await ownerOfNew(service);
  client = await service.client({ account_id: owner.account_id });
  for (let number = 0; number < images_count; number++) {
    await make('sandbox/image', { prompt: `Picture ${number}`, width: 1024, height: 1024 });
  }
  const context = await chromium.browser.newContext({ viewport: { width: 1200, height: 2_400 } });
  context.setDefaultTimeout(patience.timeout);
  ({ page, problems } = await watchedPage(context, service.url));
  await signIn(page, service.app, owner.user_id);
}, 300_000);

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

async function make(model: string, input: object): Promise<string> {
  const { json } = await client.call('POST', '/v1/generate?wait=60', { model, input });
  expect(json.status).toBe('succeeded');
  return json.id;
}

/** The answers that a page gets while it opens, once `isThere`. */
async function answersOf(path: string, isThere: () => Promise<boolean>): Promise<Response[]> {
  const answers: Response[] = [];
  const listen = (answer: Response) => void answers.push(answer);
  page.on('response', listen);
  await page.goto(service.url + path);
  await expect.poll(isThere, patience).toBe(true);
  page.off('response', listen);
  return answers.filter((answer) => answer.url().includes('/files/'));
}

/** The pictures that are shown, with the width of what was loaded and the sides that they have on the page. */
function loadedImages(): Promise<{ loaded: number; width: number; height: number }[]> {
  return page.evaluate(`[...document.querySelectorAll('main img')].map((image) => ({
    loaded: image.naturalWidth, width: image.width, height: image.height }))`);
}

async function bytesOf(answers: readonly Response[]): Promise<number> {
  const sizes = await Promise.all(answers.map(async (answer) => (await answer.body()).length));
  return sizes.reduce((sum, size) => sum + size, 0);
}

test('Activity with 25 pictures loads less than 150 kB of pictures, each of which has its place before', async () => {
  const areThere = async () => (await loadedImages()).filter(({ loaded }) => loaded === 64).length === images_count;
  const answers = await answersOf('/activity', areThere);
  expect(answers).toHaveLength(images_count);
  const bytes = await bytesOf(answers);
  expect(bytes).toBeGreaterThan(5_000);
  expect(bytes).toBeLessThan(150_000);
  expect(await loadedImages()).toEqual(
    Array.from({ length: images_count }, () => ({ loaded: 64, width: 40, height: 40 })),
  );
  const places = await page.locator('main img').evaluateAll((images) => images.map((image) => image.outerHTML));
  for (const place of places) expect(place).toMatch(/ width="40" height="40"/);
  expect(await violationsIn(page)).toEqual([]);
}, 300_000);

test('pictures that were shown once come from the cache of the browser', async () => {
  const areThere = async () => (await loadedImages()).filter(({ loaded }) => loaded === 64).length === images_count;
  await answersOf('/activity', areThere);
  await answersOf('/activity', areThere);
  const transferred = await page.evaluate<number[]>(
    `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('?thumbnail=64')).map(({ transferSize }) => transferSize)`,
  );
  expect(transferred).toEqual(Array.from({ length: images_count }, () => 0));
}, 300_000);

test('Home shows the latest results in 320 pixels', async () => {
  const answers = await answersOf('/', async () => (await loadedImages()).some(({ loaded }) => loaded === 320));
  expect(answers.every((answer) => answer.url().endsWith('?thumbnail=320'))).toBe(true);
}, 300_000);

test('the page of a task has a thumbnail in the place of its picture until that is there', async () => {
  const id = await make('sandbox/image', { prompt: 'A lighthouse', width: 1024, height: 512 });
  let let_through = () => {};
  const held = new Promise<void>((resolve) => (let_through = resolve));
  await page.route(/\/files\/0$/, async (route) => {
    await held;
    await route.continue();
  });
  await page.goto(`${service.url}/tasks/${id}`);
  const result_image = page.getByRole('img', { name: 'Result 1 of sandbox/image' });
  const shown = () => result_image.evaluate((image) => [Number(Reflect.get(image, 'naturalWidth')), image.clientWidth]);
  await expect.poll(async () => (await shown())[0], patience).toBe(640);
  const [, width] = await shown();
  let_through();
  await expect.poll(shown, patience).toEqual([1024, width]); // nothing has moved
  await page.unroute(/\/files\/0$/);
}, 300_000);

test('the page of a recording shows its waveform above the player, and that of a video a frame of it', async () => {
  const recording = await make('sandbox/audio', { prompt: 'Good morning' });
  await answersOf(`/tasks/${recording}`, async () => (await loadedImages()).some(({ loaded }) => loaded === 640));
  expect(await violationsIn(page)).toEqual([]);
  const video = await make('sandbox/video', { prompt: 'A ball', resolution: '480p', duration: 1 });
  await answersOf(`/tasks/${video}`, async () => (await page.locator('video').count()) === 1);
  const poster = await page.locator('video').getAttribute('poster');
  assert(poster, 'the video has a poster');
  const drawn = await page.evaluate<number>(
    `new Promise((resolve) => { const image = new Image(); image.onload = () => resolve(image.naturalWidth); image.src = ${JSON.stringify(poster)}; })`,
  );
  expect(drawn).toBe(569);
}, 300_000);

test('a result of which nothing can be drawn shows what it is', async () => {
  await page.route(/thumbnail=64$/, (route) => route.fulfill({ status: 404, body: '{}' }));
  await page.goto(`${service.url}/activity`);
  await expect.poll(async () => (await loadedImages()).length, patience).toBe(0);
  await expect.poll(() => page.locator('main tbody svg').count(), patience).toBeGreaterThan(20);
  await page.unroute(/thumbnail=64$/);
  expect(problems.filter((problem) => !problem.includes('404'))).toEqual([]);
}, 300_000);
