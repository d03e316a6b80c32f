import { LongInteger } from './long-integers.ts';
import { showValue } from './show-value.ts';

/** The first LongInteger of a JSON value, and what to tell whom it came from. `path`: a step each, as `.input` or `[2]`. */
export type LongPart = { path: readonly string[]; at: string; message: string };

/** Finds an integer that JSON.parse would round to another number. Returns undefined if there is none. */
export function findLong(value: unknown): LongPart | undefined {
  const result = longIn(value);
  if (!result) return undefined;
  const { path, long } = result;
  const at = path.join('').replace(/^\./, '').slice(0, 200);
  const message = `${at} must be within ±${Number.MAX_SAFE_INTEGER}, or a text: ${showValue(long)} would be rounded.`;
  return { path, at, message };
}

type Path = { path: string[]; long: LongInteger };

function longIn(value: unknown): Path | undefined {
  if (typeof value !== 'object' || value === null) return undefined; // most are: of a million, each call counts
  if (value instanceof LongInteger) return { path: [], long: value };
  return Array.isArray(value) ? longInList(value) : longInMembers(value);
}

function longInList(list: readonly unknown[]): Path | undefined {
  for (let index = 0; index < list.length; index++) {
    const result = longIn(list[index]);
    if (result) return { ...result, path: [`[${index}]`, ...result.path] };
  }
  return undefined;
}

function longInMembers(value: object): Path | undefined {
  for (const [key, each] of Object.entries(value)) {
    const result = longIn(each);
    if (result) return { ...result, path: [`.${key}`, ...result.path] };
  }
  return undefined;
}
