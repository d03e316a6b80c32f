import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { password_length } from '../../src/accounts/sign-in/login-rules.ts';
import { repository } from '../docs/document.ts';
import { readTree } from '../tidy/tree.ts';
import levels from './asvs-5.json' with { type: 'json' };

/** docs/security-asvs.md: its tables have all requirements of levels 1 and 2, and what they name is there. */

type Row = { number: string; level: string; state: string; detail: string };

const page = readFileSync(join(repository, 'docs/security-asvs.md'), 'utf8');
const row_form = /^\| (\d+\.\d+\.\d+) \| (\d) \| [^|]+ \| ([a-z ]+) \| (.*) \|$/gm;
const rows: Row[] = [...page.matchAll(row_form)].map(([, number = '', level = '', state = '', detail = '']) => {
  return { number, level, state, detail };
});

it('every requirement of levels 1 and 2 stands in the tables once, with its level', () => {
  const listed = rows.map(({ number, level }) => `${number} ${level}`);
  expect(listed.toSorted()).toEqual(
    Object.entries(levels)
      .map(([number, level]) => `${number} ${level}`)
      .toSorted(),
  );
});

it('what is met names a test, or a passage of a document, that is there; everything else gives a reason', () => {
  const astray = rows.filter(({ state, detail }) => {
    if (state !== 'met') return !/^not (?:met|applicable)$/.test(state) || detail.length < 10;
    const [, file = '', title = ''] = /^`(\S+)`: (.*?)(?: — .*)?$/.exec(detail) ?? [];
    return title === '' || !textOf(file).includes(title);
  });
  expect(astray).toEqual([]);
});

it('the page counts right', () => {
  const count = (state: string) => rows.filter((row) => row.state === state).length;
  const sentence = `${count('met')} are met, ${count('not applicable')} are not applicable, ${count('not met')} are not met`;
  expect(page).toContain(sentence);
});

function textOf(file: string): string {
  const folder = join(repository, file, '..');
  const is_there = readdirSync(folder).includes(file.split('/').at(-1) ?? '');
  const text = is_there ? readFileSync(join(repository, file), 'utf8') : '';
  return text === page ? page.replaceAll(row_form, '') : text; // a row is no passage
}

const dashboard = [...readTree(repository).files].filter(([path]) => path.startsWith('web/src/'));
const having = (pattern: RegExp) => dashboard.filter(([, text]) => pattern.test(text)).map(([path]) => path);

it('the dashboard writes no markup from text', () => {
  expect(dashboard.length).toBeGreaterThan(50);
  expect(having(/dangerouslySetInnerHTML|\.(?:inner|outer)HTML\b|insertAdjacentHTML|document\.write\b/)).toEqual([]);
});

it('the dashboard keeps ids, choices, conversations of the playground and times of its updates in the browser, and nothing else', () => {
  const storing = having(/(?:local|session)Storage|useLocalStorage|indexedDB|document\.cookie/);
  expect(storing.toSorted()).toEqual([
    'web/src/guide/main.ts',
    'web/src/guide/samples.ts', // the language of examples
    'web/src/pages/activity/chosen-columns.ts',
    'web/src/pages/home/FirstSteps.tsx',
    'web/src/pages/playground/tables.ts',
    'web/src/session.tsx',
    'web/src/ui/language.ts', // the language that was chosen here
    'web/src/updated.ts',
  ]);
});

it('passwords have at least 8 characters, and may have 64 and more', () => {
  expect(password_length.min).toBeGreaterThanOrEqual(8);
  expect(password_length.max).toBeGreaterThanOrEqual(64);
});

it('password fields hide what is typed, and programs that keep passwords may fill and paste them', () => {
  const fields = dashboard.flatMap(([, text]) => text.match(/<(?:PasswordInput|TextInput)\b[^>]*assword[^>]*>/g) ?? []);
  expect(fields.length).toBeGreaterThan(3);
  expect(fields.filter((field) => !field.startsWith('<PasswordInput'))).toEqual([]);
  expect(fields.filter((field) => /autoComplete="off"|onPaste/.test(field))).toEqual([]);
});

it('session tokens have more than 128 random bits', () => {
  const library = readFileSync(join(repository, 'node_modules/better-auth/dist/db/internal-adapter.mjs'), 'utf8');
  const [, length = '0'] = /token: generateId\((\d+)\)/.exec(library) ?? [];
  expect(Number(length) * Math.log2(62)).toBeGreaterThan(128);
});
