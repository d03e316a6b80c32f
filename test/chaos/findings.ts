import type pg from 'pg';

/** One line of the table: what was looked at, the figure, and what is wrong with it, if anything. */
export type Row = { what: string; figure: string; wrong: string[] };

/** The checker's access to the database, by statements of its own. */
export type Query = <T extends pg.QueryResultRow>(sql: string, values?: unknown[]) => Promise<T[]>;

const shown_max = 5;

/** `count` things looked at, of which the `wrong` ones are violations. */
export function row(what: string, figure: string | number, wrong: readonly string[] = []): Row {
  return { what, figure: String(figure), wrong: [...wrong] };
}

/** A row whose figure is the number of violations. */
export function none(what: string, wrong: readonly string[]): Row {
  return row(what, wrong.length, wrong);
}

export function violationsOf(rows: readonly Row[]): Row[] {
  return rows.filter(({ wrong }) => wrong.length > 0);
}

/** The rows as a table, and below it the first few violations of each. */
export function showRows(rows: readonly Row[]): string {
  const width = Math.max(...rows.map(({ what }) => what.length));
  const lines = rows.map(
    ({ what, figure, wrong }) => `${wrong.length > 0 ? 'WRONG ' : 'ok    '} ${what.padEnd(width)}  ${figure}`,
  );
  const details = violationsOf(rows).flatMap(({ what, wrong }) => [
    `\n${what}:`,
    ...wrong.slice(0, shown_max).map((text) => `  ${text}`),
    ...(wrong.length > shown_max ? [`  … and ${wrong.length - shown_max} more`] : []),
  ]);
  return [...lines, ...details].join('\n');
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

export function seconds(duration_ms: number): string {
  return `${(duration_ms / 1000).toFixed(1)} s`;
}

export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
