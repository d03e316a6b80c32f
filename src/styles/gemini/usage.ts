import type { JsonObject } from '../../catalog/model.ts';
import type { Usage } from '../conversation.ts';
import { beyond, count, tokens_max, usageFormat } from '../usage.ts';

/** The `usageMetadata` of an answer. */
export const usage_format = usageFormat({
  read: readCounts,
  write: writeCounts,
  must: [],
  may: [],
  judge: (fields, usage) => {
    const read = readCounts(fields);
    return (
      read.input_tokens === usage.input_tokens &&
      (read.cached_input_tokens ?? 0) === usage.cached_input_tokens &&
      read.output_tokens === usage.output_tokens &&
      (read.reasoning_tokens ?? 0) === usage.reasoning_tokens
    );
  },
});

/** Reads the `usageMetadata` of an answer. */
export const readUsage = usage_format.read;

/** Input that is written to a cache is input like any other there. */
function writeCounts(usage: Usage): JsonObject {
  const { cached_input_tokens: cached, output_tokens, reasoning_tokens: thoughts } = usage;
  const prompt = usage.input_tokens + cached + usage.cache_write_tokens;
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: output_tokens - thoughts,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: prompt + output_tokens,
  };
}

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
