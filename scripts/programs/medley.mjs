// npm run -s medley -- COMMAND: an operator's command. Plain JavaScript: a first file with types would load Node's
// compiler for them before any cache is open, 50 ms of each command and 16 MB.
import { existsSync } from 'node:fs';
import * as node from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Node 24 runs our sources as they are. The machine's own may be 20, and in a fresh clone there is no other yet. */
const is_new_enough = Number(process.versions.node.split('.')[0]) >= 24;

if (is_new_enough && existsSync(`${root}/node_modules/commander`)) {
  // Half of a command's time is the reading of sources. In a folder of this installation: code from one that
  // others may write to would be theirs.
  node.enableCompileCache(`${root}/node_modules/.cache/medley`);
  await import('../../src/cli.ts');
} else {
  const words = process.argv.slice(2);
  const { finish, runScript, setUp } = await import('../setup.mjs');
  const { forwardSignals } = await import('../setup-process.mjs');
  forwardSignals();
  await finish(
    async () => {
      const place = await setUp(root, ['.']);
      try {
        return await runScript(root, place, 'src/cli.ts', words);
      } finally {
        place.leave();
      }
    },
    { json: words.includes('--json') },
  );
}
