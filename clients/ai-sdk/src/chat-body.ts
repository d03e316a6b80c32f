import type { JSONObject, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { cache_mark, unsealed } from './chat-prompt.ts';
import { isObject } from './namespaces.ts';

/** Options of the model of `@ai-sdk/openai`. All others are fields of the request, as they are. */
const known_options: ReadonlySet<string> = new Set([
  'allowedTools',
  'compactionTrigger',
  'contextManagement',
  'conversation',
  'forceReasoning',
  'include',
  'includeWebSearchSources',
  'instructions',
  'logprobs',
  'maxToolCalls',
  'metadata',
  'parallelToolCalls',
  'passThroughUnsupportedFiles',
  'previousResponseId',
  'promptCacheKey',
  'promptCacheOptions',
  'promptCacheRetention',
  'reasoningContext',
  'reasoningEffort',
  'reasoningEffortUpdate',
  'reasoningMode',
  'reasoningSummary',
  'safetyIdentifier',
  'serviceTier',
  'store',
  'strictJsonSchema',
  'systemMessageMode',
  'textFormat',
  'textVerbosity',
  'truncation',
  'user',
]);

/** Fields that the call itself has. */
const reserved_fields: ReadonlySet<string> = new Set(['model', 'input', 'stream']);

export type SplitOptions = { options: JSONObject; fields: JSONObject };

/** Splits `providerOptions.medley` into what the model below reads and what goes into the body. */
export function splitOptions(all: JSONObject = {}): SplitOptions {
  const entries = Object.entries(all).filter(([name, value]) => value !== undefined && !reserved_fields.has(name));
  return {
    options: Object.fromEntries(entries.filter(([name]) => known_options.has(name))),
    fields: Object.fromEntries(entries.filter(([name]) => !known_options.has(name))),
  };
}

/** Settings that the model below does not send, by the names of its warnings. */
export function sentSettings(options: LanguageModelV4CallOptions): Map<string, [field: string, value: unknown]> {
  const { temperature, topP, topK, stopSequences, seed, presencePenalty, frequencyPenalty } = options;
  const all: [string, string, unknown][] = [
    ['temperature', 'temperature', temperature],
    ['topP', 'top_p', topP],
    ['topK', 'top_k', topK],
    ['stopSequences', 'stop', stopSequences?.length === 0 ? undefined : stopSequences],
    ['seed', 'seed', seed],
    ['presencePenalty', 'presence_penalty', presencePenalty],
    ['frequencyPenalty', 'frequency_penalty', frequencyPenalty],
  ];
  return new Map(all.flatMap(([name, field, value]) => (value === undefined ? [] : [[name, [field, value]]])));
}

/** Completes the body that the model below has written. */
export function completeBody(
  body: Record<string, unknown>,
  more: { model: string; fields: JSONObject; settings: Iterable<[string, unknown]> },
): Record<string, unknown> {
  const { input } = body;
  return {
    ...body,
    ...Object.fromEntries(more.settings),
    ...more.fields,
    model: more.model,
    input: Array.isArray(input) ? input.map(editItem) : input,
    usage: { include: true },
  };
}

function editItem(item: unknown): unknown {
  if (!isObject(item)) return item;
  if (item['type'] === 'reasoning' && item['encrypted_content'] === unsealed) {
    const { encrypted_content: _, ...plain } = item;
    return plain;
  }
  const { content, output } = item;
  return {
    ...item,
    ...(Array.isArray(content) && { content: content.map(editPart) }),
    ...(Array.isArray(output) && { output: output.map(editPart) }),
  };
}

function editPart(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { prompt_cache_breakpoint: mark, ...others } = part;
  const cached = isObject(mark) && cache_mark in mark ? { ...others, cache_control: mark[cache_mark] } : part;
  return spoken(cached) ?? cached;
}

const audio_form = /^data:audio\/([a-z0-9.+-]+);base64,/i;

const audio_formats: Readonly<Record<string, string>> = {
  mpeg: 'mp3',
  mp3: 'mp3',
  wav: 'wav',
  wave: 'wav',
  'x-wav': 'wav',
  'vnd.wave': 'wav',
};

/** A recording is no document. */
function spoken(part: Record<string, unknown>): Record<string, unknown> | undefined {
  const { type, file_data, cache_control } = part;
  const match = type === 'input_file' && typeof file_data === 'string' ? audio_form.exec(file_data) : null;
  if (!match || typeof file_data !== 'string') return undefined;
  const kind = (match[1] ?? '').toLowerCase();
  const input_audio = { data: file_data.slice(match[0].length), format: audio_formats[kind] ?? kind };
  return { type: 'input_audio', input_audio, ...(cache_control !== undefined && { cache_control }) };
}
