import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';

/** Cores at the start: a bench may move itself to some of them. `taskset` leaves it fewer than there are. */
const cores = availableParallelism();

/** Rows, the first of them the header, as a Markdown table with columns of equal width. */
export function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  const line = (cells: string[]) =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  const [header = [], ...rest] = rows;
  return [line(header), line(widths.map((width) => '-'.repeat(width))), ...rest.map(line)].join('\n');
}

/** Writes bench/results/NAME.md: the machine, the command, the figures. */
export function writeResults(name: string, command: string, rows: string[][]): void {
  writeSections(name, command, [table(rows)]);
}

/** The same with several tables and what is to be said about them. */
export function writeSections(name: string, command: string, sections: string[]): void {
  const folder = join(import.meta.dirname, 'results');
  mkdirSync(folder, { recursive: true });
  const machine = `${cores === cpus().length ? cores : `${cores} of ${cpus().length}`} × ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}, Node ${process.version}`;
  const head = [`# ${name}`, `${new Date().toISOString().slice(0, 10)}, \`${command}\`, on ${machine}.`];
  writeFileSync(join(folder, `${name}.md`), `${[...head, ...sections].join('\n\n')}\n`);
}
