import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { programmeFor } from './programme.ts';

let folder: string;

beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'medley-drivers-'))));
afterEach(async () => await rm(folder, { recursive: true, force: true }));

/** An agent that never ends, with a child that never ends; it writes the ids of both. */
const endless = `
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
const child = spawn('sleep', ['300']);
writeFileSync(process.env.HOME + '/pids', process.pid + ' ' + child.pid + ' ');
setInterval(() => {}, 1_000);
`;

test('no agent, and no child of one, outlives a driver that is killed', { timeout: 60_000 }, async () => {
  for (const name of ['agents.mjs', 'programme.mjs', 'results_mcp.mjs']) {
    copyFileSync(join(import.meta.dirname, 'drivers', name), join(folder, name));
  }
  const agent = join(folder, 'node_modules/@openai/codex/bin/codex.js');
  mkdirSync(dirname(agent), { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(agent, endless);
  const env = { PATH: process.env['PATH'], HOME: folder, PROGRAMME: programmeFor(['a/model']) };
  const driver = spawn(process.execPath, [join(folder, 'agents.mjs'), 'codex'], {
    env: { ...env, MEDLEY_URL: 'http://127.0.0.1:9', MEDLEY_KEY: 'key' },
    stdio: 'ignore',
  });
  const pids = await vi.waitFor(() => pidsIn(join(folder, 'pids')), { timeout: 120_000, interval: 50 });
  expect(pids.filter(lives)).toEqual(pids);
  driver.kill('SIGKILL');
  await vi.waitFor(() => expect(pids.filter(lives)).toEqual([]), { timeout: 120_000, interval: 50 });
});

function pidsIn(path: string): number[] {
  if (!existsSync(path)) throw new Error('the agent does not run yet');
  const words = /^(\d+) (\d+) $/.exec(readFileSync(path, 'utf8'));
  if (!words) throw new Error('the agent has not written both ids yet');
  return words.slice(1).map(Number);
}

/** Tells whether a process runs; one that has ended and that nobody has read of does not. */
function lives(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
