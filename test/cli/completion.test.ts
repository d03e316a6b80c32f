import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addCommands } from '../../src/cli/commands.ts';
import { Person } from './caller.ts';

let person: Person;
const scripts: Record<string, string> = {};

beforeAll(async () => {
  person = new Person();
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, out, error } = await person.run(['completion', shell]);
    if (code !== 0 || error !== '') throw new Error(error);
    scripts[shell] = out;
    writeFileSync(join(person.folder, shell), out);
  }
}, 300_000);

afterAll(() => person.remove());

/** The words that bash offers at the end of a line, by the function that it calls itself. */
function offered(line: string): string[] {
  const program = `source "$1"; shift
    complete -p medley >&2
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _medley; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const words = line.split(' ');
  const out = execFileSync('bash', ['-euc', program, 'bash', join(person.folder, 'bash'), ...words], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return out.split('\n').filter((word) => word !== '');
}

it('bash offers every command, and below each its own', async () => {
  const program = new Command();
  await addCommands(program);
  const names = program.commands.flatMap((command) => [command.name(), ...command.aliases()]);
  expect(offered('medley ').toSorted()).toEqual(names.toSorted());
  for (const command of program.commands.filter((each) => each.name() !== 'completion'))
    expect(offered(`medley ${command.name()} `)).toEqual(command.commands.map((child) => child.name()));
});

it.each([
  ['medley acc', ['account']],
  ['medley tasks s', ['show', 'save']],
  ['medley --url x tasks ca', ['cancel']],
  ['medley calls --si', ['--since']],
  ['medley run --idem', ['--idempotency-key']],
  ['medley run model prompt --no-', ['--no-wait', '--no-show']],
  ['medley account create --cur', ['--currency']],
  ['medley completion ', ['bash', 'zsh', 'fish']],
  ['medley nothing x', []],
  ['medley run -o ', []], // readline completes files
  ['medley run -o --', []],
])('bash completes "%s" by %j', (line, words) => {
  expect(offered(line)).toEqual(words);
});

it('the scripts for zsh and fish have every command, and those shells, where they are installed, read them', () => {
  for (const shell of ['zsh', 'fish']) {
    for (const word of ['account', 'whoami', 'idempotency-key', 'completion']) expect(scripts[shell]).toContain(word);
    const { error, status, stderr } = spawnSync(shell, ['-n', join(person.folder, shell)], { encoding: 'utf8' });
    expect(error === undefined ? [status, stderr] : [0, '']).toEqual([0, '']);
  }
});

it('another shell is named', async () => {
  expect(await person.run(['completion', 'tcsh'])).toMatchObject({ code: 2, error: expect.stringContaining('fish') });
});
