import type { JsonObject } from '../../catalog/model.ts';
import type { Conversation, Effort } from '../conversation.ts';
import type { Quirks } from '../quirks.ts';
import type { JsonPlan } from '../structured.ts';
import { answer_tokens_min, budget_tokens_min, budgetOf, effortOfBudget } from '../thinking.ts';
import { isForeign } from '../thought-signatures.ts';

/** Models whose fields beside those of Converse are known; each vendor has its own names for thinking. */
export type Family = NonNullable<Quirks['model_family']>;

const families: readonly [RegExp, Family][] = [
  [/\banthropic\.|\bclaude/i, 'claude'],
  [/\bamazon\.nova/i, 'nova'],
  [/\bopenai\./i, 'gpt'],
];

/** The family of a model, by the route's word or by its id. */
export function familyOf(model: string, { model_family }: Quirks): Family {
  return model_family ?? families.find(([form]) => form.test(model))?.[1] ?? 'other';
}

/** Thinking, as fields of the model's own. */
export type ThinkingPlan = { is_on: boolean; fields: JsonObject };

const nothing: ThinkingPlan = { is_on: false, fields: {} };

type Parts = { quirks: Quirks; family: Family; max_tokens: number; plan: JsonPlan };

/** Writes the caller's wish to think in the words of the model's family; others think as they do. */
export function planThinking(conversation: Conversation, parts: Parts): ThinkingPlan {
  const { thinking } = conversation;
  const { quirks, family } = parts;
  if (!thinking || quirks.thinking === 'none') return nothing;
  if (family === 'claude') return planClaude(conversation, parts);
  const effort = effortOf(thinking);
  if (family === 'nova') {
    if (thinking.mode === 'off') return { is_on: false, fields: { reasoningConfig: { type: 'disabled' } } };
    const maxReasoningEffort = effort && three(effort);
    const reasoningConfig = { type: 'enabled', ...(maxReasoningEffort && { maxReasoningEffort }) };
    return { is_on: true, fields: { reasoningConfig } };
  }
  if (family === 'gpt' && effort && effort !== 'none')
    return { is_on: true, fields: { reasoning_effort: three(effort) } };
  return nothing;
}

function effortOf(thinking: NonNullable<Conversation['thinking']>): Effort | undefined {
  if (thinking.mode === 'off') return undefined;
  const { budget_tokens, effort } = thinking;
  return effort ?? (budget_tokens === undefined ? undefined : effortOfBudget(budget_tokens));
}

function three(effort: Effort): string {
  if (effort === 'medium') return 'medium';
  return effort === 'high' || effort === 'xhigh' || effort === 'max' ? 'high' : 'low';
}

/** As in the messages style, where a forced tool leaves no room to think either. */
function planClaude(conversation: Conversation, { quirks, max_tokens, plan }: Parts): ThinkingPlan {
  const { thinking } = conversation;
  const kind = quirks.thinking ?? 'adaptive';
  const is_forced = plan.tool_choice?.mode === 'any' || plan.tool_choice?.mode === 'one';
  if (!thinking || plan.json_tool !== undefined) return nothing;
  if (thinking.mode === 'off') {
    return kind === 'always' ? nothing : { is_on: false, fields: { thinking: { type: 'disabled' } } };
  }
  const effort = effortOf(thinking);
  if (kind !== 'budget') {
    const name = effort === 'minimal' ? 'low' : effort;
    return {
      is_on: true,
      fields: {
        ...(kind === 'adaptive' && { thinking: { type: 'adaptive' } }),
        ...(name !== undefined && { output_config: { effort: name } }),
      },
    };
  }
  if (is_forced || isLoopUnsigned(conversation)) return nothing;
  const budget_asked = Math.max(thinking.budget_tokens ?? budgetOf(effort ?? 'medium'), budget_tokens_min);
  const budget_tokens = Math.min(budget_asked, max_tokens - answer_tokens_min);
  if (budget_tokens < budget_tokens_min) return nothing;
  return { is_on: true, fields: { thinking: { type: 'enabled', budget_tokens } } };
}

/** Amid a loop of tools the signed thinking must come back with which the loop began; without it, it goes on unthinking. */
function isLoopUnsigned({ turns }: Conversation): boolean {
  const before = turns.at(-2);
  if (!turns.at(-1)?.parts.some((part) => part.type === 'tool_result') || before?.role !== 'assistant') return false;
  return !before.parts.some(
    (part) =>
      part.type === 'redacted_thinking' ||
      (part.type === 'thinking' && part.signature !== undefined && !isForeign(part.signature)),
  );
}
