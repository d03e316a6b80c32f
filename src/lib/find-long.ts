import { LongInteger } from './long-integers.ts';
import { showValue } from './show-value.ts';

/** The first LongInteger of a JSON value, and what to tell whom it came from. `path`: a step each, as `.input` or `[2]`. */
export type FoundLong = { path: readonly string[]; at: string; message: string };

/** For what would round them: another number than was asked for. Undefined if there is none. */
export function findLong(value: unknown): FoundLong | undefined {
  const found = longIn(value);
  if (!found) return undefined;
  const { path, long } = found;
  const at = path.join('').replace(/^\./, '').slice(0, 200);
  const message = `${at} must be within ±${Number.MAX_SAFE_INTEGER}, or a text: ${showValue(long)} would be rounded.`;
  return { path, at, message };
}

function longIn(value: unknown): { path: string[]; long: LongInteger } | undefined {
  if (value instanceof LongInteger) return { path: [], long: value };
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, each] of Object.entries(value)) {
    const found = longIn(each);
    if (found) return { ...found, path: [Array.isArray(value) ? `[${key}]` : `.${key}`, ...found.path] };
  }
  return undefined;
}
