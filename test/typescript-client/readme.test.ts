import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeReadme } from '../docs/readme.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { compile, installClient } from '../helpers/built-client.ts';

let service: TestApp;
let folder: string;
let env: Record<string, string | undefined>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'medley-readme-'));
  mkdirSync(join(folder, 'node_modules'));
  installClient(join(folder, 'node_modules'));
  service = await startTestApp({ yaml: 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n' });
  const { key } = await service.client();
  env = { PATH: process.env['PATH'], MEDLEY_URL: service.url, MEDLEY_API_KEY: key };
});
afterAll(async () => {
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function run(command: string): Promise<string> {
  const installed = command.replace('npx @medley/client', 'node node_modules/@medley/client/dist/cli.js');
  const [program, ...args] = installed.split(' ');
  expect(program).toBe('node');
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  await once(child, 'close');
  expect(child.exitCode, printed).toBe(0);
  return printed;
}

describeReadme('clients/typescript/README.md', { folder: () => folder, run });

test('the built package compiles in a program for browsers, without the types of Node', () => {
  const program = [
    "import { Medley, type Task } from '@medley/client';",
    "const medley = new Medley({ base_url: 'https://x', api_key: 'k' });",
    "const task: Task = await medley.generate('m', {});",
    'for await (const one of medley.tasks.list()) console.log(one.cost.exact, task.output[0]?.url);',
    "const stream = medley.chat.stream({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], top_k: 1 });",
    'for await (const { choices } of stream) console.log(choices[0]?.delta.content?.length);',
    'console.log((await stream.final()).cost?.exact);',
  ];
  writeFileSync(join(folder, 'page.mts'), program.join('\n'));
  const strict = ['--strict', '--target', 'es2022', '--lib', 'es2022,dom,dom.iterable,dom.asynciterable'];
  const modules = [
    '--ignoreConfig',
    '--module',
    'nodenext',
    '--moduleResolution',
    'nodenext',
    '--types',
    '',
    '--skipLibCheck',
    'false',
  ];
  compile('--noEmit', ...strict, ...modules, join(folder, 'page.mts'));
  writeFileSync(join(folder, 'page.mts'), [...program, 'const wrong: number = task.id;'].join('\n'));
  expect(() => compile('--noEmit', ...strict, ...modules, join(folder, 'page.mts'))).toThrow('TS2322');
});
