import { ApiError } from '../errors.ts';
import { parseJsonObject } from '../http/json.ts';
import { isRecord } from '../lib/is-record.ts';
import type { BatchError } from './batches.ts';
import type { NewLine } from './lines.ts';

/** The input file of a batch: JSON lines with custom_id, method, url and body. */

export const lines_max = 50_000;

/** As of the body of a call. */
export const line_bytes_max = 32_000_000;

const errors_max = 100;
const custom_id_length_max = 512;

/** Reads the lines of a file as it comes. `take` gets them in groups. Returns how many there are, or all mistakes. */
export async function readLines(
  stream: AsyncIterable<Buffer>,
  endpoint: string,
  take: (lines: readonly NewLine[]) => Promise<void>,
): Promise<{ total: number } | { errors: BatchError[] }> {
  const reader = new LineReader(endpoint);
  for await (const chunk of stream) {
    reader.add(chunk);
    if (reader.is_over) break;
    if (reader.lines.length >= group_max) await take(reader.takeLines());
  }
  reader.end();
  if (reader.errors.length > 0) return { errors: reader.errors };
  await take(reader.takeLines());
  return { total: reader.count };
}

const group_max = 500;

class LineReader {
  readonly errors: BatchError[] = [];
  lines: NewLine[] = [];
  count = 0;
  readonly #endpoint: string;
  readonly #custom_ids = new Set<string>();
  #pieces: Buffer[] = [];
  #size_bytes = 0;
  #start_bytes = 0;
  #number = 0;

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  /** Nothing more needs to be read. */
  get is_over(): boolean {
    return this.errors.length >= errors_max || this.count > lines_max || this.#size_bytes > line_bytes_max;
  }

  takeLines(): NewLine[] {
    const { lines } = this;
    this.lines = [];
    return lines;
  }

  add(chunk: Buffer): void {
    let rest = chunk;
    while (!this.is_over) {
      const at = rest.indexOf(0x0a);
      const piece = at === -1 ? rest : rest.subarray(0, at);
      this.#pieces.push(piece);
      this.#size_bytes += piece.length;
      if (at === -1) return;
      this.#endLine(1);
      rest = rest.subarray(at + 1);
    }
  }

  end(): void {
    if (this.#size_bytes > line_bytes_max) {
      this.#number += 1;
      this.#fail('line_too_long', `The line has more than ${line_bytes_max / 1_000_000} MB.`, null);
    } else if (!this.is_over && this.#size_bytes > 0) this.#endLine(0);
    if (this.count > lines_max) this.#failWhole('too_many_lines', `The file has more than ${lines_max} lines.`);
    else if (this.count === 0 && this.errors.length === 0) this.#failWhole('empty_file', 'The file has no lines.');
  }

  #endLine(break_bytes: number): void {
    const bytes = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces);
    const [start_bytes, size_bytes] = [this.#start_bytes, this.#size_bytes];
    this.#start_bytes += size_bytes + break_bytes;
    this.#size_bytes = 0;
    this.#pieces = [];
    this.#number += 1;
    if (!bytes || bytes.toString('utf8').trim() === '') return;
    this.count += 1;
    const custom_id = this.#check(bytes);
    if (custom_id !== undefined) this.lines.push({ number: this.#number, custom_id, start_bytes, size_bytes });
  }

  /** The custom_id of a line without a mistake. */
  #check(bytes: Buffer): string | undefined {
    const line = parseLine(bytes);
    if (!line) return this.#fail('invalid_json_line', 'The line is not a JSON object.', null);
    const { custom_id, method, url, body } = line;
    if (typeof custom_id !== 'string' || custom_id === '' || custom_id.length > custom_id_length_max)
      return this.#fail(
        'invalid_custom_id',
        `custom_id must be a text of 1 to ${custom_id_length_max} characters.`,
        'custom_id',
      );
    if (custom_id.includes('\0') || !custom_id.isWellFormed())
      return this.#fail('invalid_custom_id', 'custom_id must not contain NUL or half a character.', 'custom_id');
    if (this.#custom_ids.has(custom_id))
      return this.#fail('duplicate_custom_id', 'Another line has this custom_id.', 'custom_id');
    this.#custom_ids.add(custom_id);
    if (method !== 'POST') return this.#fail('invalid_method', 'method must be "POST".', 'method');
    if (url !== this.#endpoint)
      return this.#fail('invalid_url', `url must be the endpoint of the batch, "${this.#endpoint}".`, 'url');
    if (!isRecord(body)) return this.#fail('invalid_request', 'body must be an object.', 'body');
    if (typeof body['model'] !== 'string' && !Array.isArray(body['models']))
      return this.#fail('invalid_request', 'body.model must be the id of a model.', 'body.model');
    if (body['stream'] === true) return this.#fail('invalid_request', 'A batch has no streams.', 'body.stream');
    if (body['background'] === true)
      return this.#fail('invalid_request', 'A batch is in the background already.', 'body.background');
    return custom_id;
  }

  #fail(code: string, message: string, param: string | null): undefined {
    if (this.errors.length < errors_max) this.errors.push({ code, message, param, line: this.#number });
  }

  #failWhole(code: string, message: string): void {
    this.errors.push({ code, message, param: null, line: null });
  }
}

/** A line as an object; undefined if it is none, or more than anybody reads. */
export function parseLine(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    return parseJsonObject(bytes, true);
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}
