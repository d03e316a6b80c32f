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
      const factors = writtenFactors(entry, unit) ?? (priced.includes(unit) ? usualFactors(unit, fields) : undefined);
      return factors ? [[unit, factors]] : [];
    }),
  );
}

/** What the file says for `unit`: one factor or several. */
export function writtenFactors(entry: EstimateEntry | undefined, unit: Unit): Factor[] | undefined {
  const written = entry?.[unit];
  return written === undefined ? undefined : [written].flat().map(parseFactor);
}

function parseFactor(written: string | number): Factor {
  const field = typeof written === 'string' ? field_reference.exec(written)?.[1] : undefined;
  return field === undefined ? { constant: String(written) } : { field };
}

/** One run, one image, the characters of the text; other units need an estimate of their own. */
export function usualFactors(unit: Unit, fields: readonly string[]): Factor[] | undefined {
  if (unit === 'request' || unit === 'image') return [{ constant: '1' }];
  const text = unit === 'character' ? ['text', 'prompt'].find((field) => fields.includes(field)) : undefined;
  return text === undefined ? undefined : [{ field: text }];
}
