import { afterAll } from 'vitest';

/**
 * Files of tests share a process, so each leaves it as it was: the environment is put back here, and a file
 * that leaves a global changed fails by this. Those that cannot do without a process of their own have one,
 * by vitest.config.ts.
 */

const env = { ...process.env };
const before = globals();

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
