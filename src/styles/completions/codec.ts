import type { Json, JsonObject } from '../../catalog/model.ts';
import type { CallerCodec, StreamError } from '../codec.ts';
import { words } from '../fields.ts';
import { messages_body } from '../request.ts';
import { completions_errors } from './errors.ts';
import { sameCompletions, sameCompletionsBody } from './passthrough.ts';
import { writeCompletions } from './render-request.ts';
import { answerShown, reasoningShown } from './openrouter.ts';
import { readCompletions, readHead } from './request.ts';
import {
  answerId,
  customTools,
  finishOf,
  isLegacy,
  readCompletionsAnswers,
  writeCompletionsAnswers,
  type CompletionsOptions,
} from './response.ts';
import { completions_search } from './searches.ts';
import { CompletionsReader, CompletionsWriter } from './stream.ts';
import { usage_format } from './usage.ts';

/** Tools of the caller's own; without a word they are functions. */
const own_tools: ReadonlySet<Json> = new Set([null, 'function', 'custom']);

/** The style of `/v1/chat/completions`. */
export const completions: CallerCodec = {
  name: 'completions',
  upstream: {
    renderRequest: writeCompletions,
    has_logprobs: true,
    parseResponse: readCompletionsAnswers,
    openReader: (request_id) => new CompletionsReader(request_id),
  },
  caller: {
    endpoint: {
      path: '/v1/chat/completions',
      summary: 'Chat in the chat-completions style',
      description: 'Takes what the SDKs of OpenAI send, for every chat model; `stream: true` answers events.',
      body: messages_body,
      examples: { text: { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hello' }] } },
      response: 'The answer, or its stream, in the style of this path.',
    },
    errors: completions_errors,
    members: {
      sdk: words(`
    messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
    metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key
    prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier
    stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options
  `),
      vendor: words(`
    cache_control enable_thinking min_p min_tokens reasoning reasoning_format repetition_penalty
    thinking thinking_budget top_a top_k
  `),
      left_out: words('models provider plugins'),
      own: words('include_reasoning usage'),
    },
    turns_field: 'messages',
    isFunction: ({ type = null }) => own_tools.has(type),
    search: completions_search,
    stop_field: 'stop',
    usage: usage_format,
    readRequest: readHead,
    parseRequest: readCompletions,
    renderResponse: (answers, usage, { body }, options) =>
      writeCompletionsAnswers(answers, usage, { ...options, ...ownTools(body) }),
    openWriter: ({ body, wants_usage }, options) =>
      new CompletionsWriter({ ...options, wants_usage, ...ownTools(body) }),
    finishOf,
    answerId,
    heartbeat: Buffer.from(': keep-alive\n\n'),
    errorEvent: ({ type, message, code, param, request_id }: StreamError) => {
      const error = { message, type, param: param ?? null, code: code ?? null, request_id };
      return Buffer.from(`data: ${JSON.stringify({ error })}\n\n`);
    },
    passthrough: { body: sameCompletionsBody, changeAnswer: answerShown, openStream: sameCompletions },
  },
};

/** Reads how the caller has defined its tools, which says how it reads their calls. */
function ownTools(body: JsonObject): Pick<CompletionsOptions, 'legacy_functions' | 'custom_tools' | 'reasoning'> {
  const custom_tools = customTools(body);
  return { legacy_functions: isLegacy(body), ...(custom_tools && { custom_tools }), reasoning: reasoningShown(body) };
}
