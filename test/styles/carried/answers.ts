import type { JsonObject } from '../../../src/catalog/model.ts';
import type { CallerStyle } from '../by-name.ts';
import { plainest_of_contents } from './gemini-answers.ts';

/** A part of a whole answer, and its form for a caller of the other style. */
export type AnswerRow = {
  part: string;
  how: string;
  /** Of the upstream's answer, in place of what the plainest has. */
  give: JsonObject;
  /** Of the caller's answer. */
  get: JsonObject;
  /** Of the caller's request, beside the plainest. */
  ask?: JsonObject;
};

const message = (fields: JsonObject, finish_reason: string | null = 'stop'): JsonObject => ({
  choices: [{ index: 0, message: { role: 'assistant', content: null, ...fields }, finish_reason }],
});
const chosen = (fields: JsonObject, finish_reason = 'stop'): JsonObject => ({
  choices: [{ index: 0, message: { role: 'assistant', ...fields }, logprobs: null, finish_reason }],
});
const call = (id: string, text: string): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: text },
});
const use = (id: string, input: JsonObject): JsonObject => ({ type: 'tool_use', id, name: 'f', input });
const text = { type: 'text', text: 'A' };

export const plainest_answer: { readonly [style in CallerStyle]: JsonObject } = {
  completions: { id: 'up-1', object: 'chat.completion', model: 'upstream', ...message({ content: 'A' }) },
  messages: {
    id: 'up-1',
    type: 'message',
    role: 'assistant',
    model: 'upstream',
    content: [text],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  responses: {
    id: 'up-1',
    object: 'response',
    status: 'completed',
    model: 'upstream',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'A' }] }],
  },
  gemini: plainest_of_contents,
};

export const answers_of_messages: readonly AnswerRow[] = [
  {
    part: 'id, model',
    how: 'an id of our own; the public name',
    give: {},
    get: {
      id: 'chatcmpl-req_1',
      object: 'chat.completion',
      created: 5,
      model: 'public',
      ...chosen({ content: 'A', refusal: null }),
    },
  },
  { part: 'text blocks', how: 'one `content`', give: { content: [text, text] }, get: chosen({ content: 'AA' }) },
  {
    part: 'thinking',
    how: '`reasoning_content`; with its signature in `reasoning_details`, to be sent back',
    give: {
      content: [{ type: 'thinking', thinking: 'Hm.', signature: 's' }, { type: 'redacted_thinking', data: 'd' }, text],
    },
    get: chosen({
      content: 'A',
      reasoning_content: 'Hm.',
      reasoning_details: [
        { type: 'reasoning.text', text: 'Hm.', signature: 's', format: 'anthropic-claude-v1', index: 0 },
        { type: 'reasoning.encrypted', data: 'd', format: 'anthropic-claude-v1', index: 1 },
      ],
    }),
  },
  {
    part: 'tool_use',
    how: '`tool_calls`; `content` is null without text',
    give: { content: [use('a', { x: 1 }), use('b', {})], stop_reason: 'tool_use' },
    get: chosen({ content: null, tool_calls: [call('a', '{"x":1}'), call('b', '{}')] }, 'tool_calls'),
  },
  {
    part: 'tool_use of a function that stands for a custom tool',
    how: '`tool_calls` of type `custom`, with the text as its `input`',
    ask: { tools: [{ type: 'custom', custom: { name: 'f' } }] },
    give: { content: [use('a', { input: 'x' })], stop_reason: 'tool_use' },
    get: chosen({ tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'f', input: 'x' } }] }, 'tool_calls'),
  },
  {
    part: 'tool_use, for callers with `functions`',
    how: '`function_call`, the first of them',
    ask: { functions: [{ name: 'f' }] },
    give: { content: [use('a', {})], stop_reason: 'tool_use' },
    get: chosen({ content: null, function_call: { name: 'f', arguments: '{}' } }, 'function_call'),
  },
  {
    part: 'tool_use with stop_reason end_turn',
    how: '`tool_calls`',
    give: { content: [use('a', {})] },
    get: chosen({ tool_calls: [call('a', '{}')] }, 'tool_calls'),
  },
  {
    part: 'blocks of the provider’s own tools, citations',
    how: 'left out',
    give: {
      content: [
        { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
        { ...text, citations: [{}] },
      ],
    },
    get: chosen({ content: 'A' }),
  },
  { part: 'stop_reason: end_turn', how: '`stop`', give: {}, get: chosen({}, 'stop') },
  {
    part: 'stop_reason: stop_sequence',
    how: '`stop`',
    give: { stop_reason: 'stop_sequence', stop_sequence: 'END' },
    get: chosen({}, 'stop'),
  },
  {
    part: 'stop_reason: max_tokens, model_context_window_exceeded',
    how: '`length`',
    give: { stop_reason: 'model_context_window_exceeded' },
    get: chosen({}, 'length'),
  },
  {
    part: 'stop_reason: tool_use',
    how: '`tool_calls`; `stop` if there is none',
    give: { stop_reason: 'tool_use' },
    get: chosen({}, 'stop'),
  },
  { part: 'stop_reason: pause_turn', how: '`stop`', give: { stop_reason: 'pause_turn' }, get: chosen({}, 'stop') },
  {
    part: 'stop_reason: refusal',
    how: '`content_filter`, the explanation in `refusal`',
    give: { content: [], stop_reason: 'refusal', stop_details: { type: 'refusal', explanation: 'No.' } },
    get: chosen({ content: null, refusal: 'No.' }, 'content_filter'),
  },
  { part: 'stop_reason: others', how: '`stop`', give: { stop_reason: 'something_new' }, get: chosen({}, 'stop') },
  {
    part: 'usage',
    how: '`prompt_tokens` is the sum of input, cache reads and cache writes',
    give: {
      usage: {
        input_tokens: 3,
        cache_creation_input_tokens: 12_304,
        cache_read_input_tokens: 10,
        output_tokens: 550,
        output_tokens_details: { thinking_tokens: 50 },
      },
    },
    get: {
      usage: {
        prompt_tokens: 12_317,
        completion_tokens: 550,
        total_tokens: 12_867,
        prompt_tokens_details: { cached_tokens: 10, cache_write_tokens: 12_304 },
        completion_tokens_details: { reasoning_tokens: 50 },
      },
    },
  },
  {
    part: 'usage with iterations (compaction, fallback)',
    how: 'the sum of all',
    give: {
      usage: {
        input_tokens: 1,
        output_tokens: 1,
        iterations: [
          { input_tokens: 10, output_tokens: 2 },
          { input_tokens: 20, output_tokens: 3, cache_read_input_tokens: 5 },
        ],
      },
    },
    get: { usage: { prompt_tokens: 35, completion_tokens: 5 } },
  },
];

