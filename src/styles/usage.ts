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

/** What a call is charged for, all kinds of it; `is_counted`: some of it was counted here. */
export type Charged = { usage: Usage; is_counted: boolean };

/**
 * `writes_for_an_hour`: the upstream was asked to keep input in its cache for an hour, so where it does not tell for how
 * long it keeps what it has written, that is an hour.
 */
type CountOptions = { input_tokens_counted: number; is_complete?: boolean; writes_for_an_hour?: boolean | undefined };

/**
 * The counts that a call is charged by, and that its caller is told: the upstream's own, else the input as it was
 * counted here and the output by its bytes. Output that came is never 0. An answer that broke off has at least the
 * output that came.
 */
export function chargedUsage(
  told: Partial<Usage> | undefined,
  delivered: TextSize,
  { input_tokens_counted, is_complete = true, writes_for_an_hour = false }: CountOptions,
): Charged {
  const received = tokensOf(delivered);
  const told_output = told?.output_tokens ?? 0;
  const output_tokens = is_complete ? told_output || received : Math.max(told_output, received);
  const cache_write_tokens = told?.cache_write_tokens ?? 0;
  const for_an_hour = told?.cache_write_1h_tokens ?? (writes_for_an_hour ? cache_write_tokens : 0);
  const usage: Usage = {
    input_tokens: told?.input_tokens ?? input_tokens_counted,
    cached_input_tokens: told?.cached_input_tokens ?? 0,
    cache_write_tokens,
    cache_write_1h_tokens: Math.min(for_an_hour, cache_write_tokens),
    output_tokens,
    reasoning_tokens: Math.min(told?.reasoning_tokens ?? 0, output_tokens),
  };
  return { usage, is_counted: told?.input_tokens === undefined || output_tokens !== told.output_tokens };
}

/** Counts that a `usage` object of each style must have, and others that must be right where they are there. */
const counts_of: { readonly [style in CallerStyle]: { must: readonly string[]; may: readonly string[] } } = {
  completions: { must: ['prompt_tokens', 'completion_tokens'], may: ['total_tokens'] },
  messages: {
    must: ['input_tokens', 'output_tokens'],
    may: ['cache_creation_input_tokens', 'cache_read_input_tokens'],
  },
  responses: { must: ['input_tokens', 'output_tokens'], may: ['total_tokens'] },
};

/** True if whoever reads these fields of an upstream's `usage` object finds the counts of `usage`. */
export function tellsUsage(style: CallerStyle, fields: Json | undefined, usage: Usage): boolean {
  if (!isObject(fields)) return false;
  if (style === 'messages' && roundsOf(fields).length > 1) return true; // the style tells the sum nowhere
  if (style === 'messages' && (hourOf(fields['cache_creation']) ?? 0) !== usage.cache_write_1h_tokens) return false;
  const ours = writeUsage(style, usage);
  const { must, may } = counts_of[style];
  return (
    must.every((name) => fields[name] === ours[name]) &&
    may.every((name) => (fields[name] ?? ours[name]) === ours[name])
  );
}

/** An upstream's `usage` object with the counts of `usage`; what else it says stays. */
export function correctUsage(style: CallerStyle, fields: Json | undefined, usage: Usage): JsonObject {
  const corrected: JsonObject = isObject(fields) ? { ...fields } : {};
  for (const [name, value] of Object.entries(writeUsage(style, usage))) {
    const before = corrected[name];
    corrected[name] = isObject(value) && isObject(before) ? { ...before, ...value } : value;
  }
  return corrected;
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
  const thought = isObject(fields['output_tokens_details']) ? fields['output_tokens_details'] : {};
  const reported = { output: count(fields['output_tokens']), reasoning: count(thought['reasoning_tokens']) };
  return { ...usage, ...outputOf(reported, beyond(fields['total_tokens'], input, reported.output)) };
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
  const thought = isObject(fields['completion_tokens_details']) ? fields['completion_tokens_details'] : {};
  const reported = {
    output: completionTokens(fields, prompt),
    reasoning: first(thought['reasoning_tokens'], fields['reasoning_tokens']),
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

/** Tokens that a total has beyond the parts that it is made of; 0 if it has none. */
function beyond(total: Json | undefined, ...parts: (number | undefined)[]): number {
  const whole = count(total);
  if (whole === undefined || parts.includes(undefined)) return 0;
  return Math.max(
    0,
    parts.reduce<number>((rest, part) => rest - (part ?? 0), whole),
  );
}

/**
 * All output, and the reasoning in it. Some servers count reasoning beside the output instead of within: then the
 * total has a rest, with or without its name, or there is more reasoning than output.
 */
function outputOf(told: { output: number | undefined; reasoning: number | undefined }, rest: number): Partial<Usage> {
  const { output, reasoning } = told;
  const usage: Partial<Usage> = {};
  if (output !== undefined) {
    const beside = rest > 0 ? rest : reasoning !== undefined && reasoning > output ? reasoning : 0;
    usage.output_tokens = Math.min(output + beside, tokens_max);
    if (reasoning === undefined && rest > 0) usage.reasoning_tokens = rest;
  }
  if (reasoning !== undefined) usage.reasoning_tokens = reasoning;
  return usage;
}

/** `input_tokens` leaves out what was cached. With compaction, only `iterations` hold everything. */
function fromMessages(fields: JsonObject): Partial<Usage> {
  const rounds = roundsOf(fields);
  if (rounds.length > 1) return sumOf(rounds.map(fromMessages));
  const usage: Partial<Usage> = {};
  const input = count(fields['input_tokens']);
  const cached = count(fields['cache_read_input_tokens']);
  const written = first(fields['cache_creation_input_tokens'], cacheCreation(fields['cache_creation']));
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
  const shown = (candidates ?? 0) + (thoughts ?? 0);
  const rest = beyond(fields['totalTokenCount'], prompt, of_tools, shown);
  const is_told = candidates !== undefined || thoughts !== undefined;
  if (is_told || rest > 0 || (count(fields['totalTokenCount']) !== undefined && prompt !== undefined))
    usage.output_tokens = Math.min(shown + rest, tokens_max);
  if (thoughts !== undefined) usage.reasoning_tokens = thoughts;
  else if (candidates !== undefined && rest > 0) usage.reasoning_tokens = rest;
  return usage;
}

function cacheCreation(value: Json | undefined): number | undefined {
  if (!isObject(value)) return undefined;
  return (count(value['ephemeral_5m_input_tokens']) ?? 0) + (count(value['ephemeral_1h_input_tokens']) ?? 0);
}

function hourOf(value: Json | undefined): number | undefined {
  return isObject(value) ? count(value['ephemeral_1h_input_tokens']) : undefined;
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
  const { cache_write_tokens, cache_write_1h_tokens } = usage;
  const cache_creation = {
    ephemeral_5m_input_tokens: cache_write_tokens - cache_write_1h_tokens,
    ephemeral_1h_input_tokens: cache_write_1h_tokens,
  };
  return {
    input_tokens: usage.input_tokens,
    cache_creation_input_tokens: cache_write_tokens,
    ...(cache_write_1h_tokens > 0 && { cache_creation }),
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
