import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { builtinCatalog } from '../../src/catalog/builtin.ts';
import { readCatalogFile } from '../../src/catalog/file.ts';

it('config check finds nothing wrong in the built-in catalogue', () => {
  const text = readFileSync(new URL('../../src/catalog/builtin.yaml', import.meta.url), 'utf8');
  const surroundings = { adapters: ['sandbox'], canServe: () => true, secret: () => undefined };
  expect(readCatalogFile(text, 'builtin.yaml', surroundings)).toEqual({
    ok: true,
    content: builtinCatalog(),
    warnings: [],
  });
});
