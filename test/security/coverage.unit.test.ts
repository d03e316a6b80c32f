import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readDocument, tableRows } from '../docs/document.ts';

/** The last table of SECURITY.md and the tests that it names belong together. */

type Named = { id: string; file: string; title: string };

const rows: Named[] = tableRows(readDocument('SECURITY.md'), 'Id').map(([id = '', , , test_cell = '']) => {
  const [file = '', ...title] = test_cell.split(': ');
  return { id, file, title: title.join(': ') };
});

const ids = /^(CVE-\d{4}-\d{4,}|GHSA(?:-\w{4}){3}|LITELLM-1\.82\.7) (.*)$/;

const tests: Named[] = readdirSync(import.meta.dirname)
  .filter((file) => file.startsWith('cves-'))
  .flatMap((file) => {
    const titles = readFileSync(`${import.meta.dirname}/${file}`, 'utf8').matchAll(/^test\(\s*(['"])(.*?)\1,/gm);
    return [...titles].map(([, , text = '']) => {
      const [, id = '', title = ''] = ids.exec(text) ?? [];
      return { id, file, title };
    });
  });

const sorted = (list: Named[]) => list.map(({ id, file, title }) => `${id} ${file} ${title}`).toSorted();

test('each row of SECURITY.md names an existing test, and each test has a row', () => {
  expect(sorted(rows)).toEqual(sorted(tests));
});

test('each weakness has one row, and each test begins with its id', () => {
  expect(rows.length).toBeGreaterThan(40);
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  expect(tests.filter(({ id }) => id === '')).toEqual([]);
});
