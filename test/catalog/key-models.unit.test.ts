import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KeyRuleError } from '../../src/accounts/key-rule-error.ts';
import { listedModels } from '../../src/catalog/alias.ts';
import { openCatalog, type Catalog } from '../../src/catalog/catalog.ts';
import { checkModelAllowed, isModelAllowed, offerOfKey, readKeyModels } from '../../src/catalog/key-models.ts';

/** The models that a key may use: ids, aliases of the operator, and beginnings. */

const yaml = `
version: 1
sandbox: false
providers: { p: { adapter: mock } }
models:
  - { id: acme/small, kind: chat, aliases: [tiny], routes: [{ provider: p }] }
  - { id: acme/deep/large, kind: chat, routes: [{ provider: p }] }
  - { id: acmeplus/one, kind: chat, routes: [{ provider: p }] }
  - { id: plain, kind: chat, routes: [{ provider: p }] }
aliases:
  fast: { models: [{ model: acme/small }, { model: acmeplus/one }] }
`;

let folder: string;
let catalog: Catalog;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'medley-key-models-'));
  const config_file = join(folder, 'medley.yaml');
  await writeFile(config_file, yaml);
  catalog = (await openCatalog({ adapters: ['mock'], config_file })).current;
});
afterAll(() => rm(folder, { recursive: true }));

const all = ['acme/small', 'acme/deep/large', 'acmeplus/one', 'plain'];

it.each<[string[] | null | undefined, string[]]>([
  [null, all],
  [undefined, all],
  [['plain'], ['plain']],
  [['acme/*'], ['acme/small', 'acme/deep/large']],
  [
    ['acme/deep/*', 'plain'],
    ['acme/deep/large', 'plain'],
  ],
  [['fast'], ['acme/small', 'acmeplus/one']],
  [['gone', 'acme/smal', 'ACME/small'], []],
])('a key for %j may use these models', (list, allowed) => {
  expect(all.filter((id) => isModelAllowed(catalog, list, id))).toEqual(allowed);
});

it('a refusal names the model, the rule of the key, and the field', () => {
  const refused = () => checkModelAllowed(catalog, { models: ['acme/*'] }, { id: 'plain' }, 'models[1]');
  expect(refused).toThrow(
    expect.objectContaining({
      status: 403,
      type: 'permission_error',
      message: expect.stringMatching(/^This key may not use plain: its rule allows acme\/\*\. /),
      extras: expect.objectContaining({ code: 'model_not_allowed', param: 'models[1]' }),
    }),
  );
  const long = Array.from({ length: 11 }, (_, i) => `acme/${i}`);
  expect(() => checkModelAllowed(catalog, { models: long }, { id: 'plain' })).toThrow('acme/7 and 3 more.');
});

it('lists have what a key may use, and of an alias the models that it may use', () => {
  const shown = (models: string[] | null) =>
    listedModels(offerOfKey(catalog, { models })).map(({ model, members }) => [model.id, members.length]);
  expect(shown(['acme/*'])).toEqual([
    ['acme/small', 1],
    ['acme/deep/large', 1],
    ['fast', 1],
  ]);
  expect(shown(['plain'])).toEqual([['plain', 1]]);
  expect(shown(null)).toHaveLength(5);
});

it.each<[unknown, string[] | null]>([
  [null, null],
  [[], null],
  [
    [' acme/small ', 'acme/small', 'acme/*'],
    ['acme/small', 'acme/*'],
  ],
  [
    ['tiny', 'large'],
    ['acme/small', 'acme/deep/large'],
  ],
  [['fast'], ['fast']],
  [['acme/old'], ['acme/old']],
])('a list of %j is read with the ids that its names mean, and keeps what the key has', (value, list) => {
  expect(readKeyModels(catalog, value, ['acme/old'])).toEqual(list);
});

it.each<[unknown, string]>([
  ['acme/small', 'must be a list of at most 100 models'],
  [Array.from({ length: 101 }, () => 'plain'), 'must be a list of at most 100 models'],
  [['acme/none'], 'There is no model "acme/none"'],
  [['nobody/*'], 'not "nobody/*"'],
  [['*'], 'not "*"'],
  [['acme/s*'], 'not "acme/s*"'],
  [['acme/*/x'], 'not "acme/*/x"'],
  [[''], 'not ""'],
  [[7], 'not ""'],
])('a list of %j is refused', (value, message) => {
  expect(() => readKeyModels(catalog, value, null)).toThrow(KeyRuleError);
  expect(() => readKeyModels(catalog, value, null)).toThrow(message);
});
