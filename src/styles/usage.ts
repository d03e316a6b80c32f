import type { Json, JsonObject } from '../catalog/model.ts';
import type { CallerStyle, UpstreamStyle, Usage } from './conversation.ts';
import { isObject } from './fields.ts';
import { tokensOf, type TextSize } from './text-size.ts';

/**
 * More tokens than any model reads or writes in one call: an upstream that tells of more tells nothing.
 * Money is made of these numbers.
 */
const tokens_max = 1_000_000_000;

/**
 * What a `usage` object of an upstream says, in kinds that do not overlap; undefined if it says nothing.
 * Kinds it does not tell of are absent: in streams of messages style they come in several events.
 */
export function readUsage(style: UpstreamStyle, fields: Json | undefined): Partial<Usage> | undefined {
  if (!isObject(fields)) return undefined;
  const usage = readers[style](fields);
  return Object.keys(usage).length === 0 ? undefined : usage;
}

const readers: { readonly [style in UpstreamStyle]: (fields: JsonObject) => Partial<Usage> } = {
  completions: fromCompletions,
  messages: fromMessages,
  responses: fromResponses,
  contents: fromContents,
};

/** What `message_start` says: of the output only that it has begun, which is no count of it. */
export function readStartUsage(fields: Json | undefined): Partial<Usage> | undefined {
  const { output_tokens: _, ...usage } = readUsage('messages', fields) ?? {};
  return Object.keys(usage).length === 0 ? undefined : usage;
}

/** All kinds, if the upstream told of its input and its output; the others are 0 unless it says otherwise. */
export function wholeUsage(usage: Partial<Usage> | undefined): Usage | undefined {
  if (usage?.input_tokens === undefined || usage.output_tokens === undefined) return undefined;
  const { input_tokens, output_tokens } = usage;
  return {
    input_tokens,
    cached_input_tokens: usage.cached_input_tokens ?? 0,
    cache_write_tokens: usage.cache_write_tokens ?? 0,
    output_tokens,
    reasoning_tokens: Math.min(usage.reasoning_tokens ?? 0, output_tokens),
  };
}

/** Where the upstream counts nothing: the input as it was counted here, the output by its bytes. */
export function countedUsage(input_tokens: number, delivered: TextSize): Usage {
  return {
    input_tokens,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    output_tokens: tokensOf(delivered),
    reasoning_tokens: 0,
  };
}

/** The `usage` object of an answer in `style`. */
export function writeUsage(style: CallerStyle, usage: Usage): JsonObject {
  return writers[style](usage);
}

const writers: { readonly [style in CallerStyle]: (usage: Usage) => JsonObject } = {
  completions: toCompletions,
  messages: toMessages,
  responses: toResponses,
};

/** `input_tokens` includes what was cached. */
function fromResponses(fields: JsonObject): Partial<Usage> {
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
  const output = count(fields['output_tokens']);
  const thought = isObject(fields['output_tokens_details']) ? fields['output_tokens_details'] : {};
  const reasoning = count(thought['reasoning_tokens']);
  if (output !== undefined) usage.output_tokens = output;
  if (reasoning !== undefined) usage.reasoning_tokens = reasoning;
  return usage;
}

/** `prompt_tokens` includes what was cached, under one of four names by vendor. */
function fromCompletions(fields: JsonObject): Partial<Usage> {
  const usage: Partial<Usage> = {};
  const details = isObject(fields['prompt_tokens_details']) ? fields['prompt_tokens_details'] : {};
  const cached = first(details['cached_tokens'], fields['prompt_cache_hit_tokens'], fields['cache_read_input_tokens']);
  const written = first(
    details['cache_write_tokens'],
    details['cache_creation_tokens'],
    fields['cache_creation_input_tokens'],
  );
  const prompt = count(fields['prompt_tokens']);
  const read = Math.min(cached ?? 0, prompt ?? tokens_max);
  const wrote = Math.min(written ?? 0, (prompt ?? tokens_max) - read);
  if (prompt !== undefined) usage.input_tokens = prompt - read - wrote;
  if (cached !== undefined) usage.cached_input_tokens = read;
  if (written !== undefined) usage.cache_write_tokens = wrote;
  const thought = isObject(fields['completion_tokens_details']) ? fields['completion_tokens_details'] : {};
  const reasoning = first(thought['reasoning_tokens'], fields['reasoning_tokens']);
  const output = completionTokens(fields, prompt, reasoning);
  if (output !== undefined) usage.output_tokens = output;
  if (reasoning !== undefined) usage.reasoning_tokens = reasoning;
  return usage;
}

