// npm run chaos: the service as several processes, while processes, PostgreSQL, upstream and receivers are killed
// around it, and a checker that reads only the database and the journals of the others (test/chaos).
// Plain JavaScript for Node 20; the run is on the pinned Node.
//
//   npm run chaos -- [--tasks 300] [--chats 300] [--kills 12] [--nodes 3] [--outage 90] [--gap 2] [--seed 1] [--minutes 40] [--durable] [--standby] [--report FILE] [--keep]
//   npm run chaos -- --planted [--only 3]
//
// --nodes: API nodes, beside two workers. --outage: of the database, so many seconds. --gap: between two faults. --minutes: no new tasks and faults after that time. --durable: PostgreSQL waits for the disk. --standby: two servers, of which the second one takes over again and again. --keep: the folder with logs and journals stays. --planted: runs it on
// copies of the sources with one fault each (test/chaos/planted.json), which it must notice. Ends with 1 if
// a promise was broken, or a planted fault not noticed. Nothing is left running, however it ends.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readOptions } from '../options.mjs';
import { copySources, plantFault } from '../planting.mjs';
import { hasTests, pinnedNode } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const node = pinnedNode(root);

/** A fault takes 2.5 s on average; the rest is for the start, the drain and a busy machine. */
const run_ms_max = (kills) => 900_000 + kills * 20_000;

/** The default of test/chaos/main.ts. */
const planted_faults = 12;

/** The folder of the run that is under way, and its process. */
let current;

/** Runs test/chaos/main.ts of a tree in a process group of its own; resolves with its exit code and its output. */
async function runOnce(tree, words, kills, { quiet = false, keep = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'medley-chaos-'));
  const child = spawn(node, [join(tree, 'test/chaos/main.ts'), folder, ...words], {
    cwd: tree,
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  current = { child, folder };
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
    if (!quiet) process.stdout.write(chunk);
  });
  const timer = setTimeout(() => clearUp(current), run_ms_max(kills));
  const code = await new Promise((resolve) => child.on('close', (status, signal) => resolve(signal ? 2 : status)));
  clearTimeout(timer);
  clearUp(current);
  if (keep) console.log(`Logs and journals: ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
  current = undefined;
  return { code, output };
}

/** Kills what a run may have left: its group, and PostgreSQL, which has a session of its own. */
function clearUp({ child, folder }) {
  kill(-child.pid);
  const note = join(folder, 'database', 'postgres', 'data', 'postmaster.pid');
  for (const path of [note, ...notesBelow(join(folder, 'database'))]) {
    const pid = existsSync(path) ? Number(readFileSync(path, 'utf8').split('\n')[0]) : 0;
    if (pid > 0 && isOf(pid, folder)) kill(pid);
  }
}

/** A number in an old note may be another process by now. */
function isOf(pid, folder) {
  const path = `/proc/${pid}/cmdline`;
  return existsSync(path) && readFileSync(path, 'utf8').includes(folder);
}

function notesBelow(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true })
    .filter((name) => String(name).endsWith('postmaster.pid'))
    .map((name) => join(folder, String(name)));
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    return; // it has ended already
  }
}

/** Each planted bug in a copy of its own; `noticed` if the checker found something wrong. */
async function runPlanted(values) {
  const all = JSON.parse(readFileSync(join(root, 'test/chaos/planted.json'), 'utf8'));
  const chosen = all.filter((_bug, i) => values.only === undefined || Number(values.only) === i + 1);
  let missed = 0;
  for (const bug of chosen) {
    const tree = copySources(root, 'medley-planted-');
    try {
      for (const change of bug.changes) plantFault(tree, change);
      const words = ['--seed', values.seed, ...(bug.words ?? [])];
      const begun = Date.now();
      const { code, output } = await runOnce(tree, words, planted_faults, { quiet: true, keep: values.keep });
      const violations = /^VIOLATIONS: (.*) \(seed/m.exec(output)?.[1];
      const noticed = code === 1 && violations !== undefined;
      if (!noticed) missed += 1;
      console.log(
        `${noticed ? 'noticed' : 'MISSED '}  ${bug.name} (${((Date.now() - begun) / 1000).toFixed(0)} s): ${violations ?? output.slice(-1500)}`,
      );
    } finally {
      rmSync(tree, { recursive: true, force: true });
    }
  }
  console.log(`${chosen.length - missed} of ${chosen.length} planted bugs noticed`);
  return missed === 0 && chosen.length > 0 ? 0 : 1;
}

async function main() {
  if (!hasTests(root)) return 1;
  const values = readOptions({
    tasks: { type: 'string', default: '300' },
    chats: { type: 'string' },
    kills: { type: 'string', default: '12' },
    nodes: { type: 'string', default: '3' },
    outage: { type: 'string', default: '90' },
    gap: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    durable: { type: 'boolean', default: false },
    standby: { type: 'boolean', default: false },
    report: { type: 'string' },
    minutes: { type: 'string' },
    keep: { type: 'boolean', default: false },
    planted: { type: 'boolean', default: false },
    only: { type: 'string' },
  });
  if (values.planted) return runPlanted(values);
  const words = ['--tasks', values.tasks, '--faults', values.kills, '--seed', values.seed];
  words.push(
    '--chats',
    values.chats ?? values.tasks,
    '--outage',
    values.outage,
    '--gap',
    values.gap,
    '--nodes',
    values.nodes,
  );
  if (values.durable) words.push('--durable');
  if (values.standby) words.push('--standby');
  if (values.minutes !== undefined) words.push('--minutes', values.minutes);
  if (values.report !== undefined) words.push('--report', values.report);
  return (await runOnce(root, words, Number(values.kills), { keep: values.keep })).code;
}

process.on('exit', () => current && clearUp(current));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
process.exitCode = await main();
