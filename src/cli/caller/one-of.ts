import { CommandError } from '../result.ts';

/** Returns the value that an option names; undefined where there is none. Throws CommandError (usage). */
export function oneOf<T extends string>(name: string, values: readonly T[], text: string | undefined): T | undefined {
  const value = values.find((each) => each === text);
  if (text !== undefined && value === undefined)
    throw new CommandError(`${name} must be one of ${values.join(', ')}.`, 2);
  return value;
}
