import type { OptionProblem } from '../catalog/check-settings.ts';
import type { JsonObject } from '../catalog/model.ts';
import { quirk_names, readQuirks } from '../styles/quirks.ts';

/** What is wrong with a chat route's options: all of them are about what its upstream takes differently. */
export function chatOptionProblems(options: JsonObject): OptionProblem[] {
  const unknown = Object.keys(options).filter((field) => !quirk_names.includes(field));
  return [
    ...readQuirks(options).problems,
    ...unknown.map((field) => ({
      field,
      message: 'is no option of a chat route, and does nothing',
      known: quirk_names,
    })),
  ];
}
