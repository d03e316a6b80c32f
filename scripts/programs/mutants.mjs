// npm run mutants: plants the one-line faults of test/spec/mutants.json, one at a time, in a copy of the sources
// and expects the test of that row to fail. Plain JavaScript for Node 20; the tests run on the pinned Node.
//
//   npm run mutants -- [--only S4.1]… [--jobs 2]
//
// A fault whose text is no longer in its file exactly once is skipped with a warning: code may move.
// Ends with 1 if a fault survives, or if a test fails without one.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { readOptions } from '../options.mjs';
import { copySources, misplacement, plantFault } from '../planting.mjs';
import { hasTests, pinnedNode } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const node = pinnedNode(root);

/** A test that waits for what never comes, because of its fault, has failed after this. The proof has the same limit. */
const test_ms_max = 45_000;
/** A run that hangs is ended. The one of all tests takes a minute where nothing else runs. */
const run_ms_max = 120_000;
const proof_ms_max = 1_200_000;

const children = new Set();
let stopped = false;

/** The rows that `only` names, by their number or its beginning, each with its fault: { row, test, file, find, replace }. */
function readMutants(only) {
  const mutants = JSON.parse(readFileSync(join(root, 'test/spec/mutants.json'), 'utf8'));
  if (only === undefined) return mutants;
  const numbers = new Set(mutants.map(({ row }) => row));
  const names = (row) => only.some((name) => (numbers.has(name) ? row === name : row.startsWith(name)));
  return mutants.filter(({ row }) => names(row));
}

/** Those whose text is in its file exactly once; the others are named and left out. */
function plantable(mutants) {
  return mutants.filter((mutant) => {
    const problem = misplacement(root, mutant);
    if (problem) console.warn(`skipped: ${mutant.row}: ${problem}`);
    return problem === undefined;
  });
}

/** Resolves to the address of a PostgreSQL of this run alone, unless the environment names one. */
async function startCluster() {
  const child = spawn(node, ['test/helpers/cluster-child.ts'], { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.on('close', resolve));
  const lines = createInterface({ input: child.stdout });
  const url = await Promise.race([new Promise((resolve) => lines.once('line', resolve)), ended.then(() => undefined)]);
  if (typeof url !== 'string') throw new Error('PostgreSQL could not be started.');
  return {
    url,
    stop: () => {
      child.stdin.end();
      return ended;
    },
  };
}

/** Runs tests in `tree` and resolves to what vitest reports of each, and its output if it reports nothing. */
function runTests(tree, cluster, files, { limit_ms, pattern }) {
  const report = join(tree, 'report.json');
  rmSync(report, { force: true });
  const args = ['run', '--config', 'test/vitest.config.ts', '--project', '!unit'];
  args.push(`--testTimeout=${test_ms_max}`, '--reporter=json', `--outputFile=${report}`, ...files);
  if (pattern !== undefined) args.push('-t', pattern);
  const env = { ...process.env, MEDLEY_TEST_CLUSTER: cluster.url };
  return new Promise((resolve) => {
    const child = spawn(node, ['test/node_modules/vitest/vitest.mjs', ...args], {
      cwd: tree,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.add(child);
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    const timer = setTimeout(() => {
      output.push(`ended after ${limit_ms / 1000} s`);
      child.kill('SIGKILL');
    }, limit_ms);
    child.on('close', () => {
      clearTimeout(timer);
      children.delete(child);
      const results = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')).testResults : [];
      resolve({ tests: results.flatMap((file) => file.assertionResults), output: output.join('') });
    });
  });
}

/** `caught` if the row's own test ran and failed. */
async function plant(tree, cluster, mutant) {
  const takeOut = plantFault(tree, mutant);
  try {
    const pattern = `(^| )${mutant.row.replaceAll('.', '\\.')} `;
    const { tests } = await runTests(tree, cluster, [mutant.test], { limit_ms: run_ms_max, pattern });
    const own = tests.filter(({ title }) => title.startsWith(`${mutant.row} `));
    if (own.some(({ status }) => status === 'failed')) return 'caught';
    return own.some(({ status }) => status === 'passed') ? 'survived' : 'no test ran';
  } finally {
    takeOut();
  }
}

/** Without a fault all tests must pass, else a fault that is caught says nothing. */
async function proveTests(tree, cluster, mutants) {
  const files = [...new Set(mutants.map(({ test }) => test))];
  const rows = new Set(mutants.map(({ row }) => row));
  const { tests, output } = await runTests(tree, cluster, files, { limit_ms: proof_ms_max });
  const of_rows = tests.filter(({ title }) => rows.has(title.split(' ')[0]));
  const failed = of_rows.filter(({ status }) => status !== 'passed');
  const run = new Set(of_rows.map(({ title }) => title.split(' ')[0]));
  const missing = [...rows].filter((row) => !run.has(row));
  if (failed.length === 0 && missing.length === 0) return true;
  for (const { title, failureMessages } of failed)
    console.error(`fails without a fault: ${title}\n${failureMessages.join('\n')}`);
  if (tests.length === 0) console.error(output);
  else for (const row of missing) console.error(`has no test that ran: ${row}`);
  return false;
}

/** Each tree has one fault at a time; the trees work side by side. */
async function plantAll(trees, cluster, mutants) {
  const waiting = [...mutants];
  const results = [];
  const work = async (tree) => {
    for (let mutant = waiting.shift(); mutant && !stopped; mutant = waiting.shift()) {
      const started = Date.now();
      const result = await plant(tree, cluster, mutant);
      results.push({ ...mutant, result });
      const place = `[${String(results.length).padStart(3)}/${mutants.length}]`;
      const seconds = `${((Date.now() - started) / 1000).toFixed(1)} s`.padStart(7);
      console.log(`${place} ${result.padEnd(8)} ${seconds}  ${mutant.row.padEnd(18)} ${mutant.file}`);
    }
  };
  await Promise.all(trees.map(work));
  return results;
}

async function main() {
  if (!hasTests(root)) return 1;
  const values = readOptions({ only: { type: 'string', multiple: true }, jobs: { type: 'string', default: '2' } });
  const rows = readMutants(values.only);
  const mutants = plantable(rows);
  if (mutants.length === 0) return 1;
  const started = Date.now();
  const jobs = Math.min(Number(values.jobs), mutants.length);
  const trees = Array.from({ length: jobs }, () => copySources(root, 'medley-mutants-'));
  const cluster = await startCluster();
  try {
    if (!(await proveTests(trees[0], cluster, mutants))) return 1;
    console.log(`The tests of ${mutants.length} rows pass without a fault.`);
    const results = await plantAll(trees, cluster, mutants);
    const survived = results.filter(({ result }) => result !== 'caught');
    for (const { row, result, file } of survived) console.log(`${result}: ${row} (${file})`);
    const minutes = ((Date.now() - started) / 60_000).toFixed(1);
    const caught = results.length - survived.length;
    const skipped = rows.length - mutants.length;
    console.log(`${caught} caught, ${survived.length} survived, ${skipped} skipped (${minutes} min)`);
    return survived.length === 0 && results.length === mutants.length ? 0 : 1;
  } finally {
    await cluster.stop();
    for (const tree of trees) rmSync(tree, { recursive: true, force: true });
  }
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    stopped = true;
    for (const child of children) child.kill('SIGKILL');
  });
}
process.exitCode = await main();
