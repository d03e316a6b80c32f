import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { chromium as playwright, type Browser } from 'playwright-core';
import { vi } from 'vitest';

/**
 * Chromium from npm alone. It unpacks itself into the temporary folder under a fixed name, where another
 * test or another user may be doing the same, so it gets a temporary folder of its own.
 */
export async function launchBrowser(): Promise<{ browser: Browser; close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'medley-browser-'));
  vi.stubEnv('TMPDIR', folder);
  const executablePath = await chromium.executablePath().finally(() => vi.unstubAllEnvs());
  // Of its own list of arguments, --single-process dies with its first page.
  const browser = await playwright.launch({ executablePath, args: ['--no-sandbox'], headless: true });
  return {
    browser,
    close: async () => {
      await browser.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
