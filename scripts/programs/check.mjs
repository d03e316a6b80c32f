// npm run check: types, lint, format, dead code, house rules and unit tests, in a few seconds and without
// a database. Plain JavaScript for Node 20; the tools run on the pinned Node. Shows every failure, not
// only the first, and ends with 1 if there was one.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasTests, pinnedNode } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const node = pinnedNode(root);

/** Node reads the configuration itself: vite's own loader writes into node_modules, which may be another user's. */
const vitest_config = ['--config', 'test/vitest.config.ts', '--configLoader', 'native'];

/** Two at a time, longest first. */
const workers = 2;
const steps = [
  { name: 'unit', tool: 'vitest', args: ['run', ...vitest_config, '--project', 'unit'] },
  { name: 'types', tool: 'typescript', command: 'tsc', args: ['-p', '.'] },
  { name: 'types of the dashboard', tool: 'typescript', command: 'tsc', args: ['-p', 'web'] },
  { name: 'dead code', tool: 'knip', args: ['--no-progress'] },
  { name: 'lint', tool: 'oxlint', args: [] },
  { name: 'format', tool: 'oxfmt', args: ['--check'] },
];

/** The script behind a package's command; .bin holds shell scripts on some systems. */
function commandFile({ tool, command = tool }) {
  const folder = join(root, 'test', 'node_modules', tool);
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return join(folder, typeof bin === 'string' ? bin : bin[command]);
}

function run(step) {
  const started = Date.now();
  return new Promise((resolve) => {
    const child = spawn(node, [commandFile(step), ...step.args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    const end = (ok, text) => resolve({ ok, text, seconds: (Date.now() - started) / 1000 });
    child.on('error', (error) => end(false, error.message));
    child.on('close', (code) => end(code === 0, Buffer.concat(output).toString('utf8').trim()));
  });
}

function report(step, { ok, text, seconds }) {
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${step.name} (${seconds.toFixed(1)} s)`);
  if (!ok) console.log(`${text}\n`);
}

async function main() {
  if (!hasTests(root)) return 1;
  const waiting = [...steps];
  const failed = [];
  const work = async () => {
    for (let step = waiting.shift(); step; step = waiting.shift()) {
      const result = await run(step);
      report(step, result);
      if (!result.ok) failed.push(step.name);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  console.log(failed.length === 0 ? `All ${steps.length} checks passed.` : `Failed: ${failed.join(', ')}.`);
  return failed.length === 0 ? 0 : 1;
}

process.exitCode = await main();
