import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addCommands } from '../../src/cli/commands.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { Person } from './caller.ts';

/** npm run test:shells: the completion in a real zsh and a real fish. */

const root = process.env['MEDLEY_TEST_SHELLS'] ?? '';
const medley = join(import.meta.dirname, '../../scripts/medley.mjs');

let service: TestApp;
let person: Person;

beforeAll(async () => {
  service = await startTestApp();
  const { key } = await service.client();
  person = new Person({ MEDLEY_URL: service.url, MEDLEY_API_KEY: key });
  writeFileSync(join(person.folder, 'medley'), `#!/bin/sh\nexec '${process.execPath}' '${medley}' "$@"\n`, {
    mode: 0o755,
  });
  for (const shell of ['zsh', 'fish']) {
    const { code, out, error } = await person.run(['completion', shell]);
    if (code !== 0 || error !== '') throw new Error(error);
    writeFileSync(join(person.folder, shell), out);
  }
}, 120_000);

afterAll(async () => {
  person.remove();
  await service.stop();
});

/** The path of a program in the unpacked packages, or its name, for the PATH. */
function programOf(name: string): string {
  return (
    ['usr/bin', 'bin'].map((folder) => join(root, folder, name)).find((path) => root !== '' && existsSync(path)) ?? name
  );
}

function environment(): Record<string, string> {
  return {
    ...person.env,
    HOME: person.folder,
    PATH: `${person.folder}:${process.env['PATH'] ?? ''}`,
    TERM: 'xterm',
    LD_LIBRARY_PATH: root === '' ? '' : join(root, 'usr/lib/x86_64-linux-gnu'),
    MEDLEY_TEST_SHELLS: root,
    ZSH_PROGRAM: programOf('zsh'),
  };
}

let lines = 0;

/** The words that a shell offers at the end of a line; `files` where it offers files. */
const offered: Record<string, (line: string) => Promise<string[]>> = {
  async zsh(line) {
    const env = {
      ...environment(),
      MEDLEY_SCRIPT: join(person.folder, 'zsh'),
      MEDLEY_OFFERED: join(person.folder, `offered-${++lines}`),
    };
    const words = ['-f', join(import.meta.dirname, 'capture.zsh'), line];
    const { stdout } = await promisify(execFile)(programOf('zsh'), words, { env, cwd: person.folder });
    const all = stdout.split('\n').filter(Boolean);
    expect(all.at(-1)).toBe('end');
    return [...new Set(all.slice(0, -1))];
  },
  async fish(line) {
    const words = ['--no-config', '-c', `source ${join(person.folder, 'fish')}; complete -C "$argv[1]"`, line];
    const { stdout } = await promisify(execFile)(programOf('fish'), words, { env: environment(), cwd: person.folder });
    const all = stdout
      .split('\n')
      .filter(Boolean)
      .map((each) => each.split('\t')[0] ?? '');
    return all.some((each) => each === 'medley') ? ['files'] : all;
  },
};

describe.each(Object.entries(offered))('%s', (_shell, words) => {
  it('offers every command, and below each its own', async () => {
    const program = new Command();
    await addCommands(program);
    const names = program.commands.flatMap((command) => [command.name(), ...command.aliases()]);
    expect((await words('medley ')).toSorted()).toEqual(names.toSorted());
    const account = program.commands.find((command) => command.name() === 'account');
    expect((await words('medley account ')).toSorted()).toEqual(
      account?.commands.map((each) => each.name()).toSorted(),
    );
  });

  it.each([
    ['medley acc', ['account']],
    ['medley tasks s', ['save', 'show']],
    ['medley completion ', ['bash', 'fish', 'zsh']],
    ['medley account create --cur', ['--currency']],
    ['medley run sandbox/image prompt --no-', ['--no-show', '--no-wait']],
    ['medley run sandbox/im', ['sandbox/image']],
    ['medley run --input a=b sandbox/im', ['sandbox/image']],
    ['medley chat sandbox/ch', ['sandbox/chat']],
    ['medley chat --model sandbox/ch', ['sandbox/chat']],
    ['medley run -o ', ['files']],
    ['medley run sandbox/image ', ['files']],
  ])('completes "%s" by %j', async (line, expected) => {
    expect((await words(line)).toSorted()).toEqual(expected);
  });

  it('offers no model and says nothing where the service gives no answer', async () => {
    expect(await words('medley run --url http://127.0.0.1:1 ')).toEqual([]);
  });
});
