import type { OptionProblem } from '../../catalog/check-settings.ts';
import type { JsonObject } from '../../catalog/model.ts';

/** The options that an adapter knows: the values that one may have, or undefined where others look at it. */
export type OptionNames = { readonly [name: string]: readonly string[] | undefined };

/** Checks the names and the values of a route's options. */
export function optionProblems(options: JsonObject, allowed: OptionNames): OptionProblem[] {
  const names = Object.keys(allowed);
  return Object.entries(options).flatMap(([field, value]): OptionProblem[] => {
    if (!names.includes(field)) {
      return [{ field, message: 'is not an option of a route of this adapter and has no effect', known_names: names }];
    }
    const values = allowed[field];
    const is_right = !values || (typeof value === 'string' && values.includes(value));
    return is_right ? [] : [{ field, message: `must be one of: ${values.join(', ')}` }];
  });
}
