import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { CatalogFile } from './schema.ts';

let content: CatalogFile | undefined;

/** The built-in catalogue: the sandbox provider and its models, read once. */
export function builtinCatalog(): CatalogFile {
  content ??= readBuiltin();
  return content;
}

/** The tests check it: at every start and in every command it would take a tenth of a second. */
function readBuiltin(): CatalogFile {
  const read: CatalogFile = parse(readFileSync(new URL('./builtin.yaml', import.meta.url), 'utf8'));
  return read;
}
