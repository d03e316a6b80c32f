// npm start: installs what is missing, then runs the service until it has stopped by itself.
import { fileURLToPath } from 'node:url';
import { service_env, service_flags } from '../service-flags.mjs';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';
import { buildWeb, isStale } from '../web.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

forwardSignals();
await finish(async () => {
  const stale = isStale(root);
  const place = await setUp(root, stale ? ['.', 'web'] : ['.']);
  try {
    if (stale) await build(place);
    return await runScript(root, place, 'src/main.ts', process.argv.slice(2), {
      flags: service_flags,
      more_env: service_env,
    });
  } finally {
    place.leave();
  }
});

/** The API is there without its dashboard, so a build that fails is told and no more. */
async function build(place) {
  console.error('Building the dashboard …');
  const code = await buildWeb(root, (script, words) => runScript(root, place, script, words, { cwd: root }));
  if (code !== 0) console.error('The dashboard could not be built (see above); the service runs without it.');
}
