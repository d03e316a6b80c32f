import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { englishFor } from '../../web/src/ui/dates.ts';

const shown = (language: string) =>
  new Intl.DateTimeFormat(englishFor(language), { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
    .format(new Date('2026-11-28T21:31:00Z'))
    .replaceAll(/\s/g, ' ');

it.each([
  ['de-DE', '28 Nov 2026, 21:31'],
  ['pl', '28 Nov 2026, 21:31'],
  ['en-GB', '28 Nov 2026, 21:31'],
  ['en-US', 'Nov 28, 2026, 9:31 PM'],
  ['ja', 'Nov 28, 2026, 21:31'],
  ['th-TH', '28 Nov 2026, 21:31'],
  ['en-US@posix', 'Nov 28, 2026, 9:31 PM'],
])('a reader of %s sees a moment in English words, in the order and by the clock of home', (language, text) => {
  expect(shown(language)).toBe(text);
});

it('no other file of the dashboard makes formats of dates, or writes numbers by the browser’s language', () => {
  const folder = join(import.meta.dirname, '../../web/src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));
  const faults = files
    .filter((file) => file !== join('ui', 'dates.ts'))
    .filter((file) =>
      /DateTimeFormat\([^)]|toLocale\w*\(\)|toLocale(Date|Time)String/.test(readFileSync(join(folder, file), 'utf8')),
    );
  expect(files.length).toBeGreaterThan(100);
  expect(faults).toEqual([]);
});
