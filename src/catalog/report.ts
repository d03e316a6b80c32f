import { showPath, showProblem, type Path, type Problem } from './problem.ts';
import type { Source, Target } from './source.ts';

/** Collects what the checks of one file find. */
export type Report = {
  error(path: Path, message: string, target?: Target): void;
  warn(path: Path, message: string, target?: Target): void;
  /** Returns true if there is an error at `path` or below it. */
  hasError(path: Path): boolean;
  /** In the order of the file. */
  problems(): Problem[];
};

export function makeReport(source: Source): Report {
  const problems: Problem[] = [...source.problems];
  const error_paths: Path[] = [];
  const add = (severity: Problem['severity'], path: Path, message: string, target: Target) =>
    void problems.push({
      severity,
      file: source.file,
      ...source.place(path, target),
      path: showPath(path),
      message,
    });
  return {
    error: (path, message, target = 'value') => {
      error_paths.push(path);
      add('error', path, message, target);
    },
    warn: (path, message, target = 'value') => add('warning', path, message, target),
    hasError: (path) => error_paths.some((error_path) => path.every((step, index) => error_path[index] === step)),
    problems: () => withoutRepeats(problems).toSorted((a, b) => a.line - b.line || a.col - b.col),
  };
}

/** Prices are checked for each day on which they change. */
function withoutRepeats(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((problem) => [showProblem(problem), problem])).values()];
}
