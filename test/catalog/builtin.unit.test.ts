import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { builtinCatalog } from '../../src/catalog/builtin.ts';
import { readCatalogFile } from '../../src/catalog/file.ts';

it('the built-in catalogue has nothing that config check would tell of', () => {
  const text = readFileSync(new URL('../../src/catalog/builtin.yaml', import.meta.url), 'utf8');
  const surroundings = { adapters: ['sandbox'], canServe: () => true, secret: () => undefined };
  expect(readCatalogFile(text, 'builtin.yaml', surroundings)).toEqual({
    ok: true,
    content: builtinCatalog(),
    warnings: [],
  });
});
