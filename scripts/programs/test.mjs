// npm test: installs what is missing, then runs the checks and all tests but the nightly ones. Arguments go to vitest.
// npm run test:nightly (--nightly) runs those, too, and the usual ones with more cases each.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';
import { buildWeb } from '../web.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const vitest = 'test/node_modules/vitest/vitest.mjs';

const not_run =
  'Not run here, since they take minutes to hours: npm run test:nightly, test:s3, test:package, test:deploy, test:pgbouncer, test:prometheus, test:python, test:inspector, test:shells, mutants, chaos, fuzz, bench, screenshots.';

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'web', 'test']);
  try {
    const built = await buildWeb(root, (script, words) => runScript(root, place, script, words, { cwd: root }));
    if (built !== 0) return built;
    const checks = existsSync(join(root, 'scripts/check.mjs'))
      ? await runScript(root, place, 'scripts/check.mjs', [], { cwd: root })
      : 0;
    const files = process.argv.slice(2).filter((word) => word !== '--nightly');
    if (process.argv.includes('--nightly')) process.env.MEDLEY_TEST_DEPTH = 'nightly';
    else if (files.length === 0) console.log(not_run);
    // The checks have run the unit tests; who names files may mean one of those.
    const words = ['run', '--config', 'test/vitest.config.ts', ...(files.length > 0 ? files : ['--project', '!unit'])];
    const tests = await runScript(root, place, vitest, words, { cwd: root });
    return tests || checks;
  } finally {
    place.leave();
  }
});
