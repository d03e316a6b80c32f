import { isUtf8 } from 'node:buffer';
import { ApiError } from '../errors.ts';
import { findLong } from '../lib/find-long.ts';
import { isRecord } from '../lib/is-record.ts';
import { mayHaveLong, parseExactly, TooManyLongIntegers } from '../lib/long-integers.ts';

const depth_max = 64;

/**
 * Everything between commas, brackets and braces counts as a value: ten million empty arrays fit in
 * 20 MB of text and take half a gigabyte when parsed; a million take about 50 MB.
 */
const values_max = 1_000_000;

/**
 * Members cost more than values, as each name that was not there before is kept: 950,000 of them took 3.8 s. A
 * conversation of two million tokens has about 50,000, in objects of fewer than ten.
 */
const members_max = 100_000;
const members_per_object_max = 10_000;

/** Names of members among them. A short string that was not there before costs ten times a number: 900,000 took 0.3 s. */
const strings_max = 300_000;

/** The longest double has 767 digits that count. The time for a number grows faster than its length. */
const number_length_max = 1_000;

/**
 * Parses a request body that must be a JSON object. Throws ApiError 400 or 422 saying what is wrong. Keys such as `__proto__`
 * become ordinary members, NUL and lone surrogates stay in strings as they are. Whole numbers that a double cannot hold
 * are refused, unless whoever reads the body `takes_long` ones: then they are LongIntegers.
 */
export function parseJsonObject(bytes: Buffer, takes_long = false): Record<string, unknown> {
  if (!isUtf8(bytes)) throw new ApiError('invalid_request', 'The body is not valid UTF-8.', { code: 'invalid_json' });
  checkJsonShape(bytes);
  const text = withoutByteOrderMark(bytes).toString('utf8');
  const value = parse(text);
  if (!isRecord(value)) {
    const kind = value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`;
    throw new ApiError('invalid_request', `The body must be a JSON object (got ${kind}).`);
  }
  if (!takes_long && mayHaveLong(text)) refuseLong(value);
  return value;
}

function parse(text: string): unknown {
  try {
    return parseExactly(text);
  } catch (error) {
    if (error instanceof TooManyLongIntegers) throw tooComplex(error.message);
    const reason = error instanceof SyntaxError ? error.message : 'it cannot be read';
    throw new ApiError('invalid_request', `The body is not valid JSON: ${reason}`, { code: 'invalid_json' });
  }
}

function refuseLong(value: unknown): void {
  const long = findLong(value);
  if (!long) return;
  const kind = long.path[0] === '.input' ? 'invalid_input' : 'invalid_request'; // as whatever does not fit the model's schema
  throw new ApiError(kind, long.message, { param: long.at });
}

/** RFC 8259 lets a parser skip a byte order mark, which some Windows tools write. */
function withoutByteOrderMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

const space = 0x20;
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const open_bracket = 0x5b;
const close_bracket = 0x5d;
const open_brace = 0x7b;
const close_brace = 0x7d;

/**
 * Looks at nesting and at the number of values and members before anything is parsed. JSON.parse takes a million nested
 * arrays, but what comes after it (validators, JSON.stringify) overflows the stack at 5,000.
 */
function checkJsonShape(bytes: Buffer): void {
  const shape = new Shape();
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte <= space) continue;
    if (byte === quote) {
      shape.addString();
      at = endOfString(bytes, at);
    } else if (isDigit(byte)) at = endOfNumber(bytes, at);
    else shape.take(byte);
  }
}

class Shape {
  #depth = 0;
  #values = 1;
  #members = 0;
  #strings = 0;
  /** Of the object at each depth. */
  readonly #members_at = new Uint32Array(depth_max + 2);

  take(byte: number): void {
    if (byte === comma) {
      this.#addValue();
    } else if (byte === colon) {
      this.#addMember();
    } else if (byte === open_bracket || byte === open_brace) {
      this.#addValue();
      this.#depth += 1;
      if (this.#depth > depth_max) throw tooComplex(`is nested deeper than ${depth_max} levels`);
      this.#members_at[this.#depth] = 0;
    } else if (byte === close_bracket || byte === close_brace) {
      this.#depth = Math.max(0, this.#depth - 1); // more of them than were opened: the parser will say so
    }
  }

  addString(): void {
    this.#strings += 1;
    if (this.#strings > strings_max) throw tooComplex(`holds more than ${strings_max} strings`);
  }

  #addValue(): void {
    this.#values += 1;
    if (this.#values > values_max) throw tooComplex(`holds more than ${values_max} values`);
  }

  #addMember(): void {
    this.#members += 1;
    const own = (this.#members_at[this.#depth] ?? 0) + 1;
    this.#members_at[this.#depth] = own;
    if (own > members_per_object_max)
      throw tooComplex(`holds an object with more than ${members_per_object_max} members`);
    if (this.#members > members_max) throw tooComplex(`holds more than ${members_max} members in all its objects`);
  }
}

function tooComplex(what: string): ApiError {
  return new ApiError('invalid_request', `The body ${what}.`, { code: 'json_too_complex' });
}

/** Where the string that opens at `start` closes: the next quote that no \ takes away. */
function endOfString(bytes: Buffer, start: number): number {
  const first = bytes.indexOf(quote, start + 1);
  if (first === -1) return bytes.length;
  if (bytes[first - 1] !== backslash) return first;
  // One by one: to look for each of millions of quotes that are escaped took 50 ns each.
  for (let at = start + 1; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === backslash) at += 1;
    else if (byte === quote) return at;
  }
  return bytes.length;
}

/** The last character of the number that begins at `start`. Throws ApiError 400 where it is too long. */
function endOfNumber(bytes: Buffer, start: number): number {
  let end = start;
  while (isInNumber(bytes[end + 1] ?? 0)) end += 1;
  if (end - start < number_length_max) return end;
  throw tooComplex(`holds a number of more than ${number_length_max} characters`);
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isInNumber(byte: number): boolean {
  return isDigit(byte) || byte === 0x2e || byte === 0x65 || byte === 0x45 || byte === 0x2b || byte === 0x2d; // .eE+-
}
