import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { declarationsOf } from '../../clients/typescript/src/input-types.ts';
import type { Model } from '../../clients/typescript/src/index.ts';
import { openCatalog } from '../../src/catalog/catalog.ts';
import { defaultProviders, keyName } from '../../src/catalog/default.ts';
import { isMediaKind } from '../../src/catalog/model.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { compile, installClient } from '../helpers/built-client.ts';

let service: TestApp;
let key: string;
let folder: string;
let cli: string;
const file = () => join(folder, 'medley-models.d.ts');

const model_yaml = (choices: string) => `version: 1
models:
  - id: acme/picture
    kind: image
    name: Picture
    aliases: [picture]
    input_schema:
      type: object
      required: [prompt]
      additionalProperties: false
      properties: { prompt: { type: string }, style: { enum: [${choices}] } }
    price: [{ unit: image, amount: "0.01" }]
    estimate: { image: 1 }
    routes: [{ provider: sandbox, upstream_model: image }]
`;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'medley-types-'));
  mkdirSync(join(folder, 'node_modules'));
  cli = join(installClient(join(folder, 'node_modules')), 'dist/cli.js');
  service = await startTestApp({ yaml: model_yaml('plain, bold') });
  ({ key } = await service.client());
});
beforeEach(() => rmSync(file(), { force: true }));
afterAll(async () => {
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

type Ran = { code: number | null; out: string; error: string };

/** The service is in this process, so the command must not block it. */
async function types(words: string[], env: Record<string, string> = {}): Promise<Ran> {
  const own = { PATH: process.env['PATH'], MEDLEY_URL: service.url, MEDLEY_API_KEY: key, ...env };
  const child = spawn(process.execPath, [cli, ...words], { cwd: folder, env: own, stdio: ['ignore', 'pipe', 'pipe'] });
  let [out, error] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (error += chunk.toString()));
  await once(child, 'close');
  return { code: child.exitCode, out, error };
}

const options = ['--ignoreConfig', '--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--types', ''];

function check(lines: string[]): void {
  const program = ["import { Medley } from '@medley/client';", 'const medley = new Medley();', ...lines];
  writeFileSync(join(folder, 'program.mts'), program.join('\n'));
  compile(...options, '--lib', 'es2022,dom', join(folder, 'program.mts'), file());
}

const wrong = [
  "medley.generate('sandbox/image', { prompt: 7 })",
  "medley.generate('sandbox/image', { promt: 'x', prompt: 'x' })",
  "medley.generate('sandbox/image', {})",
  "medley.generate('acme/picture', { prompt: 'x', style: 'fat' })",
  "medley.generate('picture', { prompt: 'x', style: 'fat' })",
  "medley.estimate('sandbox/video', { prompt: 'x', duration: '5' })",
  "medley.tasks.create('sandbox/edit', { prompt: 'x', images: 'https://x/' })",
];

describe('npx @medley/client types', () => {
  test('makes the compiler check the inputs of the models of the service', async () => {
    expect(await types(['types', '-o', 'medley-models.d.ts'])).toEqual({ code: 0, out: '', error: '' });
    check([
      "const { output } = await medley.generate('sandbox/image', { prompt: 'x', n: 2 }, { wait: 5 });",
      "await medley.generate('acme/picture', { prompt: 'x', style: 'bold' });",
      "await medley.generate('picture', { prompt: 'x' });",
      "await medley.estimate('sandbox/video', { prompt: 'x', duration: 5 });",
      "await medley.tasks.create('sandbox/edit', { prompt: 'x', images: ['https://x/'] });",
      "await medley.generate('another/model', { anything: output.length });",
      'await medley.generate(String(output[0]?.url), { anything: 1 });',
      ...wrong.flatMap((line) => ['// @ts-expect-error', `await ${line};`]),
    ]);
    for (const line of wrong) expect(() => check([`await ${line};`]), line).toThrow(/error TS2/);
  });

  test('without its file, no input is checked', () => {
    writeFileSync(file(), '');
    expect(() => check(wrong.map((line) => `await ${line};`))).not.toThrow();
  });

  test('makes ids of other models mistakes where that is asked for', async () => {
    expect((await types(['types', '--closed', '-o', file()])).code).toBe(0);
    check(["await medley.generate('picture', { prompt: 'x' });"]);
    expect(() => check(["await medley.generate('sandbox/imgae', { prompt: 'x' });"])).toThrow('sandbox/imgae');
  });

  test('prints what it would write, for all models or for some, always the same', async () => {
    await types(['types', '-o', file()]);
    const printed = await types(['types']);
    expect(printed.out).toBe(readFileSync(file(), 'utf8'));
    expect(printed.out).toContain(
      '/** Duration. In seconds; fractions are allowed. At least 1. At most 10. Default: 5. */',
    );
    const { out } = await types(['types', 'sandbox/video']);
    expect(out).toContain('"sandbox/video": {');
    expect(out).not.toContain('sandbox/image');
    expect(readdirSync(folder).filter((name) => name.includes('.part'))).toEqual([]);
  });

  test('writes nothing with --check, and ends with 1 when a model has changed', async () => {
    const words = ['types', '--check', '-o', file()];
    expect(await types(words)).toMatchObject({ code: 1, error: expect.stringContaining('is not as') });
    await types(['types', '-o', file()]);
    expect(await types(words)).toEqual({ code: 0, out: '', error: '' });
    writeFileSync(file(), readFileSync(file(), 'utf8').replaceAll('\n', '\r\n')); // as git may check it out
    expect((await types(words)).code).toBe(0);
    await service.configure(model_yaml('plain, bold, fat'));
    try {
      const before = readFileSync(file(), 'utf8');
      await expect.poll(async () => (await types(words)).code).toBe(1);
      expect(readFileSync(file(), 'utf8')).toBe(before);
    } finally {
      await service.configure(model_yaml('plain, bold'));
    }
  });

  test('leaves a file alone that is right already, so that nothing is built again', async () => {
    await types(['types', '-o', file()]);
    utimesSync(file(), 1_000_000, 1_000_000);
    await types(['types', '-o', file()]);
    expect(statSync(file()).mtimeMs).toBe(1_000_000_000);
  });

  test.each([[[]], [['typos']], [['types', '--outptu', 'x']], [['types', '--check']]])(
    'explains itself after %j',
    async (words) => {
      expect(await types(words)).toMatchObject({ code: 2, out: '', error: expect.stringContaining('Usage: npx') });
    },
  );

  test.each([
    ['a wrong key', ['types', '--key', 'mdl_secretsecret'], 'key'],
    ['a model that does not exist', ['types', 'no/such-model'], 'no/such-model'],
    ['no service', ['types', '--base-url', 'http://127.0.0.1:1'], 'connection'],
    ['a folder that does not exist', ['types', '-o', 'gone/models.d.ts'], 'gone/models.d.ts'],
    ['an address that is none', ['types', '--base-url', 'ftp://x'], 'base_url'],
  ])('ends with 1 and one line, and shows no key: %s', async (_name, words, part) => {
    const { code, out, error } = await types(words);
    expect([code, out, error.trim().split('\n').length]).toEqual([1, '', 1]);
    expect(error).toContain(part);
    expect(error).not.toMatch(/mdl_secretsecret/);
    expect(error).not.toContain(key);
  });

  test('shows its help', async () => {
    expect(await types(['--help'])).toMatchObject({ code: 0, out: expect.stringContaining('Usage: npx') });
  });
});

function modelOf(fields: Partial<Model>): Model {
  const schema = { type: 'object' };
  return {
    id: 'acme/x',
    aliases: [],
    object: 'model',
    type: 'model',
    created: 0,
    created_at: '',
    owned_by: '',
    display_name: 'X',
    modality: 'image',
    description: '',
    input_schema: schema,
    output_types: [],
    pricing: [],
    limits: {},
    capabilities: [],
    status: 'available',
    ...fields,
  };
}

describe('the types of inputs', () => {
  test('of every model of the default catalogue compile', async () => {
    const keys = Object.values(defaultProviders()).map(keyName);
    const secret = (reference: string) => (keys.includes(reference.replace('env:', '')) ? 'key' : undefined);
    const { current } = await openCatalog({ ...adapterFacts(adapters), secret });
    const media = [...current.models.values()].filter(({ kind }) => isMediaKind(kind));
    expect(media.length).toBeGreaterThan(30);
    const text = declarationsOf(media.map(({ id, input_schema }) => modelOf({ id, input_schema })));
    expect(text.match(/unknown/g) ?? []).toEqual([]);
    writeFileSync(file(), text);
    const uses = media.map(({ id }, index) => `type Input${index} = import('@medley/client').InputOf<'${id}'>;`);
    check(uses);
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['texts', { type: 'string' }, 'string'],
    ['numbers', { type: 'integer' }, 'number'],
    ['several types', { type: ['number', 'null'] }, 'number | null'],
    ['choices', { enum: ['a', 'b"c', 3, true, null] }, '"a" | "b\\"c" | 3 | true | null'],
    ['one value', { const: 'x' }, '"x"'],
    ['lists', { type: 'array', items: { type: 'string' } }, 'Array<string>'],
    ['alternatives', { anyOf: [{ type: 'string' }, { type: 'array', items: { enum: [1] } }] }, 'string | Array<1>'],
    ['parts', { allOf: [{ type: 'string' }, { enum: ['a', 'b'] }] }, 'string & ("a" | "b")'],
    [
      'conditions, which say nothing of the type',
      { type: 'string', anyOf: [{ minLength: 1 }, { maxLength: 0 }] },
      'string',
    ],
    ['references', { $ref: '#/$defs/a~1b' }, 'boolean'],
    ['references to nothing', { $ref: '#/$defs/gone' }, 'unknown'],
    ['references that go in circles', { $ref: '#/$defs/loop' }, 'Array<unknown>'],
    ['free objects', { type: 'object' }, 'Record<string, unknown>'],
    ['anything', {}, 'unknown'],
  ])('are %s', (_name, field, type) => {
    const $defs = { 'a/b': { type: 'boolean' }, loop: { type: 'array', items: { $ref: '#/$defs/loop' } } };
    const input_schema = {
      type: 'object',
      additionalProperties: false,
      required: ['f'],
      properties: { f: field },
      $defs,
    };
    expect(declarationsOf([modelOf({ input_schema })])).toContain(`      f: ${type};\n`);
  });

  test('of chat models are none, and the order of the service does not matter', () => {
    const [a, b, chat] = ['acme/a', 'acme/b', 'acme/chat'].map((id) => modelOf({ id, aliases: [`${id}-alias`] }));
    if (!a || !b || !chat) throw new Error('three models');
    const text = declarationsOf([b, { ...chat, modality: 'chat' }, a]);
    expect(text).toBe(declarationsOf([a, b]));
    expect(text).not.toContain('acme/chat');
    expect(text).toContain('"acme/a-alias": ModelInputs["acme/a"];');
  });

  test('of a hostile service are nothing but types', () => {
    const bad = '*/ } } process.exit(7); "`${1}`\n\r\u2028\u2029\u202e\u0000\ud800\\ // /* \' ';
    let deep: Record<string, unknown> = { type: 'string' };
    for (let level = 0; level < 500; level++) deep = { type: 'array', items: deep };
    const wide = Object.fromEntries(
      Array.from({ length: 30 }, (_, level) => [
        `d${level}`,
        { type: 'object', properties: { a: { $ref: `#/$defs/d${level + 1}` }, b: { $ref: `#/$defs/d${level + 1}` } } },
      ]),
    );
    const properties = {
      [bad]: { title: bad, description: bad, enum: [bad, [bad], { [bad]: bad }], default: bad },
      __proto__x: { type: bad },
      constructor: { type: 'object', properties: { [bad]: { const: bad } }, required: bad },
      ['__proto__']: { type: 'string' },
      deep,
      wide: { $ref: '#/$defs/d0' },
      odd: 7,
      pattern: { type: 'string', minimum: bad, anyOf: bad, allOf: [null, 7, bad] },
    };
    const input_schema = JSON.parse(
      JSON.stringify({ type: 'object', properties, required: [bad, 7], $defs: wide }),
    ) as Record<string, unknown>;
    const model = modelOf({ id: bad, aliases: [bad, `${bad}2`], display_name: bad, description: bad, input_schema });
    const text = declarationsOf([model], { closed: true });
    const { program, errors } = parseSync('models.d.ts', text);
    expect(errors).toEqual([]);
    expect(program.body.map(({ type }) => type)).toEqual(['ImportDeclaration', 'TSModuleDeclaration']);
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
    expect(text.length).toBeLessThan(1_000_000);
    writeFileSync(file(), text);
    check([]);
  });
});
