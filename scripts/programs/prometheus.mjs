// npm run test:prometheus: a real Prometheus with the files of deploy/ beside the service. It is the one of
// MEDLEY_TEST_PROMETHEUS (a folder with `prometheus` and `promtool`), of the PATH, or Debian's package, which is
// unpacked into a folder that is removed afterwards. Plain JavaScript for Node 20.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals, runChild } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Runs a program to its end. Throws its last words if it fails, or is not there. */
async function run(command, args, options = {}) {
  let output = '';
  const code = await runChild(command, args, { ...options, onOutput: (chunk) => (output += chunk) });
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${output.trim().split('\n').at(-1)}`);
  return output;
}

/** The folder with the programs. */
async function findPrometheus(folder) {
  const named = process.env.MEDLEY_TEST_PROMETHEUS;
  const places = named ? [named] : (process.env.PATH ?? '').split(delimiter);
  const place = places.find((each) => existsSync(join(each, 'prometheus')) && existsSync(join(each, 'promtool')));
  if (place) return place;
  console.log('Prometheus is not here; the package of Debian is being downloaded…');
  await run('apt-get', ['download', 'prometheus'], { cwd: folder });
  const [name] = readdirSync(folder).filter((each) => each.endsWith('.deb'));
  mkdirSync(join(folder, 'unpacked'));
  await run('dpkg', ['-x', join(folder, name), join(folder, 'unpacked')]);
  return join(folder, 'unpacked', 'usr', 'bin');
}

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'test']);
  const folder = mkdtempSync(join(tmpdir(), 'medley-prometheus-'));
  try {
    const bin = await findPrometheus(folder);
    console.log(
      await run(join(bin, 'promtool'), ['check', 'config', 'prometheus.yml'], {
        cwd: join(root, 'deploy/prometheus'),
      }),
    );
    const words = ['run', '--config', 'test/vitest.prometheus.config.ts'];
    const more_env = { MEDLEY_TEST_PROMETHEUS: bin };
    return await runScript(root, place, 'test/node_modules/vitest/vitest.mjs', words, { cwd: root, more_env });
  } finally {
    place.leave();
    rmSync(folder, { recursive: true, force: true });
  }
});
