import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeReadme } from '../docs/readme.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { compile } from '../helpers/built-client.ts';
import { loadProvider } from './stage.ts';

let service: TestApp;
let folder: string;
let remove: () => void;
let env: Record<string, string | undefined>;

beforeAll(async () => {
  const loaded = await loadProvider();
  folder = dirname(loaded.node_modules);
  ({ remove } = loaded);
  service = await startTestApp();
  const { key } = await service.client();
  env = { PATH: process.env['PATH'], MEDLEY_URL: service.url, MEDLEY_API_KEY: key };
});
afterAll(async () => {
  await service?.stop();
  remove?.();
});

async function run(command: string): Promise<string> {
  const [program, ...args] = command.split(' ');
  expect(program).toBe('node');
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  let mistakes = '';
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (mistakes += chunk.toString()));
  await once(child, 'close');
  expect(child.exitCode, mistakes).toBe(0);
  expect(mistakes).not.toContain('is not supported');
  return printed;
}

describeReadme('clients/ai-sdk/README.md', { folder: () => folder, run });

test('the built package compiles in a program that uses all its models, and the AI SDK takes them', () => {
  const program = [
    "import { createMedley, medley } from '@medley/ai-sdk';",
    "import { createProviderRegistry, embed, experimental_generateVideo, generateImage, generateText } from 'ai';",
    "const own = createMedley({ baseURL: 'https://x', apiKey: 'k', headers: { a: 'b' }, fetch });",
    'const registry = createProviderRegistry({ medley, own });',
    "await generateText({ model: registry.languageModel('medley:a/b'), prompt: 'x' });",
    "await generateText({ model: own('a/b'), prompt: 'x', tools: { search: medley.tools.webSearch() } });",
    "await generateImage({ model: own.image('a/b'), prompt: 'x' });",
    "await experimental_generateVideo({ model: own.video('a/b'), prompt: 'x' });",
    "await embed({ model: own.embedding('a/b'), value: 'x' });",
  ];
  const options = [
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--target',
    'es2022',
    '--module',
    'nodenext',
    '--skipLibCheck',
  ];
  const file = join(folder, 'program.mts');
  writeFileSync(file, program.join('\n'));
  compile(...options, file);
  writeFileSync(file, [...program, "const wrong: number = own.image('a/b').modelId;"].join('\n'));
  expect(() => compile(...options, file)).toThrow('TS2322');
});
