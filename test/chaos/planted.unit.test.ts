import { readFileSync } from 'node:fs';
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
});
