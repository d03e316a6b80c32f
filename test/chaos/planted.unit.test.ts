import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

type Bug = { name: string; changes: { file: string; find: string; replace: string }[] };

const root = join(import.meta.dirname, '../..');
const bugs = JSON.parse(readFileSync(join(import.meta.dirname, 'planted.json'), 'utf8')) as Bug[];

/** `npm run chaos -- --planted` takes minutes; that its faults still fit the sources is seen at once. */
describe('the planted bugs', () => {
  it('are at least ten', () => {
    expect(bugs.length).toBeGreaterThanOrEqual(10);
  });

  it.each(bugs)('$name: each text to replace is there exactly once', ({ changes }) => {
    const times = changes.map(({ file, find }) => readFileSync(join(root, file), 'utf8').split(find).length - 1);
    expect(times).toEqual(changes.map(() => 1));
  });

  it.each(bugs)('$name: none is in a function that a later migration replaces', ({ changes }) => {
    const in_migrations = changes.filter(({ file }) => file.startsWith('migrations/'));
    expect(in_migrations.flatMap(({ file, find }) => laterThan(file, functionAround(file, find)))).toEqual([]);
  });
});

const function_form = /^create (?:or replace )?function (\w+\([^,)]*)[^]*?^end \$\$;/gm;

/** Name and first parameter of the function in which a text stands; undefined if it is in none. */
function functionAround(file: string, find: string): string | undefined {
  const text = readFileSync(join(root, file), 'utf8');
  const at = text.indexOf(find);
  return [...text.matchAll(function_form)].find(({ index, 0: whole }) => index <= at && at < index + whole.length)?.[1];
}

/** The migrations behind this one that make the function anew. */
function laterThan(file: string, name: string | undefined): string[] {
  if (name === undefined) return [];
  return readdirSync(join(root, 'migrations'))
    .map((each) => `migrations/${each}`)
    .filter((each) => each > file)
    .filter((each) =>
      [...readFileSync(join(root, each), 'utf8').matchAll(function_form)].some((made) => made[1] === name),
    );
}
