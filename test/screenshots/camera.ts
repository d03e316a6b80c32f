import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import sharp from 'sharp';
import { followLink, settled } from '../helpers/dashboard.ts';
import type { TestApp } from '../helpers/app.ts';
import type { Look, Shot } from './shots.ts';
import { realTime } from './time.ts';
import type { World } from './world.ts';

const looks = {
  light: { colorScheme: 'light', width: 1280, height: 800, height_max: 1700 },
  dark: { colorScheme: 'dark', width: 1280, height: 800, height_max: 1700 },
  phone: { colorScheme: 'light', width: 360, height: 740, height_max: 1900 },
} as const;

/** Of a channel, from 0 to 255: less than that cannot be seen. */
const colour_change_min = 8;

/** Ids and durations differ from run to run: a picture of which less than this differs stays as it is. */
const changed_share_min = 0.001;

export type Camera = { browser(): Promise<Browser>; service: TestApp; world: World; folder: string; shown_at: string };

/** Everybody signs in once. */
const sessions = new Map<Shot['who'], Awaited<ReturnType<BrowserContext['storageState']>>>();

/** Somebody's browser, in which it is the time of the pictures. */
async function openContext({ browser, service, world, shown_at }: Camera, { who, locale = 'en-GB' }: Shot, look: Look) {
  const { colorScheme, width, height } = looks[look];
  const storageState = sessions.get(who);
  const context = await (
    await browser()
  ).newContext({
    colorScheme,
    viewport: { width, height },
    reducedMotion: 'reduce',
    locale,
    timezoneId: 'UTC',
    ...(storageState && { storageState }),
  });
  context.setDefaultTimeout(20_000);
  await context.clock.setFixedTime(new Date(shown_at));
  if (who === 'nobody' || storageState) return context;
  const page = await context.newPage();
  await followLink(page, service.app, world.who[who]);
  await page.close();
  sessions.set(who, await context.storageState());
  return context;
}

/** Takes the picture; answers its size in bytes, or that the old one stays. */
export async function take(camera: Camera, shot: Shot, look: Look): Promise<string> {
  const context = await openContext(camera, shot, look);
  const page = await context.newPage();
  try {
    if (shot.state) await hold(page, shot.state);
    await context.clock.setFixedTime(shot.real_time ? realTime() : new Date(camera.shown_at));
    await page.goto(camera.service.app.base_url() + shot.path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    if (shot.state === 'error') await page.getByRole('alert').first().waitFor();
    if (shot.state === undefined) await atRest(page);
    await shot.prepare?.(page);
    await stretch(page, looks[look]);
    if (shot.state === undefined) await page.evaluate(media_at_rest);
    await page.waitForTimeout(400); // charts measure their place, pictures and films show their first frame
    await stretch(page, looks[look]);
    const png = await sharp(await page.screenshot())
      .png({ palette: true, colours: 96, effort: 8 })
      .toBuffer();
    return await keep(join(camera.folder, `${shot.name}-${look}.png`), png);
  } finally {
    await context.close();
  }
}

/** Holds back or fails the answers of a page, but those that every page needs. */
async function hold(page: Page, state: 'loading' | 'error'): Promise<void> {
  await page.route(/\/dash\/(accounts\/[^/]+\/(?!balance)|admin\/)/, async (route) => {
    if (state === 'loading') return; // for as long as the page is open
    const error = {
      type: 'internal_error',
      message: 'An internal error.',
      request_id: 'req_01kade0example',
    };
    await route.fulfill({ status: 500, contentType: 'application/json', body: JSON.stringify({ error }) });
  });
}

async function atRest(page: Page): Promise<void> {
  await settled(page);
  await page.evaluate(media_at_rest);
}

/**
 * As text: it runs in the page. A picture below the window may be loaded only when somebody scrolls to it. A film shows its first frame, or a mark that it is on its way for two seconds.
 */
const media_at_rest = `Promise.all([
  ...[...document.images]
    .filter((image) => image.getBoundingClientRect().top < innerHeight)
    .map((image) => image.decode().catch(() => undefined)),
  ...[...document.querySelectorAll('video')].map((film) => film.readyState > 2 || Promise.race([
    new Promise((resolve) => film.addEventListener('canplay', resolve)),
    new Promise((resolve) => setTimeout(resolve, 2_000)),
  ])),
])`;

/** The window becomes as high as the page, so that what stands fixed in it is as high, too. */
async function stretch(page: Page, { width, height, height_max }: (typeof looks)[Look]): Promise<void> {
  const height_px = await page.evaluate<number>('document.documentElement.scrollHeight');
  await page.setViewportSize({ width, height: Math.min(Math.max(height_px, height), height_max) });
  await page.evaluate('window.scrollTo(0, 0)');
}

async function keep(path: string, png: Buffer): Promise<string> {
  if (existsSync(path) && (await shareOfDifference(path, png)) < changed_share_min) return 'as it was';
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, png);
  return `${Math.ceil(png.length / 1024)} KiB`;
}

async function shareOfDifference(path: string, png: Buffer): Promise<number> {
  const [a, b] = await Promise.all(
    [path, png].map((one) =>
      sharp(one).removeAlpha().toColourspace('srgb').raw().toBuffer({ resolveWithObject: true }),
    ),
  );
  if (!a || !b || a.info.width !== b.info.width || a.info.height !== b.info.height) return 1;
  let differ = 0;
  for (let at = 0; at < a.data.length; at++)
    if (Math.abs((a.data[at] ?? 0) - (b.data[at] ?? 0)) > colour_change_min) differ++;
  return differ / a.data.length;
}
