// npm run test:python: the tests of the Python client against a service of their own, in environments below the temporary
// folder. Needs Python 3.10 or newer, and its registry for the pinned packages. Plain JavaScript for Node 20.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const words = ['run', '--config', 'test/vitest.python.config.ts', ...process.argv.slice(2)];

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'test']);
  try {
    return await runScript(root, place, 'test/node_modules/vitest/vitest.mjs', words, { cwd: root });
  } finally {
    place.leave();
  }
});
