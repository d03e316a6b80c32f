import type { JsonObject } from '../catalog/model.ts';
import type { Conversation, Effort } from './conversation.ts';
import type { Quirks } from './quirks.ts';
import { isForeign } from './seal.ts';
import type { JsonPlan } from './structured.ts';
import { answer_tokens_min, budget_tokens_min, budgetOf, effortOfBudget, fitBudget } from './thinking.ts';

export type ThinkingPlan = { is_on: boolean; thinking?: JsonObject; output_config?: JsonObject };

const nothing: ThinkingPlan = { is_on: false };

/** What a messages upstream is told of thinking, in the words of its generation of models. */
export function planThinking(
  conversation: Conversation,
  quirks: Quirks,
  max_tokens: number,
  plan: JsonPlan,
): ThinkingPlan {
  const { thinking } = conversation;
  const kind = quirks.thinking ?? 'adaptive';
  if (!thinking || kind === 'none' || plan.json_tool !== undefined) return nothing;
  if (thinking.mode === 'off') return kind === 'always' ? nothing : { is_on: false, thinking: { type: 'disabled' } };
  const { budget_tokens } = thinking;
  const effort = thinking.effort ?? (budget_tokens === undefined ? undefined : effortOfBudget(budget_tokens));
  if (kind !== 'budget') {
    return {
      is_on: true,
      ...(kind === 'adaptive' && { thinking: { type: 'adaptive' } }),
      ...(effort !== undefined && { output_config: { effort: written(effort) } }),
    };
  }
  const is_forced = plan.tool_choice?.mode === 'any' || plan.tool_choice?.mode === 'one';
  if (is_forced || isLoopUnsigned(conversation)) return nothing;
  const budget_wanted = Math.max(budget_tokens ?? budgetOf(effort ?? 'medium'), budget_tokens_min);
  const budget = Math.min(budget_wanted, max_tokens - answer_tokens_min);
  if (budget < budget_tokens_min) return nothing;
  return { is_on: true, thinking: { type: 'enabled', budget_tokens: budget } };
}

/** The most that models which think by a budget take there. */
const contents_budget_max = 24_576;

/**
 * Gemini's `thinkingConfig`; undefined where nothing is to be said. Thinking that is on is told of in the answer.
 * Models that are told a level cannot be stopped: they think as little as all of them can.
 */
export function planContentsThinking(
  { thinking }: Conversation,
  quirks: Quirks,
  max_tokens: number,
): JsonObject | undefined {
  const kind = quirks.thinking ?? 'adaptive';
  if (!thinking || kind === 'none') return undefined;
  if (thinking.mode === 'off') {
    if (kind === 'always') return undefined;
    return kind === 'budget' ? { thinkingBudget: 0 } : { thinkingLevel: 'LOW' };
  }
  const { budget_tokens } = thinking;
  const effort = thinking.effort ?? (budget_tokens === undefined ? undefined : effortOfBudget(budget_tokens));
  const shown = { includeThoughts: true };
  if (kind !== 'budget') return effort === undefined ? shown : { ...shown, thinkingLevel: level(effort) };
  if (effort === undefined) return shown;
  const budget_wanted = Math.max(budget_tokens_min, Math.min(budget_tokens ?? budgetOf(effort), contents_budget_max));
  return { ...shown, thinkingBudget: fitBudget(budget_wanted, max_tokens) };
}

/** Not all models know `MINIMAL`. */
function level(effort: Effort): string {
  if (effort === 'medium') return 'MEDIUM';
  return effort === 'high' || effort === 'xhigh' || effort === 'max' ? 'HIGH' : 'LOW';
}

function written(effort: Effort): string {
  return effort === 'minimal' ? 'low' : effort;
}

/**
 * Amid a loop of tools, models that think by a budget want back the signed thinking with which the loop
 * began. Callers of the other style seldom send it back: such a turn goes on without thinking.
 */
function isLoopUnsigned({ turns }: Conversation): boolean {
  const last = turns.at(-1);
  const before = turns.at(-2);
  if (!last?.parts.some((part) => part.type === 'tool_result') || before?.role !== 'assistant') return false;
  return !before.parts.some(
    (part) => part.type === 'redacted_thinking' || (part.type === 'thinking' && isSigned(part.signature)),
  );
}

function isSigned(signature: string | undefined): boolean {
  return signature !== undefined && !isForeign(signature);
}
