import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchBrowser } from '../helpers/browser.ts';
import { watchedPage } from '../helpers/dashboard.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { keyboardOf } from '../helpers/keyboard.ts';

const repository = join(import.meta.dirname, '../..');

/** From the start of the program to the picture, with everything that is between them. */
const limit_ms = 60_000;

let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let folder = '';
let service: ChildProcessByStdio<null, Readable, null>;

beforeAll(async () => {
  chromium = await launchBrowser();
  folder = clusterFolder();
}, 120_000);

afterAll(async () => {
  await chromium?.close();
  if (service?.exitCode === null && service.signalCode === null) {
    process.kill(-(service.pid ?? 0), 'SIGTERM');
    await once(service, 'exit');
  }
  removeFolder(folder);
}, 60_000);

/** `npm start` on the packages that are installed, with an empty data folder; resolves with the link that it prints. */
async function startAndReadLink(): Promise<string> {
  const { PATH, HOME } = process.env;
  service = spawn('npm', ['start', '--silent'], {
    cwd: repository,
    env: { PATH, HOME, PORT: '0', MEDLEY_DATA: join(folder, 'data') },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  let said = '';
  for await (const chunk of service.stdout) {
    said += String(chunk);
    const link = /^Sign in to the dashboard .*: (\S+)$/m.exec(said)?.[1];
    if (link !== undefined && said.includes('hello.png')) return link;
  }
  throw new Error(`It ended before it said where to sign in: ${said}`);
}

test(
  'npm start leads by its one-time link to an image in the playground within a minute',
  { timeout: 120_000 },
  async () => {
    const started_ms = performance.now();
    const link = await startAndReadLink();
    service.stdout.resume();
    const { page, complaints } = await watchedPage(await chromium.browser.newContext(), new URL(link).origin);
    page.setDefaultTimeout(limit_ms);
    const keyboard = keyboardOf(page);
    await page.goto(link);
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
    await keyboard.enter('link', 'Open the playground');
    await keyboard.fill(/^Prompt/, 'A red bicycle');
    await keyboard.enter('button', /^Run · holds/);
    const picture = page.getByRole('img', { name: 'Result 1 of sandbox/image' });
    await picture.waitFor();
    await expect
      .poll(() => picture.evaluate((image) => 'naturalWidth' in image && image.naturalWidth), { timeout: limit_ms })
      .toBe(768);
    expect(performance.now() - started_ms).toBeLessThan(limit_ms);
    expect(complaints).toEqual([]);

    await page.context().clearCookies();
    await page.goto(link);
    await page.getByRole('heading', { level: 1, name: 'This link no longer works' }).waitFor();
  },
);
