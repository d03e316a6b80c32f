/**
 * Reads a value of an address as JSON, or throws. A number that JavaScript would write in another way is none: `1.0` is a
 * version, and an id of twenty digits would lose some.
 */
export function readValue(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value === 'number' && String(value) !== text) throw new SyntaxError(text);
  return value;
}
