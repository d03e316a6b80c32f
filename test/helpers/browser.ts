import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { chromium as playwright, type Browser } from 'playwright-core';

/**
 * Chromium from npm alone. It unpacks itself into the temporary folder under a fixed name, where another
 * test or another user may be doing the same, so it gets a temporary folder of its own. `more`: arguments of Chromium.
 */
export async function launchBrowser(more: string[] = []): Promise<{ browser: Browser; close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'medley-browser-'));
  const executablePath = await unpackInto(folder);
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
