import { Readable } from 'node:stream';
import type { Answer } from '../http/endpoint.ts';
import { csvField } from './views/csv-field.ts';

export type Cell = string | number | bigint | Date | null | undefined;

/** More than a spreadsheet can hold. */
const rows_max = 1_000_000;
const chunk_length = 16_384;

/**
 * A file for spreadsheets (RFC 4180, UTF-8 with its mark, since some take it for Latin without), written while it is
 * read. `name` becomes that of the file: letters, digits and dashes.
 */
export function csvAnswer(
  name: string,
  header: readonly string[],
  rows: AsyncIterable<readonly Cell[]> | Iterable<readonly Cell[]>,
): Answer {
  return {
    status: 200,
    body: Readable.from(csvChunks(header, rows)),
    headers: {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${name}.csv"`,
    },
  };
}

/** The text of such a file, piece by piece. */
export async function* csvChunks(
  header: readonly string[],
  rows: AsyncIterable<readonly Cell[]> | Iterable<readonly Cell[]>,
): AsyncGenerator<string> {
  let chunk = `\uFEFF${line(header)}`;
  let count = 0;
  for await (const row of rows) {
    if (++count > rows_max) break;
    chunk += line(row);
    if (chunk.length < chunk_length) continue;
    yield chunk;
    chunk = '';
  }
  yield chunk;
}

function line(cells: readonly Cell[]): string {
  return `${cells.map(field).join(',')}\r\n`;
}

function field(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  return csvField(cell instanceof Date ? cell.toISOString() : String(cell));
}
