const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const open_bracket = 0x5b;
const close_bracket = 0x5d;
const open_brace = 0x7b;
const close_brace = 0x7d;

const model_key = Buffer.from('"model"');

/**
 * The bytes of a JSON object with another value of its own member `model`, and not a byte else changed; an
 * object without one gets it in front. `bytes` must be valid JSON.
 */
export function withModel(bytes: Buffer, model: string): Buffer {
  return edited(bytes, modelEdit(bytes, model));
}

/** Bytes to be put in place of those between two places. */
export type Edit = { from: number; to: number; value: Buffer };

export function edited(bytes: Buffer, { from, to, value }: Edit): Buffer {
  const result = Buffer.allocUnsafe(bytes.length - (to - from) + value.length);
  bytes.copy(result, 0, 0, from);
  value.copy(result, from);
  bytes.copy(result, from + value.length, to);
  return result;
}

let last = { model: '', json: Buffer.alloc(0) };

/** The name as JSON. A stream asks for the same one thousands of times. */
function jsonOf(model: string): Buffer {
  if (last.model !== model) last = { model, json: Buffer.from(JSON.stringify(model)) };
  return last.json;
}

/** What `withModel` changes. */
export function modelEdit(bytes: Buffer, model: string): Edit {
  const place = modelValue(bytes, 1);
  if (place) return { from: place.from, to: place.to, value: jsonOf(model) };
  const start = bytes.indexOf(open_brace) + 1;
  const comma = bytes[skipSpace(bytes, start)] === close_brace ? '' : ',';
  return { from: start, to: start, value: Buffer.from(`"model":${JSON.stringify(model)}${comma}`) };
}

/** The same for a `model` one level further down; undefined if there is none. */
export function innerModelEdit(bytes: Buffer, model: string): Edit | undefined {
  const place = modelValue(bytes, 2);
  return place && { from: place.from, to: place.to, value: jsonOf(model) };
}

/** Where the value of the first `model` at this depth stands, if it is a string or a word. */
function modelValue(bytes: Buffer, wanted_depth: number): { from: number; to: number } | undefined {
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) {
      const end = endOfString(bytes, at);
      const is_key =
        depth === wanted_depth &&
        end - at === model_key.length &&
        bytes.compare(model_key, 0, model_key.length, at, end) === 0;
      const after = is_key ? skipSpace(bytes, end) : end;
      if (is_key && bytes[after] === colon) {
        const from = skipSpace(bytes, after + 1);
        return { from, to: endOfScalar(bytes, from) };
      }
      at = end - 1;
    } else if (byte === open_brace || byte === open_bracket) {
      depth += 1;
    } else if (byte === close_brace || byte === close_bracket) {
      depth -= 1;
    }
  }
  return undefined;
}

/** The place after the closing quote of the string that starts at `start`. */
function endOfString(bytes: Buffer, start: number): number {
  let end = bytes.indexOf(quote, start + 1);
  while (end !== -1 && isEscaped(bytes, end)) end = bytes.indexOf(quote, end + 1);
  return end === -1 ? bytes.length : end + 1;
}

function isEscaped(bytes: Buffer, at: number): boolean {
  let backslashes = 0;
  while (bytes[at - 1 - backslashes] === backslash) backslashes += 1;
  return backslashes % 2 === 1;
}

function endOfScalar(bytes: Buffer, from: number): number {
  if (bytes[from] === quote) return endOfString(bytes, from);
  let to = from;
  while (to < bytes.length && /[\w.+-]/.test(String.fromCharCode(bytes[to] ?? 0))) to += 1;
  return to;
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}
