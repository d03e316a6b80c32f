import type { FieldProblem } from '../../../../../src/dashboard/views/playground.ts';

/** What is wrong with a field, or with something in it. */
export function problemAt(problems: readonly FieldProblem[], path: string): string | undefined {
  return problems.find(({ field }) => field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`))
    ?.message;
}
