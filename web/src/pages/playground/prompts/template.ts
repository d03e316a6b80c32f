/** Texts with places for variables: `{{name}}`. */

const place = /\{\{\s*([\p{L}_][\p{L}\p{N}_.-]{0,39})\s*\}\}/gu;

export type Values = Readonly<Record<string, string>>;

/** Names of the variables in these texts, in the order in which they come, each once. */
export function variablesIn(...texts: string[]): string[] {
  const names = texts.flatMap((text) => [...text.matchAll(place)].map(([, name = '']) => name));
  return [...new Set(names)];
}

/** The text with these values in its places. What a value says is no template: a place in it stays as it is. */
export function filled(text: string, values: Values): string {
  return text.replaceAll(place, (whole, name: string) => (Object.hasOwn(values, name) ? (values[name] ?? '') : whole));
}

/** Names of variables that have no value yet. */
export function missingIn(names: readonly string[], values: Values): string[] {
  return names.filter((name) => !Object.hasOwn(values, name) || values[name] === '');
}
