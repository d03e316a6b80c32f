/**
 * JSON as a hostile client writes it: values that JSON.stringify cannot express (members that come twice,
 * numbers without end, text that is no JSON) stand in a Raw or a Members.
 */

/** Goes into the text as it is. */
export class Raw {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** An object whose members may repeat, in order. */
export class Members {
  readonly pairs: readonly (readonly [string, unknown])[];
  constructor(pairs: readonly (readonly [string, unknown])[]) {
    this.pairs = pairs;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function writeJson(value: unknown): string {
  if (value instanceof Raw) return value.text;
  if (value instanceof Members) {
    return `{${value.pairs.map(([key, member]) => `${JSON.stringify(key)}:${writeJson(member)}`).join(',')}}`;
  }
  if (Array.isArray(value)) return `[${value.map(writeJson).join(',')}]`;
  if (isRecord(value)) return writeJson(new Members(Object.entries(value)));
  return JSON.stringify(value) ?? 'null';
}

/** The path of a value: names of members, numbers of items. */
export type Place = readonly (string | number)[];

/** Every place of `value`, itself first. */
export function placesOf(value: unknown, at: Place = []): Place[] {
  if (Array.isArray(value)) return [at, ...value.flatMap((item, index) => placesOf(item, [...at, index]))];
  if (!isRecord(value) || value instanceof Raw || value instanceof Members) return [at];
  return [at, ...Object.entries(value).flatMap(([key, member]) => placesOf(member, [...at, key]))];
}

/** `value` with what stands at `place` replaced by `change` of it; undefined removes it. */
export function changedAt(value: unknown, place: Place, change: (before: unknown) => unknown): unknown {
  const [first, ...rest] = place;
  if (first === undefined) return change(value);
  if (Array.isArray(value)) return value.map((item, index) => (index === first ? changedAt(item, rest, change) : item));
  if (!isRecord(value)) return value;
  const pairs = Object.entries(value).map(([key, member]): [string, unknown] => [
    key,
    key === first ? changedAt(member, rest, change) : member,
  ]);
  return Object.fromEntries(pairs.filter(([, member]) => member !== undefined));
}
