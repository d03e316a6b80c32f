import type { JsonObject } from '../../../src/catalog/model.ts';
import type { AnswerRow } from './answers.ts';
import {
  assistantCalls,
  call,
  closed,
  hi,
  named,
  parameters,
  png,
  result,
  tool,
  use,
  used,
  user,
  format_option,
  type Row,
} from './row.ts';

const userItem = (...content: JsonObject[]): JsonObject => ({ type: 'message', role: 'user', content });
const hi_item = userItem({ type: 'input_text', text: 'Hi' });
const called = (call_id: string, text = '{}'): JsonObject => ({
  type: 'function_call',
  call_id,
  name: 'f',
  arguments: text,
});
const replied = (call_id: string, output: string): JsonObject => ({ type: 'function_call_output', call_id, output });
const defined = (name: string): JsonObject => ({ type: 'function', name, parameters, strict: false });
const data_url = 'data:image/png;base64,AAAA';

/** From chat completions to the responses style. */
export const completions_to_responses: readonly Row[] = [
  {
    field: 'max_tokens, max_completion_tokens',
    how: '`max_output_tokens`, at most what the model may write, at least 16',
    what: 'carried',
    give: { max_completion_tokens: 50 },
    get: { model: 'upstream', max_output_tokens: 50, store: false, include: ['reasoning.encrypted_content'] },
  },
  {
    field: 'messages: system, developer at the start',
    how: '`instructions`',
    what: 'carried',
    give: { messages: [{ role: 'system', content: 'A' }, { role: 'developer', content: 'B' }, hi] },
    get: { instructions: 'A\n\nB', input: [hi_item] },
  },
  {
    field: 'messages: system, developer later on',
    how: 'a developer message',
    what: 'carried',
    give: { messages: [hi, { role: 'system', content: 'A' }, hi] },
    get: { input: [hi_item, { type: 'message', role: 'developer', content: 'A' }, hi_item] },
  },
  {
    field: 'messages: nothing but system',
    how: 'a developer message, for the input must hold something',
    what: 'changed',
    give: { messages: [{ role: 'system', content: 'A' }] },
    get: { input: [{ type: 'message', role: 'developer', content: 'A' }] },
    absent: ['instructions'],
  },
  {
    field: 'image_url',
    how: '`input_image` with its detail',
    what: 'carried',
    give: user({ type: 'image_url', image_url: { url: data_url, detail: 'low' } }),
    get: { input: [userItem({ type: 'input_image', image_url: data_url, detail: 'low' })] },
  },
  {
    field: 'file',
    how: '`input_file`; text as text below its name',
    what: 'carried',
    give: user({ type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } }),
    get: {
      input: [userItem({ type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' })],
    },
  },
  {
    field: 'input_audio',
    how: 'no place for it',
    what: 'refused',
    give: user({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
    param: 'messages[0].content[0]',
  },
  {
    field: 'assistant: content and tool_calls; tool messages',
    how: 'items: a message, `function_call`, `function_call_output`; ids and order as they were',
    what: 'carried',
    give: {
      messages: [
        hi,
        { role: 'assistant', content: 'I look.', tool_calls: [call('a', '{"x":1}'), call('b')] },
        result('a', '7'),
        result('b', '8'),
      ],
    },
    get: {
      input: [
        hi_item,
        { type: 'message', role: 'assistant', content: 'I look.' },
        called('a', '{"x":1}'),
        called('b'),
        replied('a', '7'),
        replied('b', '8'),
      ],
    },
  },
  {
    field: 'assistant: reasoning_details that such an upstream sealed',
    how: 'an item of reasoning',
    what: 'carried',
    give: {
      messages: [
        hi,
        {
          ...assistantCalls(call('a')),
          reasoning_details: [{ type: 'reasoning.text', text: 'Hm.', signature: 'responses:gAAA' }],
        },
        result('a', '7'),
      ],
    },
    get: {
      input: [
        hi_item,
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'gAAA' },
        called('a'),
        replied('a', '7'),
      ],
    },
  },
  {
    field: 'assistant: other reasoning',
    how: 'left out; this upstream would refuse what it has not sealed',
    what: 'changed',
    give: { messages: [hi, { ...assistantCalls(call('a')), reasoning_content: 'Hm.' }, result('a', '7')] },
    get: { input: [hi_item, called('a'), replied('a', '7')] },
  },
  {
    field: 'tools: functions',
    how: '`tools`, strict only where the caller says so and the schema keeps its rules',
    what: 'carried',
    give: { tools: [{ type: 'function', function: { name: 'f', parameters: closed, strict: true } }, named('g')] },
    get: { tools: [{ type: 'function', name: 'f', parameters: closed, strict: true }, defined('g')] },
  },
  {
    field: 'tools: without parameters',
    how: 'an object without properties',
    what: 'carried',
    give: { tools: [{ type: 'function', function: { name: 'f' } }] },
    get: { tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} }, strict: false }] },
  },
  {
    field: 'tool_choice, parallel_tool_calls',
    how: 'the same',
    what: 'carried',
    give: {
      tools: [named('f')],
      tool_choice: { type: 'function', function: { name: 'f' } },
      parallel_tool_calls: false,
    },
    get: { tool_choice: { type: 'function', name: 'f' }, parallel_tool_calls: false },
  },
  {
    field: 'response_format',
    how: '`text.format`',
    what: 'carried',
    give: format_option,
    get: { text: { format: { type: 'json_schema', name: 'answer', schema: parameters, strict: false } } },
  },
  {
    field: 'reasoning_effort',
    how: '`reasoning.effort`; `max` is `xhigh`',
    what: 'carried',
    give: { reasoning_effort: 'high' },
    get: { reasoning: { effort: 'high' } },
  },
  {
    field: 'temperature, top_p, user, stream',
    how: 'the same; temperature and top_p unless the route says `sampling: false`',
    what: 'carried',
    give: { temperature: 0.5, top_p: 0.9, user: 'me', stream: true },
    get: { temperature: 0.5, top_p: 0.9, user: 'me', stream: true },
  },
  { field: 'stop', how: 'no place for it', what: 'refused', give: { stop: ['x'] }, param: 'stop' },
  { field: 'n above 1', how: 'no place for it', what: 'refused', give: { n: 2 }, param: 'n' },
  {
    field: 'seed, logit_bias, penalties, logprobs, metadata, store and fields that we do not know',
    how: 'no place for them',
    what: 'dropped',
    give: { seed: 1, logit_bias: {}, presence_penalty: 1, logprobs: true, metadata: { a: 'b' }, store: true, x: 1 },
  },
];

