import type { Json, JsonObject } from '../catalog/model.ts';
import { rememberByObject } from '../lib/remember.ts';

/**
 * Differences of one upstream model from others of its style, from the route's `options`. All are optional:
 * without them, the request is as today's models of the style take it.
 */
export type Quirks = {
  /** Chat completions: where the limit of the output stands. Without it, where the caller wrote it. */
  max_tokens_field?: 'max_tokens' | 'max_completion_tokens';
  /** Chat completions: false if the upstream refuses `stream_options`. */
  stream_options?: boolean;
  /** Chat completions: false if the upstream knows no `developer` messages. */
  developer_role?: boolean;
  /**
   * Chat completions: where thinking is given back to the upstream. `none`: it refuses messages that hold any, or
   * the thought signatures of calls that Gemini made.
   * Without it, translated requests hold none, and others what the caller sends.
   */
  reasoning_field?: 'reasoning_content' | 'reasoning' | 'none';
  /** Chat completions: false if the upstream takes no `file` parts. */
  document_parts?: boolean;
  /** Chat completions: the longest id of a tool call that the upstream takes. */
  tool_id_length_max?: number;
  /** Chat completions: the form of ids of tool calls; Mistral takes nine letters and digits alone. */
  tool_ids?: 'nine_letters';
  /** Chat completions: false if the upstream knows no `reasoning_effort`. */
  reasoning_effort?: boolean;
  /** Chat completions: true if the upstream takes OpenRouter's `reasoning` object; others are told the effort. */
  reasoning_object?: boolean;
  /**
   * Messages: what the model takes in `thinking`. Gemini: whether it is told a level (`adaptive`) or a `budget`, as
   * before Gemini 3. `always`: it thinks without being told, and cannot be stopped.
   */
  thinking?: 'adaptive' | 'budget' | 'always' | 'none';
  /**
   * Converse: the kind of the model, which decides the form of thinking and `top_k`. Without it, by the id of the model; an
   * inference profile of one's own has no name in its ARN.
   */
  model_family?: 'claude' | 'nova' | 'gpt' | 'other';
  /** Messages: true if the model takes system turns amid the conversation. */
  system_turns?: boolean;
  /** Messages: false if the model refuses to be made to call a tool. */
  forced_tools?: boolean;
  /**
   * Chat completions: whether the upstream serves `/responses` too, and is asked there by callers of that style.
   * `tools`: so are all calls with tools, which the model refuses elsewhere; `always`: so are all.
   */
  responses?: boolean | 'tools' | 'always';
  /** Responses: whether the upstream serves `/responses/compact`; without it, OpenAI alone does. */
  compaction?: boolean;
  /** Chat completions: true if the upstream serves `/completions` too, and is asked there by callers of that path. */
  text_completions?: boolean;
  /** False if the model refuses temperature, top_p and top_k. */
  sampling?: boolean;
  /** The way to make the model answer by a JSON schema. */
  structured_output?: 'native' | 'tool' | 'prompt';
  /** Gemini: false if the model takes no schema for its answer beside tools, as before Gemini 3. */
  format_with_tools?: boolean;
  /** Gemini: false if the model takes no media within results of tools, as before Gemini 3. */
  result_media?: boolean;
};

const values: { readonly [name in Exclude<keyof Quirks, 'tool_id_length_max'>]: readonly Json[] } = {
  max_tokens_field: ['max_tokens', 'max_completion_tokens'],
  stream_options: [true, false],
  developer_role: [true, false],
  reasoning_field: ['reasoning_content', 'reasoning', 'none'],
  document_parts: [true, false],
  tool_ids: ['nine_letters'],
  reasoning_effort: [true, false],
  reasoning_object: [true, false],
  responses: [true, false, 'tools', 'always'],
  compaction: [true, false],
  text_completions: [true, false],
  thinking: ['adaptive', 'budget', 'always', 'none'],
  model_family: ['claude', 'nova', 'gpt', 'other'],
  system_turns: [true, false],
  forced_tools: [true, false],
  sampling: [true, false],
  structured_output: ['native', 'tool', 'prompt'],
  format_with_tools: [true, false],
  result_media: [true, false],
};

const tool_id_length_min = 24;

/** Names of these options of a chat route. */
export const quirk_names: readonly string[] = [...Object.keys(values), 'tool_id_length_max'];

/** The quirks of a route, by its options. */
export const quirksOf = rememberByObject((options: JsonObject) => readQuirks(options).quirks);

/** The quirks among the options of a route, and what is wrong with them. Options of other names are not looked at. */
export function readQuirks(options: JsonObject): { quirks: Quirks; problems: { field: string; message: string }[] } {
  const problems: { field: string; message: string }[] = [];
  const quirks: JsonObject = {};
  for (const [field, allowed] of Object.entries(values)) {
    const value = options[field];
    if (value === undefined) continue;
    if (allowed.includes(value)) quirks[field] = value;
    else problems.push({ field, message: `must be one of ${allowed.map((each) => String(each)).join(', ')}` });
  }
  const length_max = options['tool_id_length_max'];
  if (typeof length_max === 'number' && Number.isSafeInteger(length_max) && length_max >= tool_id_length_min) {
    quirks['tool_id_length_max'] = length_max;
  } else if (length_max !== undefined) {
    const message = `must be a whole number of at least ${tool_id_length_min}`;
    problems.push({ field: 'tool_id_length_max', message });
  }
  return { quirks, problems };
}

/** Takes sampling out of a body for a model that refuses it. */
export function withoutSampling(body: JsonObject): void {
  for (const name of ['temperature', 'top_p', 'top_k']) delete body[name];
}
