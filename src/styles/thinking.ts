import type { Json } from '../catalog/model.ts';
import type { Effort } from './conversation.ts';

/** Less thinking than this no upstream takes. */
export const budget_tokens_min = 1024;

/** What must be left for the answer itself when thinking is cut to fit; with less than this beside it no call begins. */
export const answer_tokens_min = 256;

const budgets: ReadonlyMap<Effort, number> = new Map([
  ['minimal', 1024],
  ['low', 2048],
  ['medium', 8192],
  ['high', 16_384],
  ['xhigh', 32_768],
  ['max', 63_999],
]);

const efforts: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** Undefined for whatever is no effort of ours. */
export function readEffort(value: Json | undefined): Effort | undefined {
  return efforts.find((effort) => effort === value);
}

/** Tokens to think with. */
export function budgetOf(effort: Effort): number {
  return budgets.get(effort) ?? budget_tokens_min;
}

export function effortOfBudget(budget_tokens: number): Effort {
  if (budget_tokens < 4096) return 'low';
  return budget_tokens < 16_384 ? 'medium' : 'high';
}

/** As much of a budget as fits into an answer of so many tokens, for upstreams that take any: half of a short one. */
export function fitBudget(budget_tokens: number, max_tokens: number): number {
  return Math.min(budget_tokens, Math.max(max_tokens - answer_tokens_min, Math.floor(max_tokens / 2)));
}
