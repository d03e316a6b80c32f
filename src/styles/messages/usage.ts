import type { Json, JsonObject } from '../../catalog/model.ts';
import type { Usage } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { count, firstCount, hourOf, outputOf, tokens_max, usageFormat } from '../usage.ts';

/** The `usage` object of messages. */
export const usage_format = usageFormat({
  read: readCounts,
  write: writeCounts,
  must: ['input_tokens', 'output_tokens'],
  may: ['cache_creation_input_tokens', 'cache_read_input_tokens'],
  judge: (fields, usage) => {
    if (roundsOf(fields).length > 1) return true; // the style has no place for the sum
    return (hourOf(fields['cache_creation']) ?? 0) === usage.cache_write_1h_tokens ? undefined : false;
  },
});

/** Reads the usage of `message_start`: of the output it says only that it has begun, which is no count of it. */
export function readStartUsage(fields: Json | undefined): Partial<Usage> | undefined {
  const { output_tokens: _, ...usage } = usage_format.read(fields) ?? {};
  return Object.keys(usage).length === 0 ? undefined : usage;
}

/** `input_tokens` leaves out what was cached. With compaction, only `iterations` hold everything. */
function readCounts(fields: JsonObject): Partial<Usage> {
  return { ...readTokens(fields), ...searchesIn(fields['server_tool_use']) };
}

/** Searches that the upstream bills beside the tokens. */
function searchesIn(value: Json | undefined): Partial<Usage> {
  const web_search = isObject(value) ? count(value['web_search_requests']) : undefined;
  return web_search === undefined ? {} : { tool_calls: { web_search } };
}

function readTokens(fields: JsonObject): Partial<Usage> {
  const rounds = roundsOf(fields);
  if (rounds.length > 1) return sumOf(rounds.map(readTokens));
  const usage: Partial<Usage> = {};
  const input = count(fields['input_tokens']);
  const cached = count(fields['cache_read_input_tokens']);
  const written = firstCount(fields['cache_creation_input_tokens'], cacheCreation(fields['cache_creation']));
  const details = fields['output_tokens_details'];
  const reasoning = isObject(details) ? count(details['thinking_tokens']) : undefined;
  if (input !== undefined) usage.input_tokens = input;
  if (cached !== undefined) usage.cached_input_tokens = cached;
  if (written !== undefined) usage.cache_write_tokens = written;
  const for_an_hour = hourOf(fields['cache_creation']);
  if (for_an_hour !== undefined) usage.cache_write_1h_tokens = for_an_hour;
  return { ...usage, ...outputOf({ output: count(fields['output_tokens']), reasoning }, 0) };
}

function roundsOf({ iterations }: JsonObject): JsonObject[] {
  return Array.isArray(iterations) ? iterations.filter(isObject) : [];
}

function cacheCreation(value: Json | undefined): number | undefined {
  if (!isObject(value)) return undefined;
  return (count(value['ephemeral_5m_input_tokens']) ?? 0) + (count(value['ephemeral_1h_input_tokens']) ?? 0);
}

function sumOf(parts: readonly Partial<Usage>[]): Partial<Usage> {
  const sum: Partial<Usage> = {};
  const kinds = [
    'input_tokens',
    'cached_input_tokens',
    'cache_write_tokens',
    'cache_write_1h_tokens',
    'output_tokens',
    'reasoning_tokens',
  ] as const;
  for (const kind of kinds) {
    for (const part of parts) {
      const tokens = part[kind];
      if (tokens !== undefined) sum[kind] = Math.min((sum[kind] ?? 0) + tokens, tokens_max);
    }
  }
  return sum;
}

/** The `usage` of a message, with all members that the style has: null is what the service does not know. */
export function writeUsage(usage: Usage): JsonObject {
  return {
    ...writeDeltaUsage(usage),
    cache_creation: cacheCreationOf(usage),
    inference_geo: null,
    service_tier: null,
    speed: null,
  };
}

/** The `usage` of `message_delta`, which has fewer members. */
export function writeDeltaUsage(usage: Usage): JsonObject {
  const web_search_requests = usage.tool_calls?.web_search ?? 0;
  const server_tool_use = web_search_requests > 0 ? { web_fetch_requests: 0, web_search_requests } : null;
  return { ...writeCounts(usage), server_tool_use };
}

function cacheCreationOf({ cache_write_tokens, cache_write_1h_tokens }: Usage): JsonObject {
  return {
    ephemeral_5m_input_tokens: cache_write_tokens - cache_write_1h_tokens,
    ephemeral_1h_input_tokens: cache_write_1h_tokens,
  };
}

function writeCounts(usage: Usage): JsonObject {
  const { cache_write_tokens, cache_write_1h_tokens, tool_calls: { web_search = 0 } = {} } = usage;
  return {
    input_tokens: usage.input_tokens,
    cache_creation_input_tokens: cache_write_tokens,
    ...(cache_write_1h_tokens > 0 && { cache_creation: cacheCreationOf(usage) }),
    cache_read_input_tokens: usage.cached_input_tokens,
    output_tokens: usage.output_tokens,
    output_tokens_details: { thinking_tokens: usage.reasoning_tokens },
    ...(web_search > 0 && { server_tool_use: { web_search_requests: web_search } }),
  };
}
