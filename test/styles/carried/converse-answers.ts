import type { JsonObject } from '../../../src/catalog/model.ts';
import type { ContentsAnswerRow } from './gemini-answers.ts';

/** Parts of a whole answer of Bedrock's Converse, and their forms for callers of both styles. */

const ended = (stopReason: string, ...content: JsonObject[]): JsonObject => ({
  output: { message: { role: 'assistant', content } },
  stopReason,
});
const chosen = (message: JsonObject, finish_reason = 'stop'): JsonObject => ({
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
});
const content = (stop_reason: string, ...blocks: JsonObject[]): JsonObject => ({ content: blocks, stop_reason });
const text = { type: 'text', text: 'A' };
const both = (completions: string, messages: string) => ({
  completions: chosen({ content: 'A' }, completions),
  messages: content(messages, text),
});

export const plainest_of_converse: JsonObject = {
  ...ended('end_turn', { text: 'A' }),
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  metrics: { latencyMs: 5 },
};

export const answers_of_converse: readonly ContentsAnswerRow[] = [
  {
    part: 'an id and the name of the model, which Converse does not say',
    how: { completions: 'an id of our own; the public name', messages: 'the same' },
    give: {},
    get: {
      completions: { id: 'chatcmpl-req_1', model: 'public', ...chosen({ content: 'A', refusal: null }) },
      messages: {
        id: 'msg_req_1',
        type: 'message',
        model: 'public',
        ...content('end_turn', text),
        stop_sequence: null,
      },
    },
  },
  {
    part: 'text; citationsContent',
    how: { completions: 'one `content`; the text, without its sources', messages: '`text`; the same' },
    give: ended(
      'end_turn',
      { text: 'A' },
      { citationsContent: { content: [{ text: 'B' }], citations: [{ title: 'x' }] } },
    ),
    get: { completions: chosen({ content: 'AB' }), messages: content('end_turn', text, { type: 'text', text: 'B' }) },
  },
  {
    part: 'toolUse',
    how: { completions: '`tool_calls`', messages: '`tool_use`' },
    give: ended('tool_use', { toolUse: { toolUseId: 'a', name: 'f', input: { x: 1 } } }),
    get: {
      completions: chosen(
        { content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }] },
        'tool_calls',
      ),
      messages: content('tool_use', { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } }),
    },
  },
  {
    part: 'reasoningContent',
    how: {
      completions: '`reasoning_content`; what is signed or encrypted, in `reasoning_details`',
      messages: '`thinking` with its signature; `redacted_thinking`',
    },
    give: ended(
      'end_turn',
      { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'c2ln' } } },
      { reasoningContent: { redactedContent: 'ZW5j' } },
      { text: 'A' },
    ),
    get: {
      completions: chosen({ content: 'A', reasoning_content: 'Hm.' }),
      messages: content(
        'end_turn',
        { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
        { type: 'redacted_thinking', data: 'ZW5j' },
        text,
      ),
    },
  },
  {
    part: 'stopReason: stop_sequence',
    how: { completions: '`stop`', messages: '`stop_sequence`, without saying which' },
    give: { stopReason: 'stop_sequence' },
    get: both('stop', 'stop_sequence'),
  },
  {
    part: 'stopReason: max_tokens, model_context_window_exceeded',
    how: { completions: '`length`', messages: '`max_tokens`' },
    give: { stopReason: 'model_context_window_exceeded' },
    get: both('length', 'max_tokens'),
  },
  {
    part: 'stopReason: guardrail_intervened, content_filtered',
    how: { completions: '`content_filter`', messages: '`refusal`' },
    give: { stopReason: 'guardrail_intervened' },
    get: both('content_filter', 'refusal'),
  },
  {
    part: 'usage',
    how: {
      completions: '`prompt_tokens` with what was read from the cache and written to it',
      messages: '`cache_read_input_tokens`, `cache_creation_input_tokens`; input without them',
    },
    give: {
      usage: { inputTokens: 30, outputTokens: 20, totalTokens: 62, cacheReadInputTokens: 8, cacheWriteInputTokens: 4 },
    },
    get: {
      completions: {
        usage: {
          prompt_tokens: 42,
          completion_tokens: 20,
          total_tokens: 62,
          prompt_tokens_details: { cached_tokens: 8 },
        },
      },
      messages: {
        usage: { input_tokens: 30, cache_read_input_tokens: 8, cache_creation_input_tokens: 4, output_tokens: 20 },
      },
    },
  },
  {
    part: 'metrics, trace, performanceConfig, serviceTier',
    how: { completions: 'left out', messages: 'left out' },
    give: { trace: { guardrail: {} }, performanceConfig: { latency: 'standard' } },
    get: both('stop', 'end_turn'),
  },
];

/** Answers that are none: the call goes to the next route, or fails. */
export const failures_of_converse: readonly { part: string; how: string; give: JsonObject }[] = [
  {
    part: 'stopReason: malformed_model_output, malformed_tool_use',
    how: 'no answer: the next route is asked; in a stream that has begun, an error',
    give: { stopReason: 'malformed_tool_use' },
  },
];
