import type { JsonObject } from '../../catalog/model.ts';
import type { Usage } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { beyond, count, outputOf, tokens_max, usageFormat } from '../usage.ts';

/** The `usage` object of responses. */
export const usage_format = usageFormat({
  read: readCounts,
  write: writeCounts,
  must: ['input_tokens', 'output_tokens'],
  may: ['total_tokens'],
});

/** `input_tokens` includes what was cached. */
function readCounts(fields: JsonObject): Partial<Usage> {
  const usage: Partial<Usage> = {};
  const details = isObject(fields['input_tokens_details']) ? fields['input_tokens_details'] : {};
  const input = count(fields['input_tokens']);
  const cached = count(details['cached_tokens']);
  const written = count(details['cache_write_tokens']);
  const read = Math.min(cached ?? 0, input ?? tokens_max);
  const wrote = Math.min(written ?? 0, (input ?? tokens_max) - read);
  if (input !== undefined) usage.input_tokens = input - read - wrote;
  if (cached !== undefined) usage.cached_input_tokens = read;
  if (written !== undefined) usage.cache_write_tokens = wrote;
  const thought = isObject(fields['output_tokens_details']) ? fields['output_tokens_details'] : {};
  const reported = { output: count(fields['output_tokens']), reasoning: count(thought['reasoning_tokens']) };
  return { ...usage, ...outputOf(reported, beyond(fields['total_tokens'], input, reported.output)) };
}

function writeCounts(usage: Usage): JsonObject {
  const input_tokens = usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens;
  return {
    input_tokens,
    input_tokens_details: {
      cached_tokens: usage.cached_input_tokens,
      cache_write_tokens: usage.cache_write_tokens,
    },
    output_tokens: usage.output_tokens,
    output_tokens_details: { reasoning_tokens: usage.reasoning_tokens },
    total_tokens: input_tokens + usage.output_tokens,
  };
}
