import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import * as samples from './samples.ts';

/** The parser looks for the end of its first frame for ever. */
export const endless = samples.flac(20).subarray(0, 43);

/** A service of its own: a process that runs this script, which has `probeMedia`. */
export function startProbing(script: string): ChildProcessByStdio<null, Readable, null> {
  const module = new URL('../../src/storage/probe.ts', import.meta.url).href;
  const code = `import { openProber } from ${JSON.stringify(module)}; const { probe: probeMedia } = openProber();${script}`;
  return spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Returns the ids of the processes that this one has started and that live. */
export async function childrenOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`);
  const lists = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, 'utf8')));
  return lists.join(' ').split(' ').filter(Boolean).map(Number);
}

/** Returns what a process has used of a core, in hundredths of a second. */
export async function processorTime(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
