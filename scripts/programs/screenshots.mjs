// npm run screenshots -- [NAME…]: installs what is missing, builds the dashboard and takes the pictures of
// docs/screenshots (test/screenshots/main.ts, on the pinned Node). Plain JavaScript for Node 20.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';
import { buildWeb } from '../web.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'web', 'test']);
  try {
    const built = await buildWeb(root, (script, words) => runScript(root, place, script, words, { cwd: root }));
    if (built !== 0) return built;
    return await runScript(root, place, 'test/screenshots/main.ts', process.argv.slice(2), { cwd: root });
  } finally {
    place.leave();
  }
});