/** From messages to the responses style. */
export const messages_to_responses: readonly Row[] = [
  {
    field: 'system',
    how: '`instructions`',
    what: 'carried',
    give: {
      system: [
        { type: 'text', text: 'A' },
        { type: 'text', text: 'B' },
      ],
    },
    get: { instructions: 'A\n\nB', input: [hi_item] },
  },
  {
    field: 'image, document',
    how: '`input_image`, `input_file`; also by their URLs, and in results of tools',
    what: 'carried',
    give: {
      messages: [
        hi,
        { role: 'assistant', content: [use('a')] },
        { role: 'user', content: [used('a', { content: [{ type: 'image', source: png }] })] },
      ],
    },
    get: {
      input: [
        hi_item,
        called('a'),
        {
          type: 'function_call_output',
          call_id: 'a',
          output: [{ type: 'input_image', image_url: data_url, detail: 'auto' }],
        },
      ],
    },
  },
  {
    field: 'tool_result with is_error',
    how: '`Error: ` before it',
    what: 'changed',
    give: {
      messages: [
        hi,
        { role: 'assistant', content: [use('a')] },
        { role: 'user', content: [used('a', { content: 'no', is_error: true })] },
      ],
    },
    get: { input: [hi_item, called('a'), replied('a', 'Error: no')] },
  },
  {
    field: 'thinking that such an upstream sealed',
    how: 'an item of reasoning',
    what: 'carried',
    give: {
      messages: [
        hi,
        { role: 'assistant', content: [{ type: 'thinking', thinking: '', signature: 'responses:gAAA' }, use('a')] },
        { role: 'user', content: [used('a', { content: '7' })] },
      ],
    },
    get: {
      input: [hi_item, { type: 'reasoning', summary: [], encrypted_content: 'gAAA' }, called('a'), replied('a', '7')],
    },
  },
  {
    field: 'tools, tool_choice',
    how: 'the same',
    what: 'carried',
    give: { tools: [tool('f')], tool_choice: { type: 'any', disable_parallel_tool_use: true } },
    get: { tools: [defined('f')], tool_choice: 'required', parallel_tool_calls: false },
  },
  {
    field: 'thinking: enabled',
    how: '`reasoning.effort`: low below 4,096 tokens, medium below 16,384, else high',
    what: 'changed',
    give: { max_tokens: 3000, thinking: { type: 'enabled', budget_tokens: 2000 } },
    get: { reasoning: { effort: 'low' } },
  },
  {
    field: 'stop_sequences',
    how: 'no place for them',
    what: 'refused',
    give: { stop_sequences: ['x'] },
    param: 'stop_sequences',
  },
];

