import { expect, test } from 'vitest';
import type { Disagreement } from './disagreements.ts';

/** `differences`: `PATH: OURS, not THEIRS`, or `refused, PARAM: MESSAGE`. */
export type Comparison = { name: string; differences(): string[] };

/** Every difference has its reason, and every reason a difference. */
export function testComparisons(title: string, all: readonly Comparison[], reasons: readonly Disagreement[]): void {
  const differencesOf = ({ name, differences }: Comparison) => differences().map((each) => `${name}: ${each}`);

  test.each(all)(`${title}: $name`, (comparison) => {
    const unexplained = differencesOf(comparison).filter((each) => !reasons.some(({ where }) => where.test(each)));
    expect(unexplained).toEqual([]);
  });

  test(`${title}: no reason is stated without need`, () => {
    const differences = all.flatMap(differencesOf);
    expect(reasons.filter(({ where }) => !differences.some((each) => where.test(each)))).toEqual([]);
  });
}
