import { isObject, type JsonObject } from '../catalog/model.ts';
import { LongInteger } from '../lib/long-integers.ts';

/** A copy of a body that is small enough to wait in memory until it is stored. */
export type Copied = null | boolean | number | string | CutText | LongInteger | Copied[] | { [name: string]: Copied };

/** Characters at the end of a cut text: they may be half of something that would have been redacted. */
const blurred = 256;

/** The beginning of a text that was too long, and how many characters were left out. */
export class CutText {
  readonly text: string;
  readonly #left_out: number;

  constructor(text: string, length: number) {
    this.text = detached(text.slice(0, length));
    this.#left_out = text.length - length;
  }

  /** Returns the text as it is stored: without its last characters, and with a note. */
  shorten(redacted: string): string {
    return `${redacted.slice(0, -blurred)} [… ${this.#left_out + blurred} more characters]`;
  }
}

/** A part of a text keeps all of it in memory; this copy does not. */
function detached(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}

/** A body with more values is not copied: each costs time. */
const values_max = 50_000;
/** A text that is cut has at least so much. */
const text_length_min = 512;

export type BodyCopy = { readonly body: Copied; readonly is_cut: boolean; readonly size: number };

/**
 * Copies a body with at most about `length_max` characters of texts: files are left out with a note, and where texts are
 * too long together, the longest are cut.
 */
export function copyBody(body: JsonObject, length_max: number): BodyCopy {
  const lengths: number[] = [];
  if (!measure(body, lengths, { left: values_max })) return { body: {}, is_cut: true, size: 0 };
  const cut_at = cutOf(lengths, length_max);
  if (cut_at === undefined) return { body: {}, is_cut: true, size: 0 };
  const state = { cut_at, is_cut: false };
  const copied = copyValue(body, state);
  return { body: copied, is_cut: state.is_cut, size: sumOf(lengths, cut_at) };
}

/** Returns the length from which texts are cut; undefined if there are too many texts. */
function cutOf(lengths: readonly number[], length_max: number): number | undefined {
  for (let length = length_max; length >= text_length_min; length = Math.floor(length * 0.8))
    if (sumOf(lengths, length) <= length_max) return length;
  return undefined;
}

function sumOf(lengths: readonly number[], cut_at: number): number {
  let sum = 0;
  for (const length of lengths) sum += Math.min(length, cut_at);
  return sum;
}

/** Collects the lengths of texts. False if there are too many values. */
function measure(value: unknown, lengths: number[], budget: { left: number }): boolean {
  if (--budget.left < 0) return false;
  if (typeof value === 'string') lengths.push(fileNote(value)?.length ?? value.length);
  else if (Array.isArray(value)) return value.every((item) => measure(item, lengths, budget));
  else if (isObject(value) && !(value instanceof LongInteger))
    return Object.entries(value).every(([name, member]) => {
      lengths.push(name.length);
      return measure(member, lengths, budget);
    });
  return true;
}

function copyValue(value: unknown, state: { cut_at: number; is_cut: boolean }): Copied {
  if (typeof value === 'string') {
    const note = fileNote(value);
    if (note !== undefined) return note;
    if (value.length <= state.cut_at) return value;
    state.is_cut = true;
    return new CutText(value, state.cut_at);
  }
  if (value instanceof LongInteger || typeof value === 'number' || typeof value === 'boolean') return value;
  if (Array.isArray(value)) return value.map((item) => copyValue(item, state));
  if (!isObject(value)) return null;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name.slice(0, state.cut_at), copyValue(member, state)]),
  );
}

const data_url = /^data:([\w.+-]{1,60}\/[\w.+-]{1,60})?[^,]{0,200};base64,/;
/** Texts of base64 that are shorter stay: they may be words. */
const base64_length_min = 1_024;
const base64 = /^[A-Za-z0-9+/_-]{1024}/;

/** Returns what stands in the place of a file; undefined for a text that is none. */
function fileNote(text: string): string | undefined {
  const [head, type = 'file'] = text.startsWith('data:') ? (data_url.exec(text.slice(0, 400)) ?? []) : [];
  if (head !== undefined) return noteOf(type, text.length - head.length);
  if (text.length < base64_length_min || !base64.test(text) || !isBase64End(text)) return undefined;
  return noteOf('file', text.length);
}

/** Words of one language without spaces are no base64: they have letters beyond A to Z, or few digits and capitals. */
function isBase64End(text: string): boolean {
  return (
    /^[A-Za-z0-9+/_=-]+$/.test(text.slice(-64)) && /\d/.test(text.slice(0, 1_024)) && /[A-Z]/.test(text.slice(0, 1_024))
  );
}

function noteOf(type: string, characters: number): string {
  return `[${type} of ${Math.floor((characters * 3) / 4)} bytes, not logged]`;
}
