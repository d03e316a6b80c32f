import type { FieldProblem } from '../../../../../src/dashboard/views/playground.ts';

/** `width must be at most 2048`: all of it is about the input. */
export function problemText({ message }: FieldProblem): string {
  return message.replace(/^input\./, '');
}

/** Returns the problem of a field, or of something in it. */
export function problemAt(problems: readonly FieldProblem[], path: string): string | undefined {
  const problem = problems.find(
    ({ field }) => field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`),
  );
  return problem && problemText(problem);
}
