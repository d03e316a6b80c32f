import type { Json, JsonObject, UseUnit } from '../catalog/model.ts';
import type { SearchFailure, SearchResult } from '../web-search/search.ts';

/**
 * The neutral form of a chat, which all styles are parsed into and rendered from. Only translation uses it: where caller
 * and upstream speak the same style, bytes are relayed.
 */

export type Source = { type: 'base64'; media_type: string; data: string } | { type: 'url'; url: string };

/** `thought_signature`: Gemini's `thoughtSignature` of this very part, which it wants back with it. */
export type TextPart = { type: 'text'; text: string; thought_signature?: string; cache_control?: Json };

/**
 * A part of a turn. Tool calls and thinking are in assistant turns, tool results in user turns. `at` is the
 * part's position in the caller's body: not every upstream takes every part.
 */
export type Part =
  | TextPart
  | { type: 'image'; source: Source; detail?: string; cache_control?: Json; at: string }
  | {
      type: 'document';
      source: Source | { type: 'text'; text: string };
      title?: string;
      cache_control?: Json;
      at: string;
    }
  | { type: 'audio'; format: string; data: string; at: string }
  /** `arguments` is the JSON text as it was given; weak models write some that is none. `thought_signature`: as of text. */
  | {
      type: 'tool_call';
      id: string;
      name: string;
      arguments: string;
      thought_signature?: string;
      cache_control?: Json;
    }
  | { type: 'tool_result'; id: string; parts: Part[]; is_error: boolean; cache_control?: Json }
  /** Without a signature it cannot be given back to an upstream of messages style. */
  | { type: 'thinking'; text: string; signature?: string }
  | { type: 'redacted_thinking'; data: string }
  | { type: 'refusal'; text: string }
  /** In answers alone. */
  | ({ type: 'web_search' } & WebSearch)
  | ({ type: 'made_image' } & MadeImage);

/** An image that the service made for the model. Without `base64` there is none: it failed. */
export type MadeImage = { id: string; prompt: string; base64?: string; format?: string; size?: string };

/** A search that the service ran for the model. With a `failure` there are no results. */
export type WebSearch = {
  id: string;
  query: string;
  results: readonly SearchResult[];
  failure?: SearchFailure;
};

export type Turn = { role: 'system' | 'user' | 'assistant'; parts: Part[] };

export type Tool = {
  name: string;
  description?: string;
  schema: JsonObject;
  strict?: boolean;
  cache_control?: Json;
};

/** `any`: some tool must be called; `one`: this one. */
export type ToolChoice = { mode: 'auto' | 'none' | 'any' } | { mode: 'one'; name: string };

export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

export type AnswerFormat =
  | { type: 'json' }
  | { type: 'json_schema'; name: string; description?: string; schema: JsonObject; strict?: boolean };

export type Conversation = {
  /** In order; leading system turns are the system prompt. */
  turns: Turn[];
  tools: Tool[];
  tool_choice?: ToolChoice | undefined;
  parallel_tool_calls?: boolean | undefined;
  max_tokens?: number | undefined;
  temperature?: number | undefined;
  top_p?: number | undefined;
  top_k?: number | undefined;
  seed?: number | undefined;
  stop: string[];
  format?: AnswerFormat | undefined;
  thinking?: { mode: 'off' } | { mode: 'on'; budget_tokens?: number; effort?: Effort } | undefined;
  /** The caller's own name for whoever is behind the request. */
  user?: string | undefined;
  /** The caller wants the probability of each token of the text, and of so many others in its place. */
  logprobs?: number | undefined;
};

/** A token, with the natural logarithm of its probability. */
export type Likelihood = { token: string; logprob: number };

/** A token of the text, and the likeliest ones in its place. */
export type TokenLikelihood = Likelihood & { others: readonly Likelihood[] };

/** `pause`: the upstream wants to be asked again to go on. */
export type FinishReason = 'stop' | 'stop_sequence' | 'length' | 'tool_calls' | 'refusal' | 'pause';

/**
 * Tokens as they are priced: the four kinds do not overlap, reasoning is a part of the output. Both
 * styles count differently (chat completions put cached tokens into the prompt's, messages do not).
 */
export type Usage = {
  input_tokens: number;
  cached_input_tokens: number;
  cache_write_tokens: number;
  /** A part of those written: for an hour instead of five minutes. */
  cache_write_1h_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  /** Beside the tokens: tools that the provider ran, or searches. */
  tool_calls?: ToolCalls;
};

/** Calls of tools that a provider runs, and searches of a reranker, by the units of their prices. */
export type ToolCalls = { readonly [unit in UseUnit]?: number };

/** An answer that is not streamed: text, thinking, tool calls, refusals in order. */
export type ChatAnswer = {
  id?: string | undefined;
  parts: Part[];
  finish: { reason: FinishReason; stop_sequence?: string };
  /** As far as the upstream told it. */
  usage?: Partial<Usage> | undefined;
  /** The likelihoods of the tokens of its text; empty and absent if the upstream reports none. */
  logprobs?: readonly TokenLikelihood[] | undefined;
};

/** An event of a stream, whatever its style. `index` counts tool calls. */
export type ChatEvent =
  | { type: 'start'; id?: string }
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string }
  | { type: 'signature'; signature: string }
  | { type: 'redacted_thinking'; data: string }
  | { type: 'refusal'; text: string }
  | { type: 'tool_call'; index: number; id: string; name: string; thought_signature?: string }
  /** Gemini's, of the text so far. */
  | { type: 'text_signature'; thought_signature: string }
  | { type: 'tool_arguments'; index: number; json: string }
  | { type: 'web_search_begun'; id: string; query: string }
  | ({ type: 'web_search' } & WebSearch)
  | { type: 'image_begun'; id: string; prompt: string }
  | ({ type: 'made_image' } & MadeImage)
  /** The usage so far: later values replace earlier ones, they are never added. */
  | { type: 'usage'; usage: Partial<Usage> }
  | { type: 'finish'; reason: FinishReason; stop_sequence?: string }
  /** The finish reason has come; `finish` follows after the rest of the response. */
  | { type: 'ending' }
  /** The upstream said that the stream is complete. A stream that ends without it was cut. */
  | { type: 'end' }
  /** Of the text that follows. */
  | { type: 'logprobs'; tokens: readonly TokenLikelihood[] }
  | { type: 'ping' }
  | { type: 'error'; error_type: string; message: string; code?: string };
