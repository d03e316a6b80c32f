import { randomUUID } from 'node:crypto';
import { endOfString } from '../lib/json-shape.ts';

/**
 * Vectors of an answer one by one: two thousand of them are millions of numbers, and to read or write all of them in one
 * turn takes a second from everybody else.
 */
export type CutVectors = {
  /** The answer as JSON, with a text in the place of each vector. */
  frame: Buffer;
  /** As they stood there: JSON, a list or a text. */
  vectors: Buffer[];
};

const key = Buffer.from('"embedding"');

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const open_bracket = 0x5b;
const close_bracket = 0x5d;
const open_brace = 0x7b;

/** Nobody can write it: a text that was one before stays one. */
const mark = `vector ${randomUUID()} `;

/** Takes the values of all members `embedding` out of a JSON text, where they are lists of numbers or texts. */
export function cutVectors(bytes: Buffer): CutVectors {
  const pieces: Buffer[] = [];
  const vectors: Buffer[] = [];
  let done = 0;
  for (let at = bytes.indexOf(key); at !== -1; at = bytes.indexOf(key, Math.max(at + 1, done))) {
    const place = at > 0 && bytes[at - 1] === backslash ? undefined : vectorBehind(bytes, at + key.length);
    if (!place) continue;
    pieces.push(bytes.subarray(done, place.from), Buffer.from(JSON.stringify(`${mark}${vectors.length}`)));
    vectors.push(bytes.subarray(place.from, place.to));
    done = place.to;
  }
  if (vectors.length === 0) return { frame: bytes, vectors };
  return { frame: Buffer.concat([...pieces, bytes.subarray(done)]), vectors };
}

/** The number of the vector that stands in its place; undefined for everything else. */
export function vectorNumber(value: unknown): number | undefined {
  return typeof value === 'string' && value.startsWith(mark) ? Number(value.slice(mark.length)) : undefined;
}

/** Puts vectors, each as JSON, where others were cut out. Throws Error if `frame` has not kept their order. */
export function withVectors(frame: Buffer, vectors: readonly Buffer[]): Buffer {
  const pieces: Buffer[] = [];
  let done = 0;
  for (const [number, vector] of vectors.entries()) {
    const place = Buffer.from(JSON.stringify(`${mark}${number}`));
    const at = frame.indexOf(place, done);
    if (at === -1) throw new Error('The answer has vectors in no order.');
    pieces.push(frame.subarray(done, at), vector);
    done = at + place.length;
  }
  return Buffer.concat([...pieces, frame.subarray(done)]);
}

function vectorBehind(bytes: Buffer, key_end: number): { from: number; to: number } | undefined {
  const after_key = skipSpace(bytes, key_end);
  if (bytes[after_key] !== colon) return undefined;
  const from = skipSpace(bytes, after_key + 1);
  if (bytes[from] === quote) {
    const end = endOfString(bytes, from);
    return end < bytes.length ? { from, to: end + 1 } : undefined;
  }
  if (bytes[from] !== open_bracket) return undefined;
  const end = bytes.indexOf(close_bracket, from);
  if (end === -1) return undefined;
  const inside = bytes.subarray(from + 1, end);
  const is_plain = [quote, open_bracket, open_brace].every((byte) => !inside.includes(byte));
  return is_plain ? { from, to: end + 1 } : undefined;
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}
