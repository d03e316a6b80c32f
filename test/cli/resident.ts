import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { Readable } from 'node:stream';

/** The output of a command, and its exit code. */
export type CommandResult = { code: number | null; out: string; error: string };

export type CommandCall = { words: string[]; env: NodeJS.ProcessEnv };

type Resident = { child: ChildProcess; answers: Interface; is_busy: boolean };

const program = join(import.meta.dirname, 'resident-child.ts');

let resident: Resident | undefined;

/** Runs a command in the process that ran those before it; undefined while another one is at work there. */
export function runInResident(call: CommandCall): Promise<CommandResult> | undefined {
  resident ??= start();
  return resident.is_busy ? undefined : ask(resident, call);
}

async function ask(of: Resident, call: CommandCall): Promise<CommandResult> {
  of.is_busy = true;
  const answer = once(of.answers, 'line');
  of.child.stdin?.write(`${JSON.stringify(call)}\n`);
  const [line] = await answer;
  of.is_busy = false;
  return JSON.parse(line);
}

function start(): Resident {
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'ignore', 'inherit', 'pipe'] });
  const output = child.stdio[3];
  if (!(output instanceof Readable)) throw new Error('what it says can be read');
  child.once('exit', () => (resident = undefined));
  child.unref(); // it ends with this process, whose end closes its input
  return { child, answers: createInterface({ input: output }), is_busy: false };
}
