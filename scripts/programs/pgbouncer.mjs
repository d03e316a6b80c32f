// npm run test:pgbouncer: the service behind a real PgBouncer, which is no package of npm: the system's own, of Debian by
// apt-get install pgbouncer. Without one, the run fails. Plain JavaScript for Node 20.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals, runChild } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The first line of what it says of itself; undefined where there is none. */
async function version() {
  let output = '';
  const code = await runChild('pgbouncer', ['--version'], { onOutput: (chunk) => (output += chunk) }).catch(() => -1);
  return code === 0 ? output.split('\n')[0] : undefined;
}

forwardSignals();
await finish(async () => {
  const name = await version();
  if (name === undefined) {
    console.log('NOT RUN: there is no program pgbouncer here. Debian has it: apt-get install pgbouncer.');
    return 1;
  }
  const place = await setUp(root, ['.', 'test']);
  try {
    const words = ['run', '--config', 'test/vitest.pgbouncer.config.ts'];
    const code = await runScript(root, place, 'test/node_modules/vitest/vitest.mjs', words, { cwd: root });
    console.log(`Ran on ${name}.`);
    return code;
  } finally {
    place.leave();
  }
});
