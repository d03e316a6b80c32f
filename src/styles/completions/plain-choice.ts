import type { Json, JsonObject } from '../../catalog/model.ts';
import { isObject } from '../fields.ts';

/**
 * Answers of servers of this style that its SDKs do not read as they are:
 * - Mistral's models that think answer parts instead of a text: `{ type: 'thinking', thinking: [{ type: 'text', … }] }`
 *   and `{ type: 'text', … }` (its SDK `@mistralai/mistralai` 2.7.0, `ContentChunk`; read on 2026-11-28).
 * - Finish reasons that the style lacks (the list below), with which SDKs with strict types refuse the whole answer.
 * - LocalAI's pieces have an empty finish reason until the last.
 */

/** Finish reasons of OpenAI's API. */
const known_reasons = new Set<Json>(['stop', 'length', 'tool_calls', 'content_filter', 'function_call']);

/**
 * Reasons of other servers, each with the one that says it to a caller. What broke off is as incomplete as what was too
 * long. Mistral: `model_length`, `error`; Z.ai: `sensitive`, `network_error`; DeepSeek: `insufficient_system_resource`;
 * vLLM and SGLang: `abort`; Together: `eos`, which is a plain stop, as is everything that is not here.
 */
const reasons = new Map<Json, string>([
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['error', 'length'],
  ['network_error', 'length'],
  ['insufficient_system_resource', 'length'],
  ['abort', 'length'],
  ['sensitive', 'content_filter'],
  ['safety', 'content_filter'],
]);

/** Returns a choice as SDKs read it; the same object if it is so. `holder` has its text. */
export function plainChoice(choice: JsonObject, holder: 'message' | 'delta'): JsonObject {
  const { finish_reason: reason } = choice;
  const held = choice[holder];
  const has_odd_reason = typeof reason === 'string' && !known_reasons.has(reason);
  const has_parts = isObject(held) && Array.isArray(held['content']);
  if (!has_odd_reason && !has_parts) return choice;
  return {
    ...choice,
    ...(has_parts && { [holder]: withText(held) }),
    ...(has_odd_reason && { finish_reason: plainReason(reason, held) }),
  };
}

/** Returns the choices as SDKs read them; the same list if they are so. */
export function plainChoices(choices: JsonObject[], holder: 'message' | 'delta'): JsonObject[] {
  // Of nearly every piece of a stream nothing changes: it is looked at, and no list is made.
  const are_plain = choices.every((choice) => plainChoice(choice, holder) === choice);
  return are_plain ? choices : choices.map((choice) => plainChoice(choice, holder));
}

function plainReason(reason: string, held: Json | undefined): string | null {
  if (reason === '') return null;
  const calls = isObject(held) ? held['tool_calls'] : undefined;
  return reasons.get(reason) ?? (Array.isArray(calls) && calls.length > 0 ? 'tool_calls' : 'stop');
}

function withText(held: JsonObject): JsonObject {
  const { content = null, ...rest } = held;
  const parts = Array.isArray(content) ? content.filter(isObject) : [];
  const thought = parts.map(({ thinking }) => textOf(thinking)).join('');
  return { ...rest, content: textOf(content), ...(thought !== '' && { reasoning_content: thought }) };
}

/** Returns a text, or that of its parts. */
export function textOf(content: Json | undefined): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('');
}