/**
 * Some servers leave `completion_tokens` null, and some count reasoning beside it instead of within: then
 * the total says so.
 */
function completionTokens(
  fields: JsonObject,
  prompt: number | undefined,
  reasoning: number | undefined,
): number | undefined {
  const completion = count(fields['completion_tokens']);
  const total = count(fields['total_tokens']);
  if (completion === undefined) {
    return total === undefined || prompt === undefined || total < prompt ? undefined : total - prompt;
  }
  const is_beside = reasoning !== undefined && reasoning > 0 && total === (prompt ?? 0) + completion + reasoning;
  return is_beside ? completion + reasoning : completion;
}

/** `input_tokens` leaves out what was cached. With compaction, only `iterations` hold everything. */
function fromMessages(fields: JsonObject): Partial<Usage> {
  const { iterations } = fields;
  const rounds = Array.isArray(iterations) ? iterations.filter(isObject) : [];
  if (rounds.length > 1) return sumOf(rounds.map(fromMessages));
  const usage: Partial<Usage> = {};
  const input = count(fields['input_tokens']);
  const cached = count(fields['cache_read_input_tokens']);
  const written = first(fields['cache_creation_input_tokens'], cacheCreation(fields['cache_creation']));
  const output = count(fields['output_tokens']);
  const details = fields['output_tokens_details'];
  const reasoning = isObject(details) ? count(details['thinking_tokens']) : undefined;
  if (input !== undefined) usage.input_tokens = input;
  if (cached !== undefined) usage.cached_input_tokens = cached;
  if (written !== undefined) usage.cache_write_tokens = written;
  if (output !== undefined) usage.output_tokens = output;
  if (reasoning !== undefined) usage.reasoning_tokens = reasoning;
  return usage;
}

/**
 * The prompt includes what was cached, thoughts are beside the candidates' tokens, and what tools of Google's own
 * brought in is input beside the prompt.
 */
function fromContents(fields: JsonObject): Partial<Usage> {
  const usage: Partial<Usage> = {};
  const prompt = count(fields['promptTokenCount']);
  const of_tools = count(fields['toolUsePromptTokenCount']) ?? 0;
  const cached = count(fields['cachedContentTokenCount']);
  const read = Math.min(cached ?? 0, prompt ?? tokens_max);
  if (prompt !== undefined) usage.input_tokens = Math.min(prompt - read + of_tools, tokens_max);
  if (cached !== undefined) usage.cached_input_tokens = read;
  const candidates = count(fields['candidatesTokenCount']);
  const thoughts = count(fields['thoughtsTokenCount']);
  const total = count(fields['totalTokenCount']);
  if (candidates !== undefined || thoughts !== undefined)
    usage.output_tokens = Math.min((candidates ?? 0) + (thoughts ?? 0), tokens_max);
  else if (total !== undefined && prompt !== undefined) usage.output_tokens = Math.max(0, total - prompt - of_tools);
  if (thoughts !== undefined) usage.reasoning_tokens = thoughts;
  return usage;
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

function first(...values: (Json | undefined)[]): number | undefined {
  return values.map(count).find((value) => value !== undefined);
}

/** A number of tokens that can be believed. */
function count(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= tokens_max
    ? value
    : undefined;
}

function toCompletions(usage: Usage): JsonObject {
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

function toMessages(usage: Usage): JsonObject {
  return {
    input_tokens: usage.input_tokens,
    cache_creation_input_tokens: usage.cache_write_tokens,
    cache_read_input_tokens: usage.cached_input_tokens,
    output_tokens: usage.output_tokens,
    output_tokens_details: { thinking_tokens: usage.reasoning_tokens },
  };
}

function toResponses(usage: Usage): JsonObject {
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
