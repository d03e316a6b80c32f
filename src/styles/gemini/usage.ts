import type { JsonObject } from '../../catalog/model.ts';
import type { Usage } from '../conversation.ts';
import { beyond, count, tokens_max, usageReader } from '../usage.ts';

/** Reads the `usageMetadata` of an answer. */
export const readUsage = usageReader(readCounts);

/**
 * The prompt includes what was cached, thoughts are beside the candidates' tokens, and what tools of Google's own
 * brought in is input beside the prompt.
 */
function readCounts(fields: JsonObject): Partial<Usage> {
  const usage: Partial<Usage> = {};
  const prompt = count(fields['promptTokenCount']);
  const of_tools = count(fields['toolUsePromptTokenCount']) ?? 0;
  const cached = count(fields['cachedContentTokenCount']);
  const read = Math.min(cached ?? 0, prompt ?? tokens_max);
  if (prompt !== undefined) usage.input_tokens = Math.min(prompt - read + of_tools, tokens_max);
  if (cached !== undefined) usage.cached_input_tokens = read;
  const candidates = count(fields['candidatesTokenCount']);
  const thoughts = count(fields['thoughtsTokenCount']);
  const shown = (candidates ?? 0) + (thoughts ?? 0);
  const rest = beyond(fields['totalTokenCount'], prompt, of_tools, shown);
  const is_reported = candidates !== undefined || thoughts !== undefined;
  if (is_reported || rest > 0 || (count(fields['totalTokenCount']) !== undefined && prompt !== undefined))
    usage.output_tokens = Math.min(shown + rest, tokens_max);
  if (thoughts !== undefined) usage.reasoning_tokens = thoughts;
  else if (candidates !== undefined && rest > 0) usage.reasoning_tokens = rest;
  return usage;
}
