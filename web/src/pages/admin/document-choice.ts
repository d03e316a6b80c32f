import type { DocumentFieldView } from '../../../../src/dashboard/views/admin-providers.ts';

/** Choices of an operator among the fields of a document. */

/** `maximum` as it was typed. */
export type FieldChoice = { is_ticked: boolean; name: string; maximum: string };

/** The choice of a field that nobody touched. */
export function initialChoice({ is_suggested, name, maximum }: DocumentFieldView): FieldChoice {
  return { is_ticked: is_suggested, name, maximum: maximum === null ? '' : String(maximum) };
}

/** Returns what is wrong with a ticked field; undefined if nothing is. */
export function problemOf({ name, maximum }: FieldChoice): string | undefined {
  if (!/^[a-z][a-z0-9_]{0,63}$/.test(name)) return 'Lower-case letters, digits and underscores.';
  return maximum.trim() === '' || Number.isFinite(Number(maximum)) ? undefined : 'A number, or nothing.';
}

/** Returns the ticked field as it is sent. */
export function sentField({ target }: DocumentFieldView, { name, maximum }: FieldChoice) {
  return { target, name, ...(maximum.trim() !== '' && { maximum: Number(maximum) }) };
}

/** An id out of the name of a file: `My portrait.json` becomes `my-portrait`. */
export function idOfFile(name: string): string {
  return name
    .toLowerCase()
    .replace(/\.json$/, '')
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[-.]+|[-.]+$/g, '')
    .slice(0, 60);
}
