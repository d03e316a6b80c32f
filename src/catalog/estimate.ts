import { field_reference } from './input.ts';
import { units, type Estimate, type Factor, type Unit } from './model.ts';
import type { EstimateEntry } from './schema.ts';

/** The estimate of a model: what the file says, and for priced units that it leaves out the usual. */
export function estimateOf(
  entry: EstimateEntry | undefined,
  priced: readonly Unit[],
  fields: readonly string[],
): Estimate {
  return Object.fromEntries(
    units.flatMap((unit) => {
      const factors = factorsOf(entry, unit) ?? (priced.includes(unit) ? usualFactors(unit, fields) : undefined);
      return factors ? [[unit, factors]] : [];
    }),
  );
}

/** Returns the file's factors for `unit`: one or several. */
export function factorsOf(entry: EstimateEntry | undefined, unit: Unit): Factor[] | undefined {
  const text = entry?.[unit];
  return text === undefined ? undefined : [text].flat().map(parseFactor);
}

/** `$media.x.duration`: how long the audio or video in the field x is, in seconds. */
const duration_reference = /^\$media\.(.+)\.duration$/s;

/** `$bytes.prompt+style`: how many bytes the texts of these fields have, and what an upstream may put around them. */
const bytes_reference = /^\$bytes\.(.+)$/s;

function parseFactor(factor: string | number): Factor {
  const text = String(factor);
  const field = field_reference.exec(text)?.[1];
  if (field !== undefined) return { field };
  const bytes_of = bytes_reference.exec(text)?.[1]?.split('+');
  if (bytes_of !== undefined) return { bytes_of };
  const duration_of = duration_reference.exec(text)?.[1];
  return duration_of === undefined ? { constant: text } : { duration_of };
}

/**
 * Returns the usual factors: one run, one image, the characters of the text; other units need an estimate of their own.
 */
export function usualFactors(unit: Unit, fields: readonly string[]): Factor[] | undefined {
  if (unit === 'request' || unit === 'image') return [{ constant: '1' }];
  const text = unit === 'character' ? ['text', 'prompt'].find((field) => fields.includes(field)) : undefined;
  return text === undefined ? undefined : [{ field: text }];
}
