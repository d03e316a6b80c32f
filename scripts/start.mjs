// npm start: installs what is missing, then runs the service until it has stopped by itself.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from './setup.mjs';
import { forwardSignals } from './setup-process.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.']);
  try {
    return await runScript(root, place, 'src/main.ts', process.argv.slice(2));
  } finally {
    place.leave();
  }
});
