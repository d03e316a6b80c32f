import { randomUUID } from 'node:crypto';
import { isRecord } from './is-record.ts';

declare global {
  interface JSON {
    /** A number that JSON.stringify writes as `text` (ECMAScript 2026; not in TypeScript's libraries yet). */
    rawJSON(text: string): object;
  }
}

/**
 * A whole number of JSON that a double cannot hold, such as an id of 64 bits that models pass on from tool to tool.
 * JSON.stringify writes it as it came.
 */
export class LongInteger {
  readonly digits: string;

  constructor(digits: string) {
    this.digits = digits;
  }

  toJSON(): object {
    return JSON.rawJSON(this.digits);
  }

  /** The nearest double. */
  valueOf(): number {
    return Number(this.digits);
  }

  toString(): string {
    return this.digits;
  }
}

/** The fewest digits of a whole number that a double cannot hold. */
const long_digits = 16;

/** Returns false for nearly all JSON: looks at every sixteenth character where there are no digits. */
export function mayHaveLong(text: string): boolean {
  for (let at = long_digits - 1; at < text.length;) {
    let digits = 0;
    while (digits < long_digits && isDigit(text.charCodeAt(at - digits))) digits += 1;
    if (digits === long_digits) return true;
    at += long_digits - digits; // so many digits more would have to follow
  }
  return false;
}

/** More than anybody needs: each takes as much time as twenty other values, and 0.5 kB. */
const count_max = 20_000;

/** JSON with more of them than are taken. */
export class TooManyLongIntegers extends Error {
  override name = 'TooManyLongIntegers';

  constructor() {
    super(`holds more than ${count_max} whole numbers beyond ${Number.MAX_SAFE_INTEGER}`);
  }
}

/**
 * JSON.parse of an object or a list, but whole numbers in it beyond 2^53, which it rounds, become LongIntegers. Throws
 * SyntaxError, or TooManyLongIntegers.
 */
export function parseExactly(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!mayHaveLong(text)) return value;
  const marked = marking(text);
  return marked === undefined ? value : unmarked(JSON.parse(marked));
}

/** Nobody can write it: a text that was one before stays one. */
const mark = `long integer ${randomUUID()} `;

/**
 * The JSON `text` with its long integers as marked strings; undefined if it has none. To ask a reviver about every value
 * takes 1 µs each, a second for a large body.
 */
function marking(text: string): string | undefined {
  const pieces: string[] = [];
  let done = 0;
  for (let next = nextLong(text, 0); next; next = nextLong(text, done)) {
    if (pieces.length === 2 * count_max) throw new TooManyLongIntegers();
    pieces.push(text.slice(done, next.at), `"${mark}${next.digits}"`);
    done = next.at + next.digits.length;
  }
  return pieces.length === 0 ? undefined : pieces.join('') + text.slice(done);
}

/** The first long integer after `from`, which is in no string. */
function nextLong(text: string, from: number): { at: number; digits: string } | undefined {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = endOfString(text, at);
    } else if (code === minus || isDigit(code)) {
      const end = endOfNumber(text, at);
      const digits = text.slice(at, end);
      if (isLong(digits)) return { at, digits };
      at = end - 1;
    }
  }
  return undefined;
}

const quote = 0x22;
const backslash = 0x5c;
const minus = 0x2d;

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/**
 * Returns the end of the string that opens at `start`: the next quote that no \ escapes. The text is valid
 * JSON, so there is one.
 */
function endOfString(text: string, start: number): number {
  const first = text.indexOf('"', start + 1);
  if (text.charCodeAt(first - 1) !== backslash) return first;
  let end = start + 1;
  while (text.charCodeAt(end) !== quote) end += text.charCodeAt(end) === backslash ? 2 : 1;
  return end;
}

/** After the number that begins at `start`, its fraction and its exponent. */
function endOfNumber(text: string, start: number): number {
  let end = start + 1;
  while (isDigit(text.charCodeAt(end)) || '.eE+-'.includes(text.charAt(end) || ' ')) end += 1;
  return end;
}

function isLong(digits: string): boolean {
  return digits.length > 15 && /^-?\d+$/.test(digits) && !Number.isSafeInteger(Number(digits));
}

/** `value`, with a LongInteger for each marked string in it. Without recursion: answers may be nested ever so deep. */
function unmarked(value: unknown): unknown {
  const whole = [value];
  const holders: (unknown[] | Record<string, unknown>)[] = [whole];
  const take = (each: unknown): unknown => {
    if (typeof each === 'string') return each.startsWith(mark) ? new LongInteger(each.slice(mark.length)) : each;
    if (Array.isArray(each) || isRecord(each)) holders.push(each);
    return each;
  };
  for (let holder = holders.pop(); holder !== undefined; holder = holders.pop()) {
    if (Array.isArray(holder)) for (let i = 0; i < holder.length; i++) holder[i] = take(holder[i]);
    else for (const key in holder) holder[key] = take(holder[key]);
  }
  return whole[0];
}
