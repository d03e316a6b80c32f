import type { OptionProblem } from '../../catalog/check-settings.ts';
import type { JsonObject } from '../../catalog/model.ts';
import { readAllowance } from '../../styles/allowed.ts';
import { quirk_names, readQuirks } from '../../styles/quirks.ts';

const allowance_names: readonly string[] = ['pass', 'refuse', 'pass_fields', 'pass_betas'];

const names: readonly string[] = [...quirk_names, ...allowance_names, 'hosted_tools'];

/** Checks the options of an embedding route: they only say which fields may pass to its upstream. */
export function embeddingOptionProblems(options: JsonObject): OptionProblem[] {
  const unknown = Object.keys(options).filter((field) => !allowance_names.includes(field));
  return [
    ...readAllowance(options).problems,
    ...unknown.map((field) => ({
      field,
      message: 'is not an option of an embedding route and has no effect',
      known_names: allowance_names,
    })),
  ];
}

/** Checks the options of a chat route: the quirks of its upstream, and the fields that may pass to it. */
export function chatOptionProblems(options: JsonObject): OptionProblem[] {
  const unknown = Object.keys(options).filter((field) => !names.includes(field));
  return [
    ...readQuirks(options).problems,
    ...readAllowance(options).problems,
    ...unknown.map((field) => ({
      field,
      message: 'is not an option of a chat route and has no effect',
      known_names: names,
    })),
  ];
}
