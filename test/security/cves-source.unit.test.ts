import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import lock from '../../package-lock.json' with { type: 'json' };
import package_json from '../../package.json' with { type: 'json' };
import { readConfig } from '../../src/config.ts';
import { repository } from '../docs/document.ts';
import { readTree } from '../tidy/tree.ts';

/** Faults of other programs' own code; SECURITY.md has the table. */

const sources = [...readTree(repository).files].filter(([path]) => path.startsWith('src/') && path.endsWith('.ts'));
const having = (pattern: RegExp) => sources.filter(([, text]) => pattern.test(text)).map(([path]) => path);

test('CVE-2026-40217 no code of a user is run: there is nothing that runs text', () => {
  expect(sources.length).toBeGreaterThan(100);
  expect(having(/\beval\s*\(|new Function\b|node:vm|createContext|import\([^'"./]/)).toEqual([]);
});

/** The database and the measuring of files, each with a program and words that no request or file names. */
const spawners = [
  'src/embedded-postgres/binaries.ts',
  'src/embedded-postgres/cluster.ts',
  'src/embedded-postgres/process.ts',
  'src/embedded-postgres/server.ts',
  'src/storage/confined.ts',
  'src/storage/media-processes.ts',
];

test('CVE-2026-42271 no setting and no request names a program: few places start one, none through a shell', () => {
  expect(having(/node:child_process/).toSorted()).toEqual(spawners);
  expect(having(/[{,] *exec(?:Sync)? *[,}]|shell: true/)).toEqual([]);
  expect(readFileSync(`${repository}/medley.schema.json`, 'utf8')).not.toMatch(/"(?:command|exec|script|args|env)":/);
});

test('CVE-2026-40933 what is read from a file is data: YAML makes no objects of its own kind', () => {
  expect(having(/customTags|yaml\.load\b/)).toEqual([]);
});

test('CVE-2026-41432 an empty secret is none: it is neither used nor accepted', () => {
  expect(readConfig({ MEDLEY_SECRET: '' }).secret).toBeUndefined();
  for (const secret of [' ', 'short', 'x'.repeat(15)]) {
    expect(() => readConfig({ MEDLEY_SECRET: secret })).toThrow('MEDLEY_SECRET');
  }
  const stripe = { STRIPE_SECRET_KEY: 'sk_test', STRIPE_WEBHOOK_SECRET: '' };
  expect(() => readConfig(stripe)).toThrow('STRIPE_WEBHOOK_SECRET');
});

test('LITELLM-1.82.7 packages are few, pinned, verified by their hash, and run no scripts', () => {
  const { dependencies, optionalDependencies } = package_json;
  const versions = Object.values({ ...dependencies, ...optionalDependencies });
  expect(Object.keys(dependencies).length).toBeLessThanOrEqual(25);
  expect(versions.filter((version) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
  const { '': _root, ...packages } = lock.packages;
  const unverified = Object.entries(packages).filter(([, { integrity }]) => !integrity.startsWith('sha512-'));
  expect(unverified.map(([path]) => path)).toEqual([]);
  expect(readFileSync(`${repository}/scripts/setup.mjs`, 'utf8')).toContain('--ignore-scripts');
});
