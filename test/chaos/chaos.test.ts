import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { depth } from '../helpers/depth.ts';

const program = join(import.meta.dirname, '../../scripts/chaos.mjs');

/**
 * A smoke run, and a small profile by night; longer ones by `npm run chaos`. Another seed each time, and told when it
 * fails. A machine that is too slow for all of it does what it can in half a minute.
 */
it('tasks and chat calls while things break: nothing is lost, doubled, told too early or spent beyond', async () => {
  const { calls, kills, outage_s } = depth({ calls: 20, kills: 2, outage_s: 2 }, { calls: 100, kills: 5, outage_s: 5 });
  const sizes = `--tasks ${calls} --chats ${calls} --kills ${kills} --gap 0.5 --outage ${outage_s} --minutes 0.5`.split(
    ' ',
  );
  const ended = promisify(execFile)(process.execPath, [program, ...sizes], { timeout: 280_000, killSignal: 'SIGTERM' });
  const { stdout, stderr } = await ended.catch((error: Error & { stdout?: string; stderr?: string }) => ({
    stdout: error.stdout ?? String(error),
    stderr: error.stderr ?? '',
  }));
  expect(stdout, `${stdout}\n${stderr}`).toContain('Every promise held');
}, 300_000);
