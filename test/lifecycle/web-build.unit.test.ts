import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { buildWeb, isStale } from '../../scripts/web.mjs';
import { temporaryFolder } from '../helpers/embedded.ts';

let root: string;

beforeEach(() => {
  root = temporaryFolder(0o755);
  mkdirSync(join(root, 'web/messages'), { recursive: true });
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Stands in for vite: it writes the page of a language, and a script with a name of its own. */
function build(fails?: string) {
  return async (_script: string, words: readonly string[]): Promise<number> => {
    const [mode = '', folder = ''] = ['--mode', '--outDir'].map((option) => words[words.indexOf(option) + 1]);
    if (mode === fails) return 3;
    mkdirSync(join(folder, 'assets'), { recursive: true });
    writeFileSync(join(folder, mode === 'production' ? 'index.html' : `index.${mode}.html`), mode);
    writeFileSync(join(folder, 'assets', `${mode}.js`), mode);
    return 0;
  };
}

const pages = () => readdirSync(join(root, 'web/dist')).filter((name) => name.endsWith('.html'));

it('the dashboard is built in English and in each language that has a catalogue', async () => {
  writeFileSync(join(root, 'web/messages/pl.po'), '');
  expect(await buildWeb(root, build())).toBe(0);
  expect(pages()).toEqual(['index.html', 'index.pl.html']);
  expect(readFileSync(join(root, 'web/dist/index.pl.html'), 'utf8')).toBe('pl');
  expect(readdirSync(join(root, 'web/dist/assets'))).toEqual(['pl.js', 'production.js']);
  expect(isStale(root)).toBe(false);
  expect(readdirSync(join(root, 'web'))).toEqual(['dist', 'messages']);
});

it('a changed catalogue makes it stale, and the page of a language without one goes with the next build', async () => {
  writeFileSync(join(root, 'web/messages/pl.po'), '');
  await buildWeb(root, build());
  writeFileSync(join(root, 'web/messages/pl.po'), 'changed');
  expect(isStale(root)).toBe(true);
  rmSync(join(root, 'web/messages/pl.po'));
  expect(await buildWeb(root, build())).toBe(0);
  expect(pages()).toEqual(['index.html']);
});

it('a language that cannot be built leaves what was served', async () => {
  expect(await buildWeb(root, build())).toBe(0);
  writeFileSync(join(root, 'web/messages/pl.po'), '');
  expect(await buildWeb(root, build('pl'))).toBe(3);
  expect(pages()).toEqual(['index.html']);
  expect(isStale(root)).toBe(true);
  expect(existsSync(join(root, `web/dist.${process.pid}`))).toBe(false);
});
