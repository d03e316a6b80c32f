// npm run catalogue [-- FORM FILE|URL] [--latest] [--write]: installs what is missing, then compares the ids, prices and
// dates of the default catalogue with price lists that others keep. Plain JavaScript for Node 20. Without words it reads the
// list that is stored beside the tests, and needs no network; --latest reads the lists of today.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.']);
  try {
    return await runScript(root, place, 'test/catalog/lists/catalogue.ts', process.argv.slice(2), { cwd: root });
  } finally {
    place.leave();
  }
});
