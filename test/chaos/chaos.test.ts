import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const program = join(import.meta.dirname, '../../scripts/chaos.mjs');

/**
 * A small profile; longer ones by `npm run chaos`. Another seed each time, and told when it fails. A machine that
 * is too slow for all of it does what it can in a minute.
 */
it('120 tasks and 120 chat calls while eight things break: nothing is lost, doubled, told too early or spent beyond', async () => {
  const sizes = ['--tasks', '120', '--chats', '120', '--kills', '8', '--gap', '1', '--outage', '6', '--minutes', '1'];
  const ended = promisify(execFile)(process.execPath, [program, ...sizes], { timeout: 280_000, killSignal: 'SIGTERM' });
  const { stdout } = await ended.catch((error: Error & { stdout?: string }) => ({
    stdout: error.stdout ?? String(error),
  }));
  expect(stdout).toContain('Every promise held');
}, 300_000);
