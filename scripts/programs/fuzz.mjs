// npm run fuzz -- [--requests 100000] [--minutes N] [--seed N] [--from NUMBER]: installs what is missing, then runs
// test/hostile/fuzz.ts on the pinned Node. Plain JavaScript for Node 20.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'test']);
  try {
    return await runScript(root, place, 'test/hostile/fuzz.ts', process.argv.slice(2), { cwd: root });
  } finally {
    place.leave();
  }
});
