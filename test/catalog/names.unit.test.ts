import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openCatalog, type Catalog } from '../../src/catalog/catalog.ts';
import { aliasesOf, modelNamed } from '../../src/catalog/names.ts';

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'medley-names-'))));
afterEach(() => rm(folder, { recursive: true }));

async function catalogOf(...models: string[]): Promise<Catalog> {
  const config_file = join(folder, 'medley.yaml');
  const lines = models.map((facts) => `  - { ${facts}, kind: chat, routes: [{ provider: p }] }\n`).join('');
  await writeFile(config_file, `version: 1\nsandbox: false\nproviders: { p: { adapter: mock } }\nmodels:\n${lines}`);
  return (await openCatalog({ adapters: ['mock'], config_file })).current;
}

it('an id is known without what stands before its last slash', async () => {
  const catalog = await catalogOf('id: openai/gpt-5', 'id: far/away/gpt-6', 'id: plain');
  expect(modelNamed(catalog, 'gpt-5', 'model').id).toBe('openai/gpt-5');
  expect(modelNamed(catalog, 'gpt-6', 'model').id).toBe('far/away/gpt-6');
  const aliases = [...catalog.models.values()].map((model) => aliasesOf(catalog, model));
  expect(aliases).toEqual([['gpt-5'], ['gpt-6'], []]);
});

it('an id goes before an alias, and an alias before the end of an id', async () => {
  const catalog = await catalogOf(
    'id: a/big, aliases: [small, gpt-4o]',
    'id: b/small',
    'id: gpt-4o',
    'id: c/hidden, hidden: true, aliases: [secret]',
  );
  expect(modelNamed(catalog, 'small', 'model').id).toBe('a/big');
  expect(modelNamed(catalog, 'gpt-4o', 'model').id).toBe('gpt-4o');
  expect(modelNamed(catalog, 'secret', 'model').id).toBe('c/hidden');
  expect(() => modelNamed(catalog, 'hidden', 'model')).toThrow('There is no model "hidden"');
  const [big] = [...catalog.models.values()];
  expect(big && aliasesOf(catalog, big)).toEqual(['small', 'big']);
  expect(catalog.warnings.map(({ path, message }) => `${path}: ${message}`)).toContain(
    'models[0].aliases[1]: gpt-4o is the id of a model, which is meant by it.',
  );
});

it('a name that may be several models is a 404 with all of them, and an alias of two models a warning', async () => {
  const catalog = await catalogOf('id: a/x', 'id: b/x', 'id: a/y, aliases: [z]', 'id: b/y, aliases: [z]');
  for (const [name, first, second] of [
    ['x', 'a/x', 'b/x'],
    ['z', 'a/y', 'b/y'],
  ] as const) {
    expect(() => modelNamed(catalog, name, 'model')).toThrow(
      expect.objectContaining({
        status: 404,
        message: `"${name}" may be ${first} or ${second}: name one of them.`,
        extras: { param: 'model', code: 'model_not_found' },
      }),
    );
  }
  expect([...catalog.models.values()].flatMap((model) => aliasesOf(catalog, model))).toEqual([]);
  expect(catalog.warnings.map(({ message }) => message)).toContain(
    'z is an alias of a/y, too: who sends it is asked which of them is meant.',
  );
});
