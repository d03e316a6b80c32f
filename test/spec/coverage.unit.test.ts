import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** docs/spec-coverage.md, the tests that it names and the faults of mutants.json belong together. */

const root = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

type Row = { number: string; test: string; fault: string };
type Mutant = { row: string; test: string; find: string; replace: string };

/** The rows that have a test and a fault: four cells. */
const rows: Row[] = read('docs/spec-coverage.md')
  .split('\n')
  .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll(String.raw`\|`, '|')))
  .filter((cells) => cells.length === 6 && /^[SD][\d.a-z-]+-\d+$/.test(cells[1] ?? ''))
  .map(([, number = '', , test = '', fault = '']) => ({ number, test, fault }));

const mutants: Mutant[] = JSON.parse(read('test/spec/mutants.json'));

/** Titles of the tests, each with its file. */
const tests = readdirSync(join(root, 'test/spec'))
  .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.unit.test.ts'))
  .flatMap((name) => {
    const titles = read(`test/spec/${name}`).matchAll(/^it\(\s*(['"])((?:\\.|(?!\1).)*)\1/gm);
    return [...titles].map(([, , title = '']) => ({
      file: `test/spec/${name}`,
      title: title.replaceAll(/\\(.)/g, '$1'),
    }));
  });

const namesOf = (row: Row) => tests.filter(({ title }) => title.startsWith(`${row.number} `));

it('there are rows, and none twice', () => {
  expect(rows.length).toBeGreaterThan(250);
  expect(new Set(rows.map(({ number }) => number)).size).toBe(rows.length);
});

it('each row names the one test that begins with its number', () => {
  const shown = rows.map((row) => namesOf(row).map(({ file, title }) => nameIn(row, file, title)));
  expect(shown).toEqual(rows.map(({ test }) => [test]));
});

function nameIn(row: Row, file: string, title: string): string {
  return `\`${file.replace('test/spec/', '')}\`: ${title.slice(row.number.length + 1)}`;
}

it('each test of test/spec belongs to a row', () => {
  const numbers = new Set(rows.map(({ number }) => number));
  expect(tests.map(({ title }) => title).filter((title) => !numbers.has(title.split(' ')[0] ?? ''))).toEqual([]);
});

it('each row has one fault, of the test that it names', () => {
  expect(mutants.map(({ row }) => row)).toEqual(rows.map(({ number }) => number));
  expect(mutants.filter(({ find, replace }) => find === replace)).toEqual([]);
  for (const [i, row] of rows.entries()) {
    expect(row.fault, row.number).toMatch(/^`[\w./-]+`: ./);
    expect(namesOf(row).map(({ file }) => file)).toEqual([mutants[i]?.test]);
  }
});
