import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { chromium as playwright, type Browser } from 'playwright-core';

export type { Page } from 'playwright-core';

/** Chromium from npm alone, with a folder of its own for what it writes. `more`: arguments of Chromium. */
export async function launchBrowser(more: string[] = []): Promise<{ browser: Browser; close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'medley-browser-'));
  const executablePath = await unpackedFor(folder);
  // Of its own list of arguments, --single-process dies with its first page.
  const browser = await playwright.launch({ executablePath, args: ['--no-sandbox', ...more], headless: true });
  return {
    browser,
    close: async () => {
      await browser.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * It unpacks itself into the temporary folder under a fixed name, where another run or another user may be
 * doing the same, and takes 2.5 s of a core: once for all files of a run, in the folder that global-setup.ts
 * names, or else into `folder`.
 */
async function unpackedFor(folder: string): Promise<string> {
  const shared = process.env['MEDLEY_TEST_BROWSER'];
  if (shared === undefined) return unpackInto(folder);
  const place = join(shared, 'unpacked');
  if (!existsSync(place)) {
    const unpacking = await mkdtemp(join(shared, 'unpacking-'));
    await unpackInto(unpacking);
    await rename(unpacking, place).catch(() => assert(existsSync(place))); // another file was first
  }
  return join(place, 'chromium');
}

/** It asks the environment, which is as before at the end. */
async function unpackInto(folder: string): Promise<string> {
  const before = process.env['TMPDIR'];
  process.env['TMPDIR'] = folder;
  try {
    return await chromium.executablePath();
  } finally {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
  }
}
