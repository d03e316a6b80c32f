import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const program = join(import.meta.dirname, '../../scripts/chaos.mjs');

/**
 * A small profile; longer ones by `npm run chaos`. Another seed each time, and told when it fails. A machine that
 * is too slow for all of it does what it can in half a minute.
 */
it('100 tasks and 100 chat calls while five things break: nothing is lost, doubled, told too early or spent beyond', async () => {
  const sizes = [
    '--tasks',
    '100',
    '--chats',
    '100',
    '--kills',
    '5',
    '--gap',
    '0.5',
    '--outage',
    '5',
    '--minutes',
    '0.5',
  ];
  const ended = promisify(execFile)(process.execPath, [program, ...sizes], { timeout: 280_000, killSignal: 'SIGTERM' });
  const { stdout } = await ended.catch((error: Error & { stdout?: string }) => ({
    stdout: error.stdout ?? String(error),
  }));
  expect(stdout).toContain('Every promise held');
}, 300_000);
