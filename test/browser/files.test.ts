import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { chromium as playwright, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startFileServer, type FileServer } from '../api/file-server.ts';
import * as samples from '../storage/samples.ts';

let folder = '';
let browser: Browser;
let files: FileServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'medley-browser-'));
  files = await startFileServer();
  // It unpacks itself into the temporary folder, where another test or user may be doing the same.
  vi.stubEnv('TMPDIR', folder);
  const executablePath = await chromium.executablePath();
  vi.unstubAllEnvs();
  browser = await playwright.launch({ executablePath, args: ['--no-sandbox'], headless: true });
});

afterAll(async () => {
  await browser?.close();
  await files?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Opens an address as one does by clicking on it, and collects what the browser complains about. */
async function open(url: string): Promise<{ page: Page; problems: string[] }> {
  const page = await browser.newPage({ viewport: { width: 400, height: 300 } });
  page.setDefaultTimeout(patience.timeout);
  const problems: string[] = [];
  page.on('console', (message) => problems.push(message.text()));
  await page.goto(url);
  return { page, problems };
}

/** The page's own scripts are switched off, so nothing can wait inside it: it is asked from here. */
function askVideo(page: Page): Promise<unknown> {
  return page.evaluate(`(({ ended, currentTime, duration, seeking, error }) =>
    ({ ended, seconds: currentTime, duration, seeking, error }))(document.querySelector('video'))`);
}

const patience = { timeout: 120_000, interval: 50 };

describe('a file link in Chromium', () => {
  test.each([
    ['MP4', 'mp4', () => samples.mp4(96, 64, 30), 1.25],
    ['WAV', 'wav', () => samples.wav(1), 1],
  ] as const)('shows a player that plays %s to its end and seeks', async (_, extension, make, duration) => {
    const { url } = await files.publish(await make(), extension);
    const { page, problems } = await open(url);
    await vi.waitFor(async () => expect(await askVideo(page)).toMatchObject({ duration, seconds: 0 }), patience);
    await page.evaluate(`void document.querySelector('video').play()`);
    await vi.waitFor(
      async () => expect(await askVideo(page)).toMatchObject({ ended: true, seconds: duration }),
      patience,
    );
    await page.evaluate(`document.querySelector('video').currentTime = 0.5`);
    await vi.waitFor(
      async () =>
        expect(await askVideo(page)).toMatchObject({ ended: false, seeking: false, seconds: 0.5, error: null }),
      patience,
    );
    expect(problems).toEqual([]);
    await page.close();
  });

  test('shows an image in the middle of the window', async () => {
    const { url } = await files.publish(await samples.sampleImage('png', 100, 50));
    const { page, problems } = await open(url);
    const box = () => page.locator('img').boundingBox();
    await expect.poll(box, patience).toEqual({ x: 150, y: 125, width: 100, height: 50 });
    expect(problems).toEqual([]);
    await page.close();
  });

  test.each(['png', 'mp4', 'wav'] as const)('runs nothing of a page that claims to be %s', async (extension) => {
    const { url } = await files.publish(
      Buffer.from('<!doctype html><title>no</title><script>document.title = "ran"</script>'),
      extension,
    );
    const { page } = await open(url);
    expect(await page.title()).not.toMatch(/ran|no/);
    await page.close();
  });

  test('downloads an unsupported file under a good name and shows nothing', async () => {
    const { key, url } = await files.publish(Buffer.from('<script>document.title = "ran"</script>'), 'bin');
    const page = await browser.newPage();
    page.setDefaultTimeout(patience.timeout);
    const [download] = await Promise.all([page.waitForEvent('download'), page.goto(url).catch(() => undefined)]);
    expect(download.suggestedFilename()).toBe(`${key.split('/')[1]}-0.bin`);
    await page.close();
  });

  test('may be embedded by a page of another site', async () => {
    const image = await files.publish(await samples.sampleImage('webp', 40, 30), 'webp');
    const video = await files.publish(await samples.mp4(96, 64, 30), 'mp4');
    const site = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html', 'cross-origin-embedder-policy': 'require-corp' });
      response.end(`<img src="${image.url}"><video muted autoplay src="${video.url}"></video>`);
    }).listen(0);
    await once(site, 'listening');
    const { page, problems } = await open(`http://localhost:${(site.address() as AddressInfo).port}/`);
    expect(await page.evaluate(`document.querySelector('img').naturalWidth`)).toBe(40);
    await vi.waitFor(async () => expect(await askVideo(page)).toMatchObject({ ended: true, duration: 1.25 }), patience);
    expect(problems.filter((text) => !text.includes('favicon'))).toEqual([]);
    await page.close();
    site.closeAllConnections();
    site.close();
  });
});
