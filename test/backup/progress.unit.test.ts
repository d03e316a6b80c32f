import { expect, it } from 'vitest';
import { openProgress } from '../../src/backup/progress.ts';

function linesOf(is_terminal: boolean, at_ms: readonly number[]): string[] {
  const lines: string[] = [];
  let now_ms = 0;
  const progress = openProgress(
    (line) => lines.push(`${now_ms}: ${line}`),
    is_terminal,
    () => now_ms,
  );
  progress.say('public.tasks');
  for (const each of at_ms) {
    now_ms = each;
    progress.add(1_500_000);
  }
  return lines;
}

it('the progress report is silent for work that ends within a second', () => {
  expect(linesOf(false, [100, 500, 999])).toEqual([]);
});

it('the progress report comes every second on a terminal and every ten in a log', () => {
  const at_ms = [1_000, 1_500, 2_000, 11_000];
  expect(linesOf(true, at_ms)).toEqual([
    '1000: public.tasks, 1.5 MB',
    '2000: public.tasks, 4.5 MB',
    '11000: public.tasks, 6.0 MB',
  ]);
  expect(linesOf(false, at_ms)).toEqual(['1000: public.tasks, 1.5 MB', '11000: public.tasks, 6.0 MB']);
});
