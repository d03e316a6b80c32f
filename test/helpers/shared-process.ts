import { afterAll } from 'vitest';
import { keepImageThreads } from '../../src/lib/image-threads.ts';
import { id_prefixes, newId } from '../../src/lib/ids.ts';

/**
 * Files of tests share a process, so each leaves it as it was: the environment is put back here, and a file
 * that leaves a global changed fails by this. Those that cannot do without a process of their own have one,
 * by vitest.config.ts.
 *
 * Ids go on from the last one of their prefix, by up to a minute: a file whose clock was ahead would give those of the
 * next file times that are too late. One of long ago lets them follow the clock again.
 */

keepImageThreads(); // before a file of tests loads sharp

const env = { ...process.env };
const before = globals();

for (const prefix of id_prefixes) newId(prefix, 0);

afterAll(() => {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  const now = globals();
  const changed = [...before].filter(([name, value]) => now.get(name) !== value).map(([name]) => name);
  if (changed.length > 0) throw new Error(`left changed for the files after this: ${changed.join(', ')}`);
});

function globals(): Map<string, unknown> {
  return new Map<string, unknown>([
    ['Date', Date],
    ['Date.now', Date.now],
    ['performance.now', performance.now],
    ['Math.random', Math.random],
    ['fetch', fetch],
    ['setTimeout', setTimeout],
    ['setInterval', setInterval],
    ['process.cwd()', process.cwd()],
    ['process.umask()', process.umask()],
    // One that rethrows ended the whole process of tests, without a word about which.
    ['listeners of uncaughtException', process.listenerCount('uncaughtException')],
  ]);
}
