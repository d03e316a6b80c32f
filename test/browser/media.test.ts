import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page, Response } from 'playwright-core';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { assert } from '../../src/lib/assert.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { depth } from '../helpers/depth.ts';

/** Files of the sandbox, as a person opens them: by the signed links of real tasks. */
let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let site: Server;

beforeAll(async () => {
  service = await startTestApp();
  chromium = await launchBrowser();
  // Somebody else's page; what it shows is set by the tests.
  site = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<body></body>'));
  await once(site.listen(0, '127.0.0.1'), 'listening');
});

afterAll(async () => {
  site.closeAllConnections();
  site.close();
  await chromium?.close();
  await service?.stop();
});

/** The link to the output of a new task. */
async function make(model: string, input: object): Promise<string> {
  const { call } = await service.client();
  const { json } = await call('POST', '/v1/generate?wait=60', { model, input });
  expect(json.status).toBe('succeeded');
  return json.output[0]?.url ?? '';
}

type Opened = { page: Page; answers: Response[]; problems: string[]; elsewhere: string[] };

/** Opens an address; every request to an origin that is neither the service's nor the address's own is refused and told. */
async function open(url: string): Promise<Opened> {
  const page = await chromium.browser.newPage({ viewport: { width: 900, height: 600 } });
  page.setDefaultTimeout(patience.timeout);
  const opened: Opened = { page, answers: [], problems: [], elsewhere: [] };
  const ours = [service.url, new URL(url).origin];
  await page.route(
    ({ origin }) => !ours.includes(origin),
    (route) => {
      opened.elsewhere.push(route.request().url());
      return route.abort();
    },
  );
  page.on('response', (response) => opened.answers.push(response));
  page.on('pageerror', (error) => opened.problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') opened.problems.push(message.text());
  });
  await page.goto(url);
  return opened;
}

type Playing = { duration: number; seconds: number; ended: boolean; seeking: boolean; ready: number; error: unknown };

/** The page's own scripts may be switched off, so nothing can wait inside it: it is asked from here. */
function ask(page: Page): Promise<Playing> {
  return page.evaluate(`(({ duration, currentTime, ended, seeking, readyState, error }) =>
    ({ duration, seconds: currentTime, ended, seeking, ready: readyState, error: error && error.message }))
    (document.querySelector('video'))`);
}

const patience = { timeout: 120_000, interval: 50 };
const have_enough_data = 4;

async function expectPlays(page: Page, duration: number): Promise<void> {
  await expect
    .poll(() => ask(page), patience)
    .toMatchObject({ duration, seconds: 0, ready: have_enough_data, error: null });
  await page.evaluate(`void document.querySelector('video').play()`);
  await expect.poll(() => ask(page), patience).toMatchObject({ ended: true, seconds: duration, error: null });
}

async function seek(page: Page, seconds: number): Promise<void> {
  await page.evaluate(`document.querySelector('video').currentTime = ${seconds}`);
  await expect.poll(() => ask(page), patience).toMatchObject({ seconds, seeking: false, ended: false, error: null });
}

/** Not before what was sought is on the screen, which is a moment after it was found. Needs a page that may run scripts. */
async function frameAt(page: Page, seconds: number): Promise<Buffer> {
  await page.evaluate(`new Promise((resolve) => {
    const video = document.querySelector('video');
    const wait = () => video.requestVideoFrameCallback((_, { mediaTime }) => {
      if (Math.abs(mediaTime - ${seconds}) < 0.2) resolve();
      else wait();
    });
    wait();
    video.currentTime = ${seconds};
  })`);
  await expect.poll(() => ask(page), patience).toMatchObject({ seconds, seeking: false, ended: false, error: null });
  return page.locator('video').screenshot();
}

describe('a video of the sandbox', () => {
  test('plays to its end and seeks at its link, by ranges, under its own policy', async () => {
    const url = await make('sandbox/video', { prompt: 'Waves on a beach', duration: 2 });
    const { page, answers, problems, elsewhere } = await open(url);
    await expectPlays(page, 2);
    await seek(page, 0.5);
    await seek(page, 1.75);
    const [first] = answers;
    expect(first?.headers()['content-security-policy']).toMatch(/^sandbox; default-src 'none';/);
    const ranges = answers.filter((answer) => answer.request().headers()['range'] !== undefined);
    expect(ranges.length).toBeGreaterThan(0);
    expect(ranges.map((answer) => answer.status())).toEqual(ranges.map(() => 206));
    expect({ problems, elsewhere }).toEqual({ problems: [], elsewhere: [] });
    await page.close();
  });

  test("plays to its end in another site's page, with another image at each time", async () => {
    const url = await make('sandbox/video', { prompt: 'Waves', duration: 1.5, aspect_ratio: '9:16' });
    const { port } = site.address() as AddressInfo;
    const { page, problems } = await open(`http://127.0.0.1:${port}/`);
    await page.setContent(`<video muted src="${url}" height="400"></video>`);
    await expectPlays(page, 1.5);
    expect(await page.evaluate(`document.querySelector('video').videoHeight`)).toBe(854);
    const early = await frameAt(page, 0.25);
    const late = await frameAt(page, 1.25);
    expect(late.equals(early)).toBe(false);
    expect((await frameAt(page, 0.25)).equals(early)).toBe(true);
    expect(problems.filter((text) => !text.includes('favicon'))).toEqual([]);
    await page.close();
  });
});