const items = (...output: JsonObject[]): JsonObject => ({ output });
const message = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'A', annotations: [] }] };
const chosen = (fields: JsonObject, finish_reason = 'stop'): JsonObject => ({
  choices: [{ index: 0, message: { role: 'assistant', ...fields }, logprobs: null, finish_reason }],
});

/** Answers of the responses style for a caller of chat completions. */
export const answers_of_responses: readonly AnswerRow[] = [
  {
    part: 'id, model',
    how: 'an id of our own; the public name',
    give: {},
    get: { id: 'chatcmpl-req_1', object: 'chat.completion', created: 5, model: 'public' },
  },
  {
    part: 'messages',
    how: 'one `content`',
    give: items(message, message),
    get: chosen({ content: 'AA', refusal: null }),
  },
  {
    part: 'reasoning',
    how: 'its summary as `reasoning_content`; its seal in `reasoning_details`, to be sent back',
    give: items(
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'gAAA' },
      message,
    ),
    get: chosen({
      content: 'A',
      reasoning_content: 'Hm.',
      reasoning_details: [{ type: 'reasoning.text', text: 'Hm.', signature: 'responses:gAAA' }],
    }),
  },
  {
    part: 'function_call',
    how: '`tool_calls`; `content` is null without text',
    give: items(called('a', '{"x":1}')),
    get: chosen({ content: null, tool_calls: [call('a', '{"x":1}')] }, 'tool_calls'),
  },
  {
    part: 'refusal',
    how: '`refusal`, `content_filter`',
    give: items({ ...message, content: [{ type: 'refusal', refusal: 'No.' }] }),
    get: chosen({ content: null, refusal: 'No.' }, 'content_filter'),
  },
  {
    part: 'incomplete: max_output_tokens',
    how: '`length`',
    give: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
    get: chosen({ content: 'A' }, 'length'),
  },
  {
    part: 'incomplete: content_filter',
    how: '`content_filter`',
    give: { status: 'incomplete', incomplete_details: { reason: 'content_filter' } },
    get: chosen({ content: 'A' }, 'content_filter'),
  },
  {
    part: 'usage',
    how: 'the same numbers',
    give: {
      usage: {
        input_tokens: 10,
        input_tokens_details: { cached_tokens: 4 },
        output_tokens: 5,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 15,
      },
    },
    get: {
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 15,
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 2 },
      },
    },
  },
  {
    part: 'for callers of messages style',
    how: 'what the same parts of chat completions become; reasoning is `thinking`, its seal the signature',
    give: {},
    get: chosen({ content: 'A' }),
  },
];
