import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultProviders } from '../../src/catalog/default.ts';
import { readCatalogFile } from '../../src/catalog/file.ts';
import type { Json } from '../../src/catalog/model.ts';
import { showProblem } from '../../src/catalog/problem.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';
import { makeCertificate } from '../helpers/certificate.ts';
import { documentPaths, readDocument, repository } from './document.ts';

/** Every configuration that a document shows, as `medley config check` sees it once its keys are set. */

const own = makeCertificate('medley.example');

const surroundings = {
  ...adapterFacts(adapters),
  canServe: () => true,
  secret: secretIn,
  default_providers: defaultProviders(),
};

/** Certificates are looked into; whatever else is secret may be any text. */
function secretIn(reference: string): string {
  if (reference.endsWith('ALERTS_SECRET')) return `whsec_${Buffer.alloc(32).toString('base64')}`;
  if (reference.endsWith('.pem')) return own.cert;
  return reference.endsWith('.key') ? own.key : 'set';
}

/** `files`: the JSON files of the same document, by name. */
function problemsIn(text: string, name: string, files: ReadonlyMap<string, string> = new Map()): string[] {
  const readOptionFile = (path: string): Json => JSON.parse(files.get(path) ?? '');
  const reading = readCatalogFile(text, name, { ...surroundings, readOptionFile });
  return (reading.ok ? reading.warnings : reading.problems).map(showProblem);
}

/** Files of other programs. */
const of_others = new Set(['envoy.yaml']);

const blocks = documentPaths().flatMap((path) => {
  const all = readDocument(path).blocks;
  const files = new Map(
    all.filter(({ language }) => language === 'json').map(({ argument, text }) => [argument, text]),
  );
  return all.flatMap(({ language, text, line, argument }) =>
    (language === 'yaml' || language === 'yml') && !of_others.has(argument)
      ? [{ name: `${path}:${line}`, text, files }]
      : [],
  );
});

describe('configurations in documents', () => {
  it('are found', () => {
    expect(blocks.length).toBeGreaterThan(0);
  });

  it.each(blocks)('$name is in order', ({ name, text, files }) => {
    expect(problemsIn(text, name, files)).toEqual([]);
  });

  it('medley.example.yaml is in order', () => {
    expect(problemsIn(readFileSync(join(repository, 'medley.example.yaml'), 'utf8'), 'example')).toEqual([]);
  });
});
