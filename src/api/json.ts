import { isUtf8 } from 'node:buffer';
import { ApiError } from '../errors.ts';
import { findLong } from '../lib/find-long.ts';
import { mayHaveLong, parseExactly, TooManyLongIntegers } from '../lib/long-integers.ts';

const depth_max = 64;

/**
 * Everything between commas, brackets and braces counts as a value: ten million empty arrays fit in
 * 20 MB of text and take half a gigabyte when parsed; a million take about 50 MB.
 */
const values_max = 1_000_000;

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
  if (!isObject(value)) {
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
  const found = findLong(value);
  if (!found) return;
  const kind = found.path[0] === '.input' ? 'invalid_input' : 'invalid_request'; // as whatever does not fit the model's schema
  throw new ApiError(kind, found.message, { param: found.at });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** RFC 8259 lets a parser skip a byte order mark, which some Windows tools write. */
function withoutByteOrderMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const open_bracket = 0x5b;
const close_bracket = 0x5d;
const open_brace = 0x7b;
const close_brace = 0x7d;

/**
 * Looks at nesting and number of values before anything is parsed. JSON.parse takes a million nested
 * arrays, but what comes after it (validators, JSON.stringify) overflows the stack at 5,000.
 */
function checkJsonShape(bytes: Buffer): void {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) {
      at = endOfString(bytes, at);
    } else if (byte === comma) {
      values += 1;
    } else if (byte === open_bracket || byte === open_brace) {
      values += 1;
      depth += 1;
      if (depth > depth_max) throw tooComplex(`is nested deeper than ${depth_max} levels`);
    } else if (byte === close_bracket || byte === close_brace) {
      depth -= 1;
    }
  }
  if (values > values_max) throw tooComplex(`holds more than ${values_max} values`);
}

function tooComplex(what: string): ApiError {
  return new ApiError('invalid_request', `The body ${what}.`, { code: 'json_too_complex' });
}

/** Where the string that opens at `start` closes: the next quote with an even number of \ before it. */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = start; ;) {
    end = bytes.indexOf(quote, end + 1);
    if (end === -1) return bytes.length;
    let first = end;
    while (bytes[first - 1] === backslash) first -= 1;
    if ((end - first) % 2 === 0) return end;
  }
}
