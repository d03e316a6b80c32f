// npm run clients -- [--cache FOLDER] [NAME…]: installs what is missing, then runs test/clients/main.ts on the pinned
// Node: the clients of test/clients/list.ts, each against a service before imitated upstreams in four styles. With
// names (words of them) docs/clients.md is not written. Ends with 1 if a step failed. Plain JavaScript for Node 20.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'test']);
  try {
    return await runScript(root, place, 'test/clients/main.ts', process.argv.slice(2), { cwd: root });
  } finally {
    place.leave();
  }
});
