// npm run schema: installs what is missing, then writes sql/schema.sql, which a test compares: it migrates an empty
// database and describes what it has then. Plain JavaScript for Node 20.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const vitest = 'test/node_modules/vitest/vitest.mjs';
const words = ['run', '--config', 'test/vitest.config.ts', 'test/db/schema.test.ts', '--update'];

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'test']);
  try {
    return await runScript(root, place, vitest, words, { cwd: root });
  } finally {
    place.leave();
  }
});
