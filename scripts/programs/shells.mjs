// npm run test:shells: the completion of medley in a real zsh and a real fish. They are those of the PATH, or packages of
// Debian, which are unpacked into a folder that is removed afterwards. Plain JavaScript for Node 20.
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals, runChild } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const packages = ['zsh', 'zsh-common', 'fish', 'fish-common', 'libpcre2-32-0'];

/** Runs a program to its end. Throws its last words if it fails, or is not there. */
async function run(command, args, options = {}) {
  let output = '';
  const code = await runChild(command, args, { ...options, onOutput: (chunk) => (output += chunk) });
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${output.trim().split('\n').at(-1)}`);
}

const isInstalled = (name) => (process.env.PATH ?? '').split(delimiter).some((each) => existsSync(join(each, name)));

/** Unpacks them where nothing is installed. Returns their root; '' where they are installed. */
async function findShells(folder) {
  if (['zsh', 'fish'].every(isInstalled)) return '';
  console.log('zsh or fish is not here; the packages of Debian are being downloaded…');
  await run('apt-get', ['download', ...packages], { cwd: folder });
  for (const name of readdirSync(folder)) await run('dpkg', ['-x', join(folder, name), join(folder, 'root')]);
  return join(folder, 'root');
}

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'test']);
  const folder = mkdtempSync(join(tmpdir(), 'medley-shells-'));
  try {
    const more_env = { MEDLEY_TEST_SHELLS: await findShells(folder) };
    const words = ['run', '--config', 'test/vitest.shells.config.ts'];
    return await runScript(root, place, 'test/node_modules/vitest/vitest.mjs', words, { cwd: root, more_env });
  } finally {
    place.leave();
    rmSync(folder, { recursive: true, force: true });
  }
});