/** The upper left of the film on the screen, with the player's controls shown or without any. */
async function timeCodeAt(page: Page, seconds: number, controls: boolean): Promise<Buffer> {
  await page.evaluate(`document.querySelector('video').controls = ${controls}`);
  await seek(page, seconds);
  const box = await page.locator('video').boundingBox();
  return page.screenshot({ clip: { x: box?.x ?? 0, y: box?.y ?? 0, width: 240, height: 60 } });
}

/** Pixels that turned from dark to light or back, as those of another digit do; the noise of a film is fainter. */
async function changedPixels(before: Buffer, after: Buffer): Promise<number> {
  const [a, b] = await Promise.all([before, after].map((png) => sharp(png).greyscale().raw().toBuffer()));
  assert(a && b, 'both are pictures');
  return a.filter((light, i) => Math.abs(light - (b[i] ?? 0)) > 100).length;
}

describe('the time code of a video', () => {
  test.each(depth(['adaptive'], ['adaptive', '9:16']))(
    'is above the controls of the player: %s',
    async (aspect_ratio) => {
      const { page } = await open(
        await make('sandbox/video', { prompt: 'Waves '.repeat(60), duration: 1.5, aspect_ratio }),
      );
      await page.setViewportSize({ width: 500, height: 280 });
      // What was sought is on the screen a moment after it was found.
      let covered = await timeCodeAt(page, 0.5, true);
      const isClear = async () => {
        covered = await timeCodeAt(page, 0.5, true);
        return covered.equals(await timeCodeAt(page, 0.5, false));
      };
      await expect.poll(isClear, patience).toBe(true);
      const changed = async () => changedPixels(covered, await timeCodeAt(page, 1.25, true));
      await expect.poll(changed, patience).toBeGreaterThan(10);
      await page.close();
    },
  );
});

describe('an image of the sandbox', () => {
  test('opens at its link in its size', async () => {
    const { page, problems, elsewhere } = await open(
      await make('sandbox/image', { prompt: 'Hello', width: 320, height: 200 }),
    );
    await expect.poll(() => page.locator('img').boundingBox(), patience).toMatchObject({ width: 320, height: 200 });
    expect({ problems, elsewhere }).toEqual({ problems: [], elsewhere: [] });
    await page.close();
  });
});

describe('audio of the sandbox', () => {
  test('opens at its link, plays to its end and seeks', async () => {
    const { page, problems } = await open(await make('sandbox/audio', { prompt: 'A lullaby', duration: 1.5 }));
    await expectPlays(page, 1.5);
    await seek(page, 0.5);
    expect(problems).toEqual([]);
    await page.close();
  });

  test('is audible: Chromium decodes sound in every quarter of it', async () => {
    const url = await make('sandbox/audio', { prompt: 'A lullaby', duration: 4 });
    const bytes = Buffer.from(await (await fetch(url)).arrayBuffer()).toString('base64');
    const { page } = await open(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
    const loudest = await page.evaluate<number[]>(`(async () => {
      const wav = Uint8Array.from(atob('${bytes}'), (letter) => letter.charCodeAt(0));
      const sound = await new OfflineAudioContext(1, 1, 44100).decodeAudioData(wav.buffer);
      const samples = sound.getChannelData(0);
      const quarter = samples.length / 4;
      return [0, 1, 2, 3].map((i) => Math.max(...samples.slice(i * quarter, (i + 1) * quarter)));
    })()`);
    expect(loudest).toHaveLength(4);
    for (const peak of loudest) expect(peak).toBeGreaterThan(0.05);
    for (const peak of loudest) expect(peak).toBeLessThan(1);
    await page.close();
  });
});

describe('the pages of the service', () => {
  test('lead from / to the API reference at every width and load nothing from elsewhere', async () => {
    const { page, problems, elsewhere } = await open(`${service.url}/`);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole('link', { name: 'API reference' }).click();
    await page.getByRole('heading', { name: 'API reference', level: 1 }).waitFor();
    const wider_px = () => page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
    await expect.poll(wider_px, patience).toBeLessThanOrEqual(1);
    const others = problems.filter((text) => !/status of 401/.test(text)); // nobody has signed in yet
    expect({ others, elsewhere }).toEqual({ others: [], elsewhere: [] });
    await page.close();
  });
});
