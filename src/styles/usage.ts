import type { Json, JsonObject } from '../catalog/model.ts';
import type { Usage } from './conversation.ts';
import { isObject } from './fields.ts';

/**
 * More tokens than any model reads or writes in one call: an upstream that reports more reports nothing.
 * Money is made of these numbers.
 */
export const tokens_max = 1_000_000_000;

/**
 * Reads the `usage` object of an upstream, in kinds that do not overlap; undefined if it is empty. Kinds that
 * it does not report are absent: in streams of messages style they come in several events.
 */
export type UsageReader = (fields: Json | undefined) => Partial<Usage> | undefined;

/** The `usage` object of a style that callers speak. */
export type UsageFormat = {
  read: UsageReader;
  write(usage: Usage): JsonObject;
  /** Returns true if whoever reads these fields of an upstream's `usage` object finds the counts of `usage`. */
  reports(fields: Json | undefined, usage: Usage): boolean;
  /** An upstream's `usage` object with the counts of `usage`; what else it says stays. */
  correct(fields: Json | undefined, usage: Usage): JsonObject;
};

/** Makes a reader of one that takes the members of an object. */
function usageReader(read: (fields: JsonObject) => Partial<Usage>): UsageReader {
  return (fields) => {
    if (!isObject(fields)) return undefined;
    const usage = read(fields);
    return Object.keys(usage).length === 0 ? undefined : usage;
  };
}

type FormatParts = {
  read: (fields: JsonObject) => Partial<Usage>;
  write: (usage: Usage) => JsonObject;
  /** Counts that the object must have. */
  must: readonly string[];
  /** Others that must be right where they are there. */
  may: readonly string[];
  /** Decides by what the names do not show; undefined leaves it to them. */
  judge?: (fields: JsonObject, usage: Usage) => boolean | undefined;
};

/** Makes the format of a style. */
export function usageFormat({ read, write, must, may, judge }: FormatParts): UsageFormat {
  return {
    read: usageReader(read),
    write,
    reports: (fields, usage) => {
      if (!isObject(fields)) return false;
      const judged = judge?.(fields, usage);
      if (judged !== undefined) return judged;
      const ours = write(usage);
      return (
        must.every((name) => fields[name] === ours[name]) &&
        may.every((name) => (fields[name] ?? ours[name]) === ours[name])
      );
    },
    correct: (fields, usage) => {
      const corrected: JsonObject = isObject(fields) ? { ...fields } : {};
      for (const [name, value] of Object.entries(write(usage))) {
        const before = corrected[name];
        corrected[name] = isObject(value) && isObject(before) ? { ...before, ...value } : value;
      }
      return corrected;
    },
  };
}

/** Costs in the `usage` object of OpenRouter, Perplexity, xAI and DeepInfra: what the operator pays is not the caller's. */
const cost_names: readonly string[] = ['cost', 'cost_details', 'is_byok', 'cost_in_usd_ticks', 'estimated_cost'];

/** Returns true if an upstream's `usage` object says what the call costs the operator. */
export function tellsCost(fields: Json | undefined): boolean {
  return isObject(fields) && [...cost_names, tools_name].some((name) => name in fields);
}

/** Perplexity's counts of tools by their names, each with its cost beside it. */
const tools_name = 'tool_calls_details';

/** The `usage` object without the upstream's costs. */
export function withoutCost(fields: JsonObject): JsonObject {
  const counts = { ...fields };
  for (const name of cost_names) delete counts[name];
  const tools = counts[tools_name];
  if (!isObject(tools)) return counts;
  const counted = Object.entries(tools).flatMap(([name, tool]) =>
    isObject(tool) ? [[name, { invocation: tool['invocation'] ?? null }] as const] : [],
  );
  return { ...counts, [tools_name]: Object.fromEntries(counted) };
}

/** The `usage` object without the upstream's costs, and with the caller's if that is asked for, as OpenRouter writes it. */
export function withCost(fields: JsonObject, usage: Usage, cost: ((usage: Usage) => number) | undefined): JsonObject {
  const counts = withoutCost(fields);
  if (!cost) return counts;
  return { ...counts, cost: cost(usage), is_byok: false, cost_details: { upstream_inference_cost: null } };
}

/** The usage of a call that has not begun. */
export const no_usage: Usage = {
  input_tokens: 0,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  cache_write_1h_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
};

