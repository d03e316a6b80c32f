/** A number that JSON.stringify writes as its text; browsers from before 2025 have none. */
const rawJson: unknown = Reflect.get(JSON, 'rawJSON');

/** JSON.parse, but ids of 64 bits go on as they came instead of rounded. Throws SyntaxError. */
export function parseJson(text: string): unknown {
  return JSON.parse(text, withAllDigits);
}

function withAllDigits(_: string, value: unknown, { source = '' }: { source?: string } = {}): unknown {
  const is_rounded = typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source);
  return is_rounded && typeof rawJson === 'function' ? rawJson(source) : value;
}
