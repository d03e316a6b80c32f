import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { coveragePage, readSpecTests } from './coverage.ts';

const { numbered, others } = readSpecTests();

type Mutant = { row: string; test: string; find: string; replace: string };
const mutants: Mutant[] = JSON.parse(readFileSync(join(import.meta.dirname, 'mutants.json'), 'utf8'));

it('each test of test/spec begins with the number of a sentence, and no number stands twice', () => {
  expect(others).toEqual([]);
  expect(numbered.length).toBeGreaterThan(400);
  const numbers = numbered.map(({ number }) => number);
  expect(numbers.filter((number, i) => numbers.indexOf(number) !== i)).toEqual([]);
});

it('docs/spec-coverage.md is what the titles of the tests say', async () => {
  await expect(coveragePage(numbered)).toMatchFileSnapshot('../../docs/spec-coverage.md');
});

it('at most 150 faults are planted, each for a test that exists', () => {
  expect(mutants.length).toBeLessThanOrEqual(150);
  const files = new Map(numbered.map(({ number, file }) => [number, `test/spec/${file}`]));
  expect(mutants.filter(({ row, test }) => files.get(row) !== test)).toEqual([]);
  expect(mutants.filter(({ find, replace }) => find === replace)).toEqual([]);
});
