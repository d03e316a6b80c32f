import type { Json, JsonObject } from '../../catalog/model.ts';
import type { Usage } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { beyond, count, firstCount, hourOf, outputOf, tokens_max, usageFormat } from '../usage.ts';

/** The `usage` object of chat completions. */
export const usage_format = usageFormat({
  read: readCounts,
  write: writeCounts,
  must: ['prompt_tokens', 'completion_tokens'],
  may: ['total_tokens'],
});

/**
 * Returns the `usage` of an answer or of a piece of a stream, which some servers put elsewhere. Moonshot: within the last
 * choice. Groq: within `x_groq`, in streams of callers that do not ask for it and of older versions.
 * Sources: platform.kimi.ai, "Create chat completion"; `x_groq` of `groq-sdk` (`ChatCompletionChunk.XGroq`); both November 2026.
 */
export function usageIn(body: JsonObject): Json | undefined {
  const { usage, x_groq, choices } = body;
  if (isObject(usage)) return usage;
  if (isObject(x_groq) && isObject(x_groq['usage'])) return x_groq['usage'];
  if (!Array.isArray(choices)) return usage;
  const choice = choices.findLast((each) => isObject(each) && isObject(each['usage']));
  return isObject(choice) ? choice['usage'] : usage;
}

/** `prompt_tokens` includes what was cached, under one of five names by vendor. `cached_tokens` beside the others: Moonshot. */
function readCounts(fields: JsonObject): Partial<Usage> {
  const usage: Partial<Usage> = {};
  const details = isObject(fields['prompt_tokens_details']) ? fields['prompt_tokens_details'] : {};
  const cached = firstCount(
    details['cached_tokens'],
    fields['prompt_cache_hit_tokens'],
    fields['cache_read_input_tokens'],
    fields['cached_tokens'],
  );
  const written = firstCount(
    details['cache_write_tokens'],
    details['cache_creation_tokens'],
    fields['cache_creation_input_tokens'],
  );
  const prompt = count(fields['prompt_tokens']);
  const thought = isObject(fields['completion_tokens_details']) ? fields['completion_tokens_details'] : {};
  const reported = {
    output: completionTokens(fields, prompt),
    reasoning: firstCount(thought['reasoning_tokens'], fields['reasoning_tokens']),
  };
  const rest = beyond(fields['total_tokens'], prompt, reported.output);
  const caching = (cached ?? 0) + (written ?? 0);
  const is_cache_beside = rest > 0 && rest === caching && rest !== reported.reasoning; // of some servers the prompt leaves it out
  const whole_prompt = prompt !== undefined && is_cache_beside ? prompt + caching : prompt;
  const read = Math.min(cached ?? 0, whole_prompt ?? tokens_max);
  const wrote = Math.min(written ?? 0, (whole_prompt ?? tokens_max) - read);
  if (whole_prompt !== undefined) usage.input_tokens = whole_prompt - read - wrote;
  if (cached !== undefined) usage.cached_input_tokens = read;
  if (written !== undefined) usage.cache_write_tokens = wrote;
  const for_an_hour = hourOf(details['cache_creation_token_details']) ?? hourOf(fields['cache_creation']);
  if (for_an_hour !== undefined) usage.cache_write_1h_tokens = for_an_hour;
  return { ...usage, ...outputOf(reported, is_cache_beside ? 0 : rest) };
}

/** Some servers leave `completion_tokens` null: then the total says so. */
function completionTokens(fields: JsonObject, prompt: number | undefined): number | undefined {
  const total = count(fields['total_tokens']);
  const rest = total === undefined || prompt === undefined || total < prompt ? undefined : total - prompt;
  return count(fields['completion_tokens']) ?? rest;
}

function writeCounts(usage: Usage): JsonObject {
  const prompt_tokens = usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens;
  return {
    prompt_tokens,
    completion_tokens: usage.output_tokens,
    total_tokens: prompt_tokens + usage.output_tokens,
    prompt_tokens_details: {
      cached_tokens: usage.cached_input_tokens,
      cache_write_tokens: usage.cache_write_tokens,
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoning_tokens },
  };
}
