import { LongInteger } from './long-integers.ts';

/** The most that an error message repeats of a caller's value, quotes included. */
const shown_length_max = 60;

/** Characters that would not be seen, or would change what is seen around them. */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/u;

/** The type of a JSON value in the words of JSON Schema. */
export function jsonType(value: unknown): string {
  if (value === null) return 'null';
  if (value instanceof LongInteger) return 'number';
  return Array.isArray(value) ? 'array' : typeof value;
}

/**
 * A JSON value as an error message shows it: texts in quotes with everything unprintable escaped,
 * objects and arrays as JSON, never more than 60 characters.
 */
export function showValue(value: unknown): string {
  if (typeof value === 'string') return showText(value);
  if (typeof value !== 'object' || value === null) return String(value);
  return cut(pieces(JSON.stringify(value)), shown_length_max);
}

/** `text` in double quotes, as `showValue` shows it. */
export function showText(text: string): string {
  const quoted = pieces(text).map((piece) => (piece === '"' || piece === '\\' ? `\\${piece}` : piece));
  return `"${cut(quoted, shown_length_max - 2)}"`;
}

/** Characters, each as it is or escaped. Reads no more of a long text than could be shown. */
function pieces(text: string): string[] {
  return Array.from(text.slice(0, 2 * shown_length_max), (character) =>
    unprintable.test(character) ? escaped(character) : character,
  );
}

const short_escapes: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

function escaped(character: string): string {
  const units = character.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return short_escapes.get(character) ?? units.join('');
}

function cut(shown: readonly string[], length_max: number): string {
  const whole = shown.join('');
  if (whole.length <= length_max) return whole;
  let text = '';
  for (const piece of shown) {
    if (text.length + piece.length >= length_max) break;
    text += piece;
  }
  return `${text}…`;
}
