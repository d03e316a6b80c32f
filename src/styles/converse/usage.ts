import type { Json } from '../../catalog/model.ts';
import type { Usage } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { count } from '../usage.ts';

/** Reads the `usage` of Converse, whose `inputTokens` leave out what was read from the cache or written to it. */
export function readUsage(fields: Json | undefined): Partial<Usage> | undefined {
  if (!isObject(fields)) return undefined;
  const input = count(fields['inputTokens']);
  const output = count(fields['outputTokens']);
  const cached = count(fields['cacheReadInputTokens']);
  const written = count(fields['cacheWriteInputTokens']);
  const for_an_hour = hourIn(fields['cacheDetails']);
  const usage: Partial<Usage> = {
    ...(input !== undefined && { input_tokens: input }),
    ...(output !== undefined && { output_tokens: output }),
    ...(cached !== undefined && { cached_input_tokens: cached }),
    ...(written !== undefined && { cache_write_tokens: written }),
    ...(for_an_hour !== undefined && { cache_write_1h_tokens: for_an_hour }),
  };
  return Object.keys(usage).length === 0 ? undefined : usage;
}

/** Tokens that were written for an hour; undefined where nothing is told of how long. */
function hourIn(details: Json | undefined): number | undefined {
  if (!Array.isArray(details)) return undefined;
  const of_an_hour = details.filter(isObject).filter(({ ttl }) => ttl === '1h');
  return of_an_hour.reduce((sum, { inputTokens }) => sum + (count(inputTokens) ?? 0), 0);
}
