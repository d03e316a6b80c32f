/** A position in the file: keys of mappings and indexes of lists. */
export type Path = readonly (string | number)[];

/** A mistake in the file, or something that is probably one. */
export type Problem = {
  severity: 'error' | 'warning';
  file: string;
  /** From 1; 0 for what is in no file. */
  line: number;
  /** From 1. */
  col: number;
  /** Such as `models[2].price[0].unit`. */
  path: string;
  message: string;
};

/** A catalogue file with mistakes; the message is one line per mistake. */
export class CatalogError extends Error {
  override name = 'CatalogError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(showProblem).join('\n'));
    this.problems = problems;
  }
}

/** `medley.yaml:41:9 models[2].price[0].unit: must be one of …` */
export function showProblem({ file, line, col, path, message }: Problem): string {
  return `${line === 0 ? file : `${file}:${line}:${col}`} ${path}: ${message}`;
}

/** `models[2].price[0].unit`; `file` for the file as a whole. */
export function showPath(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[\w$-]+$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text === '' ? 'file' : text;
}
