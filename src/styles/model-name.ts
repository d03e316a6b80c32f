import type { Json, JsonObject } from '../catalog/model.ts';
import { endOfString } from '../lib/json-shape.ts';

const quote = 0x22;
const colon = 0x3a;
const open_bracket = 0x5b;
const close_bracket = 0x5d;
const open_brace = 0x7b;
const close_brace = 0x7d;

/** Members of an answer that are ours: the public id of the model, and mostly the answer's own id. */
export type OwnMembers = { readonly [name: string]: string };

/** Words of an answer about its request: they take the place of the upstream's, but are never added. */
export type Echo = JsonObject | undefined;

/**
 * The bytes of a JSON object with other values of these members of its own, and not a byte else changed; those that
 * it has not are put in front. `bytes` must be valid JSON.
 */
export function withMembers(bytes: Buffer, members: OwnMembers, echo?: Echo): Buffer {
  return edited(bytes, memberEdits(bytes, members, echo));
}

/** Bytes to be put in place of those between two places. */
export type Edit = { from: number; to: number; value: Buffer };

/** The bytes with all edits, which are in the order of their places and do not overlap. */
export function edited(bytes: Buffer, edits: readonly Edit[]): Buffer {
  const growth = edits.reduce((sum, { from, to, value }) => sum + value.length - (to - from), 0);
  const result = Buffer.allocUnsafe(bytes.length + growth);
  let [read, written] = [0, 0];
  for (const { from, to, value } of edits) {
    written += bytes.copy(result, written, read, from);
    written += value.copy(result, written);
    read = to;
  }
  bytes.copy(result, written, read);
  return result;
}

/** The edits of `withMembers`. */
export function memberEdits(bytes: Buffer, members: OwnMembers, echo?: Echo): Edit[] {
  const edits = editsAt(bytes, 1, members, echo);
  const missing = Object.keys(members).filter((name) => !edits.some((edit) => edit.name === name));
  if (missing.length === 0) return edits;
  const start = bytes.indexOf(open_brace) + 1;
  const comma = bytes[skipSpace(bytes, start)] === close_brace ? '' : ',';
  const text = missing.map((name) => `${JSON.stringify(name)}:${JSON.stringify(members[name])}`).join(',');
  return [{ from: start, to: start, value: Buffer.from(text + comma) }, ...edits];
}

/** The same for members one level further down; those that are not there stay missing. */
export function innerMemberEdits(bytes: Buffer, members: OwnMembers, echo?: Echo): Edit[] {
  return editsAt(bytes, 2, members, echo);
}

/** The first of each member at this depth, if its value is a string or a word. */
function editsAt(bytes: Buffer, wanted_depth: number, members: OwnMembers, echo: Echo): (Edit & { name: string })[] {
  const edits: (Edit & { name: string })[] = [];
  const names = [...Object.keys(members), ...Object.keys(echo ?? {})];
  let depth = 0;
  for (let at = 0; at < bytes.length && names.length > 0; at++) {
    const byte = bytes[at];
    if (byte === quote) {
      const end = placeAfterString(bytes, at);
      const name = depth === wanted_depth ? names.find((each) => isKey(bytes, at, end, jsonOf(each))) : undefined;
      at = end - 1;
      const value = name !== undefined && scalarAfter(bytes, end);
      if (name === undefined || !value) continue;
      names.splice(names.indexOf(name), 1);
      edits.push({ name, ...value, value: jsonOf(members[name] ?? echo?.[name] ?? null) });
      at = value.to - 1;
    } else if (byte === open_brace || byte === open_bracket) {
      depth += 1;
    } else if (byte === close_brace || byte === close_bracket) {
      depth -= 1;
    }
  }
  return edits;
}

/** The string or word after a key and its colon; undefined if the key is a value, or has an object or a list. */
function scalarAfter(bytes: Buffer, key_end: number): { from: number; to: number } | undefined {
  const at = skipSpace(bytes, key_end);
  if (bytes[at] !== colon) return undefined;
  const from = skipSpace(bytes, at + 1);
  const to = endOfScalar(bytes, from);
  return to > from ? { from, to } : undefined;
}

function isKey(bytes: Buffer, from: number, to: number, key: Buffer): boolean {
  return to - from === key.length && bytes.compare(key, 0, key.length, from, to) === 0;
}

const jsons = new Map<string, Buffer>();
const jsons_max = 64;

/** A value as JSON. A stream asks for the same names thousands of times. */
function jsonOf(value: Json): Buffer {
  if (typeof value !== 'string') return Buffer.from(JSON.stringify(value));
  const cached = jsons.get(value);
  if (cached) return cached;
  const json = Buffer.from(JSON.stringify(value));
  if (jsons.size === jsons_max) jsons.clear();
  jsons.set(value, json);
  return json;
}

/** The place after the closing quote of the string that starts at `start`. */
function placeAfterString(bytes: Buffer, start: number): number {
  return Math.min(endOfString(bytes, start) + 1, bytes.length);
}

function endOfScalar(bytes: Buffer, from: number): number {
  if (bytes[from] === quote) return placeAfterString(bytes, from);
  let to = from;
  while (to < bytes.length && /[\w.+-]/.test(String.fromCharCode(bytes[to] ?? 0))) to += 1;
  return to;
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}
