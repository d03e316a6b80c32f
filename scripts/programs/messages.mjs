// npm run messages: installs what is missing, then writes the messages of the dashboard into its catalogues (web/messages), and says which
// have no translation. Plain JavaScript for Node 20.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'web']);
  try {
    return await runScript(root, place, 'web/languages/update.mjs', [], { cwd: root });
  } finally {
    place.leave();
  }
});
