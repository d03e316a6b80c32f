// npm run test:inspector: the official Inspector of the Model Context Protocol, by its command line, against /mcp of a
// service of its own and against medley mcp. npm installs it into a folder that is removed afterwards. Plain JavaScript
// for Node 20.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals, runChild } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const inspector = '@modelcontextprotocol/inspector@2.12.0';

/** Its own scripts would only install its parts for who develops it. */
async function install(folder) {
  console.log(`npm installs ${inspector}…`);
  const words = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'error'];
  let output = '';
  const code = await runChild('npm', [...words, inspector], { cwd: folder, onOutput: (chunk) => (output += chunk) });
  if (code !== 0) throw new Error(`npm ended with ${code}: ${output.trim().split('\n').at(-1)}`);
}

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'test']);
  const folder = mkdtempSync(join(tmpdir(), 'medley-inspector-'));
  try {
    await install(folder);
    const words = ['run', '--config', 'test/vitest.inspector.config.ts'];
    const more_env = { MEDLEY_TEST_INSPECTOR: folder };
    return await runScript(root, place, 'test/node_modules/vitest/vitest.mjs', words, { cwd: root, more_env });
  } finally {
    place.leave();
    rmSync(folder, { recursive: true, force: true });
  }
});
