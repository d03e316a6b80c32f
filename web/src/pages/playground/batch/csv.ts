import { csvField } from '../../../../../src/dashboard/views/csv-field.ts';

/** Tables as text: RFC 4180, with commas, semicolons or tabs between the fields. */

export type Table = { columns: string[]; rows: string[][] };

export const rows_max = 1_000;
export const bytes_max = 5_000_000;

/** Reads a table whose first line has the names of its columns. Throws an Error that says what is wrong. */
export function readCsv(text: string): Table {
  const plain = text.replace(/^\uFEFF/, '');
  const [columns = [], ...rows] = linesOf(plain, separatorOf(plain)).filter((fields) =>
    fields.some((field) => field !== ''),
  );
  const names = columns.map((name) => name.trim());
  if (names.length === 0) throw new Error('The file is empty. Its first line must have the names of the columns.');
  if (names.includes('')) throw new Error('A column has no name. The first line must have the names of the columns.');
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`The column “${twice}” is there twice.`);
  if (rows.length === 0) throw new Error('The file has no rows below the names of its columns.');
  if (rows.length > rows_max) throw new Error(`The file has ${rows.length} rows; at most ${rows_max} can be run.`);
  const wrong = rows.findIndex((fields) => fields.length > names.length);
  if (wrong !== -1) throw new Error(`Row ${wrong + 1} has more fields than there are columns.`);
  return { columns: names, rows: rows.map((fields) => names.map((_, index) => fields[index] ?? '')) };
}

/** The sign that comes most often in the first line, outside of quotes. */
function separatorOf(text: string): string {
  const [line = ''] = text.replaceAll(/"(?:[^"]|"")*"/g, '').split(/\r?\n/);
  const count = (sign: string) => line.split(sign).length;
  return [',', ';', '\t'].toSorted((a, b) => count(b) - count(a))[0] ?? ',';
}

function linesOf(text: string, separator: string): string[][] {
  const lines: string[][] = [];
  let line: string[] = [];
  let at = 0;
  while (at <= text.length) {
    const field = text[at] === '"' ? quotedAt(text, at) : plainAt(text, at, separator);
    line.push(field.text);
    at = field.end + 1;
    if (text[field.end] === separator) continue;
    if (text[field.end] === '\r' && text[at] === '\n') at += 1;
    lines.push(line);
    line = [];
  }
  return lines;
}

type Field = { text: string; end: number };

function plainAt(text: string, start: number, separator: string): Field {
  let end = start;
  while (end < text.length && text[end] !== separator && text[end] !== '\n' && text[end] !== '\r') end += 1;
  return { text: text.slice(start, end), end };
}

/** Inside of quotes everything is text, and two quotes are one. */
function quotedAt(text: string, start: number): Field {
  const parts: string[] = [];
  let at = start + 1;
  for (;;) {
    const end = text.indexOf('"', at);
    if (end === -1) throw new Error('A quotation mark is opened and never closed.');
    parts.push(text.slice(at, end));
    if (text[end + 1] !== '"') return { text: parts.join('"'), end: end + 1 };
    at = end + 2;
  }
}

/** Writes a file for spreadsheets, with the mark by which they know UTF-8. No cell of it is a formula. */
export function writeCsv({ columns, rows }: Table): string {
  return `\uFEFF${[columns, ...rows].map((fields) => `${fields.map(csvField).join(',')}\r\n`).join('')}`;
}