export const answers_of_completions: readonly AnswerRow[] = [
  {
    part: 'id, model',
    how: 'an id of our own; the public name',
    give: {},
    get: {
      id: 'msg_req_1',
      type: 'message',
      role: 'assistant',
      model: 'public',
      content: [text],
      stop_reason: 'end_turn',
      stop_sequence: null,
    },
  },
  { part: 'content', how: 'a text block; none if it is empty', give: message({ content: '' }), get: { content: [] } },
  {
    part: 'content as parts (some servers)',
    how: 'a text block',
    give: message({ content: [text, text] }),
    get: { content: [{ type: 'text', text: 'AA' }] },
  },
  {
    part: 'reasoning_content, reasoning',
    how: '`thinking` with an empty signature, before the text',
    give: message({ content: 'A', reasoning_content: 'Hm.' }),
    get: { content: [{ type: 'thinking', thinking: 'Hm.', signature: '' }, text] },
  },
  {
    part: 'reasoning_details',
    how: '`thinking` and `redacted_thinking` with what seals them',
    give: message({
      content: 'A',
      reasoning_details: [
        { type: 'reasoning.text', text: 'Hm.', signature: 's' },
        { type: 'reasoning.encrypted', data: 'd' },
      ],
    }),
    get: {
      content: [{ type: 'thinking', thinking: 'Hm.', signature: 's' }, { type: 'redacted_thinking', data: 'd' }, text],
    },
  },
  {
    part: 'tool_calls',
    how: '`tool_use` after the text; arguments parsed',
    give: message({ content: 'A', tool_calls: [call('a', '{"x":1}'), call('b', '')] }, 'tool_calls'),
    get: { content: [text, use('a', { x: 1 }), use('b', {})], stop_reason: 'tool_use' },
  },
  {
    part: 'tool_calls: arguments that are no JSON object',
    how: 'whole, as text in `input._raw`',
    give: message({ tool_calls: [call('a', '{"x":'), call('b', '[1]')] }, 'tool_calls'),
    get: { content: [use('a', { _raw: '{"x":' }), use('b', { _raw: '[1]' })] },
  },
  {
    part: 'tool_calls: arguments as an object (some servers)',
    how: 'the same',
    give: message({ tool_calls: [{ id: 'a', function: { name: 'f', arguments: { x: 1 } } }] }, 'tool_calls'),
    get: { content: [use('a', { x: 1 })] },
  },
  {
    part: 'tool_calls: ids with other characters',
    how: 'replaced; they work when they are sent back',
    give: message({ tool_calls: [call('functions.f:0', '{}')] }, 'tool_calls'),
    get: { content: [use('functions_f_0_d6bdd4de', {})] },
  },
  {
    part: 'tool_calls: without ids (some servers)',
    how: 'ids of our own',
    give: message(
      { tool_calls: [{ function: { name: 'f', arguments: '{}' } }, { id: '', function: { name: 'f' } }] },
      'tool_calls',
    ),
    get: { content: [use('call_req_1_0_0', {}), use('call_req_1_0_1', {})] },
  },
  {
    part: 'function_call',
    how: '`tool_use`',
    give: message({ function_call: { name: 'f', arguments: '{}' } }, 'function_call'),
    get: { content: [use('call_req_1_0', {})], stop_reason: 'tool_use' },
  },
  {
    part: 'refusal',
    how: 'text',
    give: message({ refusal: 'No.' }),
    get: { content: [{ type: 'text', text: 'No.' }], stop_reason: 'refusal' },
  },
  {
    part: 'audio with a transcript',
    how: 'the transcript as text',
    give: message({ audio: { id: 'x', transcript: 'A' } }),
    get: { content: [text] },
  },
  {
    part: 'annotations, logprobs, further choices',
    how: 'left out',
    give: message({ content: 'A', annotations: [{}] }),
    get: { content: [text] },
  },
  {
    part: 'finish_reason: stop',
    how: '`end_turn`; `tool_use` if tools were called',
    give: message({ tool_calls: [call('a', '{}')] }, 'stop'),
    get: { stop_reason: 'tool_use' },
  },
  {
    part: 'finish_reason: length',
    how: '`max_tokens`',
    give: message({ content: 'A' }, 'length'),
    get: { stop_reason: 'max_tokens' },
  },
  {
    part: 'finish_reason: tool_calls, function_call',
    how: '`tool_use`; `end_turn` if no usable call came',
    give: message({ content: 'A', tool_calls: [{}] }, 'tool_calls'),
    get: { content: [text], stop_reason: 'end_turn' },
  },
  {
    part: 'finish_reason: content_filter',
    how: '`refusal`',
    give: message({ content: 'A' }, 'content_filter'),
    get: { stop_reason: 'refusal' },
  },
  {
    part: 'finish_reason: null, empty, others',
    how: '`end_turn`',
    give: message({ content: 'A' }, ''),
    get: { stop_reason: 'end_turn' },
  },
  {
    part: 'usage',
    how: '`input_tokens` is what was neither read from a cache nor written to it',
    give: {
      usage: {
        prompt_tokens: 100,
        completion_tokens: 20,
        total_tokens: 120,
        prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
        completion_tokens_details: { reasoning_tokens: 5 },
      },
    },
    get: {
      usage: {
        input_tokens: 30,
        cache_read_input_tokens: 60,
        cache_creation_input_tokens: 10,
        output_tokens: 20,
        output_tokens_details: { thinking_tokens: 5 },
      },
    },
  },
  {
    part: 'usage: prompt_cache_hit_tokens and other names of vendors',
    how: 'the same',
    give: { usage: { prompt_tokens: 100, completion_tokens: 20, prompt_cache_hit_tokens: 60 } },
    get: { usage: { input_tokens: 40, cache_read_input_tokens: 60 } },
  },
  {
    part: 'usage: tokens beside completion_tokens, by the total, or more reasoning than output',
    how: 'added to the output',
    give: {
      usage: {
        prompt_tokens: 100,
        completion_tokens: 20,
        total_tokens: 150,
        completion_tokens_details: { reasoning_tokens: 30 },
      },
    },
    get: { usage: { input_tokens: 100, output_tokens: 50 } },
  },
  {
    part: 'usage: none',
    how: 'estimated',
    give: { usage: null },
    get: { usage: { input_tokens: 11, output_tokens: 1 } },
  },
];
