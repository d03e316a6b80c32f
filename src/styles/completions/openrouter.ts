import type { Json, JsonObject } from '../../catalog/model.ts';
import type { ChatRequest } from '../codec.ts';
import { isObject } from '../fields.ts';
import type { Quirks } from '../quirks.ts';
import { plainChoices } from './plain-choice.ts';
import { effortOfThinking, readThinking } from './settings.ts';

/**
 * OpenRouter's additions to chat completions, by its documentation of November 2026 (openrouter.ai/docs, pages
 * "Reasoning Tokens", "Usage Accounting", "Parameters"; read on 2026-11-27).
 */

/** Tells whether the usage is to have the cost of the call: `usage: { include: true }`. */
export function wantsCost({ usage }: JsonObject): boolean {
  return isObject(usage) && usage['include'] === true;
}

/** Place of what was thought in an answer: in the fields that it has, in `reasoning` too, or nowhere. */
export type ReasoningShown = 'usual' | 'plain' | 'hidden';

/** Reads how thinking is to be shown, of `reasoning` or of `include_reasoning`, which was before it. */
export function reasoningShown({ reasoning, include_reasoning: included }: JsonObject): ReasoningShown {
  if (isObject(reasoning)) return reasoning['exclude'] === true ? 'hidden' : 'plain';
  if (included === false) return 'hidden';
  return included === true ? 'plain' : 'usual';
}

/** Replaces `reasoning` by the effort, which all servers of the style know. Throws ApiError 400 naming the field. */
export function withEffort(body: JsonObject, quirks: Quirks): void {
  if (!isObject(body['reasoning'])) return;
  const effort = effortOfThinking(readThinking(body), quirks);
  delete body['reasoning'];
  if (effort !== undefined) body['reasoning_effort'] = effort;
}

const thought_fields = ['reasoning', 'reasoning_content', 'reasoning_details'] as const;

/** The choices of an upstream as the caller wants them; the same list if that is as they came. */
export function choicesShown(
  choices: JsonObject[],
  holder: 'message' | 'delta',
  show: Exclude<ReasoningShown, 'usual'>,
): JsonObject[] {
  const shown = choices.flatMap((choice): JsonObject[] => {
    const held = choice[holder];
    if (!isObject(held) || !thought_fields.some((field) => field in held)) return [choice];
    if (show === 'plain') {
      const { reasoning_content: text } = held;
      const is_plain = typeof text !== 'string' || typeof held['reasoning'] === 'string';
      return [is_plain ? choice : { ...choice, [holder]: { ...held, reasoning: text } }];
    }
    const { reasoning: _, reasoning_content: __, reasoning_details: ___, ...rest } = held;
    const is_empty = holder === 'delta' && Object.values(rest).every(isEmpty) && !choice['finish_reason'];
    return is_empty ? [] : [{ ...choice, [holder]: rest }];
  });
  return shown.length === choices.length && shown.every((choice, index) => choice === choices[index]) ? choices : shown;
}

/** Pieces of thinking often come with an empty text, and the role again. */
function isEmpty(value: Json): boolean {
  return value === null || value === '' || value === 'assistant';
}

/** An upstream's whole answer as the caller wants it; undefined if that is as it came. */
export function answerShown(answer: JsonObject, { body }: ChatRequest): JsonObject | undefined {
  const show = reasoningShown(body);
  const { choices } = answer;
  if (!Array.isArray(choices) || !choices.every(isObject)) return undefined;
  const plain = plainChoices(choices, 'message');
  const shown = show === 'usual' ? plain : choicesShown(plain, 'message', show);
  return shown === choices ? undefined : { ...answer, choices: shown };
}
