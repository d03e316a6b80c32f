/** An object of JSON whose members are not checked yet. */
export type Fields = Record<string, unknown>;

/** Returns the value of a JSON text; undefined if it is none. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the members of an object; none of anything else. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
