import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { runCommand } from '../../src/cli/program.ts';
import type { CommandCall } from './resident.ts';

/** Runs the commands that it is sent, a line each, one after the other. What one said goes to descriptor 3. */

const result = { out: '', error: '' };
process.stdout.write = (chunk: string | Uint8Array) => {
  result.out += chunk.toString();
  return true;
};
process.stderr.write = (chunk: string | Uint8Array) => {
  result.error += chunk.toString();
  return true;
};
process.setMaxListeners(0); // each command listens for the end of its process, which is usually its own

/** For a command that ends the process, too. */
function answer(code: number): void {
  writeSync(3, `${JSON.stringify({ ...result, code })}\n`);
  result.out = result.error = '';
}

let is_asked = false;
process.on('exit', (code) => {
  if (is_asked) answer(code);
});

for await (const line of createInterface({ input: process.stdin })) {
  const { words, env }: CommandCall = JSON.parse(line);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  is_asked = true;
  await runCommand(words);
  is_asked = false;
  answer(Number(process.exitCode ?? 0));
  process.exitCode = undefined;
}
