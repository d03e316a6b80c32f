// npm run test:package: packs the service, has npm install the tarball into empty folders from its registry, and runs the
// README's commands there. Plain JavaScript for Node 20.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const words = ['run', '--config', 'test/vitest.package.config.ts'];

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'web', 'test']);
  try {
    return await runScript(root, place, 'test/node_modules/vitest/vitest.mjs', words, { cwd: root });
  } finally {
    place.leave();
  }
});
