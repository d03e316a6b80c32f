import { randomFillSync } from 'node:crypto';

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'; // Crockford base32: no i, l, o, u

/** Of each prefix, since ids of several may come from several clocks: the database's, and this machine's. */
const counters = new Map<IdPrefix, { ms: number; low: number }>();

function counterOf(prefix: IdPrefix): { ms: number; low: number } {
  const existing = counters.get(prefix);
  if (existing) return existing;
  const counter = { ms: 0, low: 0 };
  counters.set(prefix, counter);
  return counter;
}

/** One call of the system's generator for 256 ids: alone it was 8 % of a request's time. */
const pool = { bytes: Buffer.alloc(16 * 256), at: 16 * 256 };

/** The bytes of the id that is being made. */
const id_bytes = Buffer.alloc(16);

function random16(): Buffer {
  if (pool.at === pool.bytes.length) {
    randomFillSync(pool.bytes);
    pool.at = 0;
  }
  pool.at += pool.bytes.copy(id_bytes, 0, pool.at, pool.at + 16);
  return id_bytes;
}

/**
 * A clock that goes back by so much was wrong before: ids follow it, since reports and lists find the rows of a time by
 * their ids. With less, the ids stay in order.
 */
const step_back_ms = 60_000;

/**
 * The 16 bytes of a UUIDv7 (RFC 9562): 48 bits of Unix milliseconds, then a 12-bit counter that
 * keeps a prefix's ids of one process in order within a millisecond, then 62 random bits.
 */
function uuid7Bytes(prefix: IdPrefix, now_ms: number): Buffer {
  const bytes = random16();
  const counter = counterOf(prefix);
  if (now_ms > counter.ms || now_ms < counter.ms - step_back_ms) {
    counter.ms = now_ms;
    counter.low = bytes.readUInt16BE(6) & 0x7ff; // leaves 2,048 steps before the next millisecond
  } else if (++counter.low > 0xfff) {
    counter.ms += 1;
    counter.low = 0;
  }
  bytes.writeUIntBE(counter.ms, 0, 6);
  bytes.writeUInt16BE(0x7000 | counter.low, 6);
  bytes[8] = 0x80 | (bytes.readUInt8(8) & 0x3f);
  return bytes;
}

/** One for all: joining 26 texts made as many strings for every id. */
const characters = Buffer.alloc(26);

/** 128 bits as 26 characters of 5 bits, the first of which has only 3. */
function base32(bytes: Buffer): string {
  let length = 0;
  let bits = 0;
  let held = 2; // two zeros before the first bit
  for (const byte of bytes) {
    bits = (bits << 8) | byte;
    held += 8;
    while (held >= 5) {
      held -= 5;
      characters[length++] = alphabet.charCodeAt((bits >> held) & 31);
      bits &= (1 << held) - 1;
    }
  }
  return characters.toString('latin1');
}

/** Prefixes of ids, by what these name. */
export const id_prefixes = [
  'task',
  'acct',
  'key',
  'project',
  'budget',
  'req',
  'chat',
  'dlv',
  'alert',
  'att',
  'user',
  'member',
  'audit',
  'file',
  'batch',
  'upload',
  'part',
  'conv',
  'prompt',
  'msg',
  'item',
  'evt',
  'whe',
  'feedback',
  'passkey',
] as const;

export type IdPrefix = (typeof id_prefixes)[number];

/** A new id such as `task_01k9…`: prefix, `_`, 26 characters; ids sort by their time of making. */
export function newId(prefix: IdPrefix, now_ms: number = Date.now()): string {
  return `${prefix}_${base32(uuid7Bytes(prefix, now_ms))}`;
}

/**
 * Returns a text that sorts before every id of `prefix` made at `at_ms` or later: ids are a primary key, times
 * mostly are not.
 */
export function firstIdSince(prefix: IdPrefix, at_ms: number): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(at_ms, 0, 6);
  return `${prefix}_${base32(bytes)}`;
}

/** Returns true if `text` has the form that `newId(prefix)` makes. Says nothing about existence. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return (
    text.length === prefix.length + 27 &&
    text.startsWith(`${prefix}_`) &&
    /^[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(text.slice(prefix.length + 1))
  );
}

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** `length` characters of base62 without modulo bias (bytes ≥ 248 = 4 × 62 are thrown away). */
export function randomBase62(length: number): string {
  let text = '';
  const bytes = Buffer.alloc(64);
  while (text.length < length) {
    for (const byte of randomFillSync(bytes)) {
      if (byte < 248 && text.length < length) text += base62.charAt(byte % 62);
    }
  }
  return text;
}

/** A non-negative whole number in base62, padded with zeros to `length` characters. */
export function toBase62(value: number, length: number): string {
  let text = '';
  for (let rest = value; rest > 0; rest = Math.floor(rest / 62)) text = base62.charAt(rest % 62) + text;
  return text.padStart(length, '0');
}
