import { readFileSync } from 'node:fs';
import { readCatalogFile, CatalogError } from './file.ts';
import type { CatalogFile } from './schema.ts';

let content: CatalogFile | undefined;

/** The built-in catalogue: the sandbox provider and its models, read once. */
export function builtinCatalog(): CatalogFile {
  content ??= readBuiltin();
  return content;
}

function readBuiltin(): CatalogFile {
  const text = readFileSync(new URL('./builtin.yaml', import.meta.url), 'utf8');
  const reading = readCatalogFile(text, 'built-in catalogue', {
    adapters: ['sandbox'],
    canServe: () => true,
    secret: () => undefined,
  });
  if (!reading.ok) throw new CatalogError(reading.problems);
  return reading.content;
}
