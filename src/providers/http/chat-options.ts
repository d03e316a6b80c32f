import type { OptionProblem } from '../../catalog/check-settings.ts';
import type { CallKind, JsonObject } from '../../catalog/model.ts';
import { readAllowance } from '../../styles/allowed.ts';
import { rerank_formats } from './reranker.ts';
import { quirk_names, readQuirks } from '../../styles/quirks.ts';

const allowance_names: readonly string[] = ['pass', 'refuse', 'pass_fields', 'pass_betas'];

const names: readonly string[] = [...quirk_names, ...allowance_names, 'hosted_tools'];

const rerank_names: readonly string[] = [...allowance_names, 'format'];

/** Checks the options of a route that answers in one piece and is no chat: they say which fields may pass to its upstream. */
export function wholeOptionProblems(kind: Exclude<CallKind, 'chat'>, options: JsonObject): OptionProblem[] {
  const known_names = kind === 'rerank' ? rerank_names : allowance_names;
  const unknown = Object.keys(options).filter((field) => !known_names.includes(field));
  const article = kind === 'embedding' ? 'an' : 'a';
  return [
    ...readAllowance(options).problems,
    ...(kind === 'rerank' ? formatProblems(options) : []),
    ...unknown.map((field) => ({
      field,
      message: `is not an option of ${article} ${kind} route and has no effect`,
      known_names,
    })),
  ];
}

function formatProblems({ format }: JsonObject): OptionProblem[] {
  if (format === undefined || rerank_formats.some((each) => each === format)) return [];
  return [{ field: 'format', message: `must be ${rerank_formats.join(' or ')}` }];
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
