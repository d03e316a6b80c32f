import type { OptionProblem } from '../catalog/check-settings.ts';
import type { JsonObject } from '../catalog/model.ts';
import { readAllowance } from '../styles/allowed.ts';
import { quirk_names, readQuirks } from '../styles/quirks.ts';

const names: readonly string[] = [...quirk_names, 'pass', 'refuse'];

/** What is wrong with a chat route's options: what its upstream takes differently, and what may go on to it. */
export function chatOptionProblems(options: JsonObject): OptionProblem[] {
  const unknown = Object.keys(options).filter((field) => !names.includes(field));
  return [
    ...readQuirks(options).problems,
    ...readAllowance(options).problems,
    ...unknown.map((field) => ({
      field,
      message: 'is no option of a chat route, and does nothing',
      known: names,
    })),
  ];
}