/** The usage that a call is charged for, all kinds of it; `is_counted`: some of it was counted here. */
export type ChargedUsage = { usage: Usage; is_counted: boolean };

/**
 * `writes_for_an_hour`: the upstream was asked to keep input in its cache for an hour, so where it does not say for how
 * long it keeps what it has written, that is an hour.
 */
type CountOptions = { input_tokens_counted: number; is_complete?: boolean; writes_for_an_hour?: boolean | undefined };

/**
 * The counts that a call is charged by, and that its caller reads: the upstream's own, else the input as it was
 * counted here and the output by its bytes. Output that came is never 0. An answer that broke off has at least the
 * output that came.
 */
export function chargedUsage(
  reported: Partial<Usage> | undefined,
  delivered: TextSize,
  { input_tokens_counted, is_complete = true, writes_for_an_hour = false }: CountOptions,
): ChargedUsage {
  const received = tokensOf(delivered);
  const reported_output = reported?.output_tokens ?? 0;
  const output_tokens = is_complete ? reported_output || received : Math.max(reported_output, received);
  const has_input = reported?.input_tokens !== undefined;
  // What is counted here is all of the input: a cached part beside it would be charged twice.
  const cached_input_tokens = has_input ? (reported.cached_input_tokens ?? 0) : 0;
  const cache_write_tokens = has_input ? (reported.cache_write_tokens ?? 0) : 0;
  const for_an_hour = reported?.cache_write_1h_tokens ?? (writes_for_an_hour ? cache_write_tokens : 0);
  const usage: Usage = {
    input_tokens: reported?.input_tokens ?? input_tokens_counted,
    cached_input_tokens,
    cache_write_tokens,
    cache_write_1h_tokens: Math.min(for_an_hour, cache_write_tokens),
    output_tokens,
    reasoning_tokens: Math.min(reported?.reasoning_tokens ?? 0, output_tokens),
    ...(reported?.tool_calls && { tool_calls: reported.tool_calls }),
  };
  return { usage, is_counted: !has_input || output_tokens !== reported.output_tokens };
}

/** Tokens that a total has beyond the parts that it is made of; 0 if it has none. */
export function beyond(total: Json | undefined, ...parts: (number | undefined)[]): number {
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
export function outputOf(
  reported: { output: number | undefined; reasoning: number | undefined },
  rest: number,
): Partial<Usage> {
  const { output, reasoning } = reported;
  const usage: Partial<Usage> = {};
  if (output !== undefined) {
    const beside = rest > 0 ? rest : reasoning !== undefined && reasoning > output ? reasoning : 0;
    usage.output_tokens = Math.min(output + beside, tokens_max);
    if (reasoning === undefined && rest > 0) usage.reasoning_tokens = rest;
  }
  if (reasoning !== undefined) usage.reasoning_tokens = reasoning;
  return usage;
}

/** Tokens that were written to the cache for an hour, in an object of that name. */
export function hourOf(value: Json | undefined): number | undefined {
  return isObject(value) ? count(value['ephemeral_1h_input_tokens']) : undefined;
}

/** The first of these that is a number of tokens. */
export function firstCount(...values: (Json | undefined)[]): number | undefined {
  return values.map(count).find((value) => value !== undefined);
}

/** A number of tokens that can be believed. */
export function count(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= tokens_max
    ? value
    : undefined;
}

/** Bytes of text as they are priced where nobody counts tokens: ASCII is denser in tokens than the rest. */
export type TextSize = { ascii_bytes: number; other_bytes: number };

/** Adds the UTF-8 bytes of `text` to `size`. A lone surrogate counts as the three bytes that replace it. */
export function addText(size: TextSize, text: string): void {
  const total_bytes = Buffer.byteLength(text, 'utf8');
  const ascii_bytes = total_bytes === text.length ? total_bytes : asciiIn(text);
  size.ascii_bytes += ascii_bytes;
  size.other_bytes += total_bytes - ascii_bytes;
}

/** Tokens where nobody counts them, as they usually come out: 4 bytes of ASCII to one, 1.5 of other text. */
export function tokensOf({ ascii_bytes, other_bytes }: TextSize): number {
  return Math.ceil(ascii_bytes / 4 + other_bytes / 1.5);
}

function asciiIn(text: string): number {
  let ascii = 0;
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) < 0x80) ascii++;
  return ascii;
}
