import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
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
function offered(line: string, env: NodeJS.ProcessEnv = process.env): string[] {
  const program = `source "$1"; shift
    complete -p medley >&2
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _medley; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const words = line.split(' ');
  const out = execFileSync('bash', ['-euc', program, 'bash', join(person.folder, 'bash'), ...words], {
    encoding: 'utf8',
    env,
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

/** A service that lists models, and how often it was asked. */
async function startLister(
  ids: readonly [string, string][],
): Promise<{ url: string; server: Server; requests: string[] }> {
  const requests: string[] = [];
  const data = ids.map(([id, modality]) => ({ id, modality }));
  const server = createServer(({ url = '' }, response) => {
    requests.push(url);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ object: 'list', data, has_more: false }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the server has a port');
  return { url: `http://127.0.0.1:${address.port}`, server, requests };
}

it('the models of a key are offered by kind and asked for once, also when the service is gone, but nothing that a shell would run', async () => {
  const { url, server, requests } = await startLister([
    ['acme/image', 'image'],
    ['acme/film:fast', 'video'],
    ['acme/smart', 'chat'],
    ['$(touch${IFS}owned)', 'image'],
    ['x;touch owned', 'chat'],
  ]);
  const newCaller = () => new Person({ MEDLEY_URL: url, MEDLEY_API_KEY: 'mdl_key' });
  let caller = newCaller();
  const models = (command: string) => caller.run(['completion', '--models', command]);
  // Whoever presses a key waits for two seconds: on a busy machine an answer may be later, and is asked for anew.
  const modelsAnew = async () => {
    caller.remove();
    caller = newCaller();
    requests.length = 0;
    return models('run');
  };
  await expect.poll(modelsAnew).toEqual({ code: 0, out: 'acme/image\nacme/film:fast\n', error: '' });
  expect(await models('chat')).toEqual({ code: 0, out: 'acme/smart\n', error: '' });
  expect(requests).toEqual([expect.stringMatching(/^\/v1\/models\?/)]);
  server.close();
  server.closeAllConnections();
  expect(await models('run')).toMatchObject({ out: 'acme/image\nacme/film:fast\n' });
  expect(readdirSync(caller.folder)).not.toContain('owned');
  caller.remove();
});

it('no model is offered without a key or an answer, and nothing is said about it', async () => {
  for (const env of [{}, { MEDLEY_URL: 'http://127.0.0.1:1', MEDLEY_API_KEY: 'mdl_key' }]) {
    const caller = new Person(env);
    expect(await caller.run(['completion', '--models', 'run'])).toEqual({ code: 0, out: '', error: '' });
    caller.remove();
  }
  expect(await person.run(['completion', '--models', 'account'])).toMatchObject({ code: 2 });
});

it('bash asks for models where a command takes one, with the service of the line, and leaves the rest as it was', () => {
  const program = join(person.folder, 'asks');
  const lines = ['#!/bin/sh', 'echo acme/image', 'echo acme/film:fast', 'echo "asked,$*" | tr " " ,', ''];
  writeFileSync(program, lines.join('\n'), { mode: 0o755 });
  const at = (line: string) => offered(line.replace('medley', program), { ...process.env, COMP_WORDBREAKS: ' ' });
  expect(at('medley run ac')).toEqual(['acme/image', 'acme/film:fast']);
  expect(at('medley run --input a=b --url http://x as')).toEqual(['asked,completion,--models,run,--url,http://x']);
  expect(at('medley run -q ')).toEqual(['acme/image', 'acme/film:fast', 'asked,completion,--models,run']);
  expect(at('medley --json chat --url http : //x ask')).toEqual(['asked,completion,--models,chat,--url,http://x']);
  expect(at('medley chat --model ac')).toEqual(['acme/image', 'acme/film:fast']);
  expect(at('medley run acme/image ')).toEqual([]);
  expect(at('medley run acme/film : f')).toEqual(['fast']); // readline makes words of colons
  expect(at('medley tasks ')).not.toContain('acme/image');
});
