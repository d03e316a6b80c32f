import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const program = join(import.meta.dirname, '../../scripts/chaos.mjs');

/**
 * The quick profile; longer ones by `npm run chaos`. Another seed each time, and told when it fails. A machine that
 * is too slow for all of it does what it can in 100 s.
 */
it('300 tasks while 12 things break: nothing is lost, doubled or told too early', async () => {
  const words = [program, '--tasks', '300', '--kills', '12', '--minutes', '1.7'];
  const ended = promisify(execFile)(process.execPath, words, { timeout: 280_000, killSignal: 'SIGTERM' });
  const { stdout } = await ended.catch((error: Error & { stdout?: string }) => ({
    stdout: error.stdout ?? String(error),
  }));
  expect(stdout).toContain('Every promise held');
}, 300_000);
