import { isUtf8 } from 'node:buffer';
import { ApiError } from '../errors.ts';
import { findLong } from '../lib/find-long.ts';
import { isRecord } from '../lib/is-record.ts';
import { JsonShape, JsonTooComplex } from '../lib/json-shape.ts';
import { mayHaveLong, parseExactly, TooManyLongIntegers } from '../lib/long-integers.ts';

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

function checkJsonShape(bytes: Buffer): void {
  try {
    new JsonShape().add(bytes);
  } catch (error) {
    throw error instanceof JsonTooComplex ? tooComplex(error.what) : error;
  }
}

function tooComplex(what: string): ApiError {
  return new ApiError('invalid_request', `The body ${what}.`, { code: 'json_too_complex' });
}
