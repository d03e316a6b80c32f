import type { Json, JsonObject } from '../../catalog/model.ts';
import type { ToolCalls, Usage } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { beyond, count, outputOf, tokens_max, usageFormat } from '../usage.ts';

/** The `usage` object of responses. */
export const usage_format = usageFormat({
  read: readCounts,
  write: writeCounts,
  must: ['input_tokens', 'output_tokens'],
  may: ['total_tokens'],
});

/** `input_tokens` includes what was cached. Perplexity names the parts as the messages style does (its client 0.38, 2026-11). */
function readCounts(fields: JsonObject): Partial<Usage> {
  const usage: Partial<Usage> = {};
  const details = isObject(fields['input_tokens_details']) ? fields['input_tokens_details'] : {};
  const input = count(fields['input_tokens']);
  const cached = count(details['cached_tokens'] ?? details['cache_read_input_tokens']);
  const written = count(details['cache_write_tokens'] ?? details['cache_creation_input_tokens']);
  const read = Math.min(cached ?? 0, input ?? tokens_max);
  const wrote = Math.min(written ?? 0, (input ?? tokens_max) - read);
  if (input !== undefined) usage.input_tokens = input - read - wrote;
  if (cached !== undefined) usage.cached_input_tokens = read;
  if (written !== undefined) usage.cache_write_tokens = wrote;
  const web_search = searchesIn(fields['tool_calls_details']);
  if (web_search > 0) usage.tool_calls = { web_search };
  const thought = isObject(fields['output_tokens_details']) ? fields['output_tokens_details'] : {};
  const reported = { output: count(fields['output_tokens']), reasoning: count(thought['reasoning_tokens']) };
  return { ...usage, ...outputOf(reported, beyond(fields['total_tokens'], input, reported.output)) };
}

/** Returns the searches that Perplexity counts in its usage: an item of its output has the results of several. */
function searchesIn(details: Json | undefined): number {
  if (!isObject(details)) return 0;
  const { search_web, web_search = search_web } = details;
  return isObject(web_search) ? (count(web_search['invocation']) ?? 0) : 0;
}

/**
 * Counts the tools that the provider ran, among the items of an output: of a search each time that it searched, of code
 * each container in which it ran.
 */
export function toolCallsIn(items: readonly JsonObject[]): ToolCalls | undefined {
  const web_search = items.filter(isSearch).length;
  const containers = items.filter(({ type }) => type === 'code_interpreter_call').map((item) => item['container_id']);
  const code_interpreter = new Set(containers).size;
  if (web_search + code_interpreter === 0) return undefined;
  return { ...(web_search > 0 && { web_search }), ...(code_interpreter > 0 && { code_interpreter }) };
}

/** Opening a page that was found is no search. Perplexity has the results of each search, without a call. */
function isSearch({ type, action }: JsonObject): boolean {
  if (type === 'search_results') return true;
  if (type !== 'web_search_call') return false;
  return !isObject(action) || action['type'] === undefined || action['type'] === 'search';
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
