import type { JsonObject } from '../../../src/catalog/model.ts';
import type { AnswerRow } from './answers.ts';
import { parameters, result, type Row } from './row.ts';

const userInput = (...content: JsonObject[]): JsonObject => ({ input: [{ role: 'user', content }] });
const got = (...content: JsonObject[]): JsonObject => ({ messages: [{ role: 'user', content }] });
const called = { type: 'function_call', call_id: 'a', name: 'f', arguments: '{"x":1}' };
const answered = { type: 'function_call_output', call_id: 'a', output: '7' };
const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } };
const tool = { type: 'function', name: 'f', description: 'd', parameters };
const hi = { role: 'user', content: 'Hi' };
const png = 'data:image/png;base64,AAAA';
const pdf = 'data:application/pdf;base64,AAAA';

/** From the responses style to chat completions. */
export const from_responses: readonly Row[] = [
  {
    field: 'model, max_output_tokens',
    how: 'the name of the route’s model; at most what the model may write',
    what: 'changed',
    give: { max_output_tokens: 50 },
    get: { model: 'upstream', max_tokens: 50 },
  },
  {
    field: 'instructions',
    how: 'a system message at the start',
    what: 'carried',
    give: { instructions: 'Be kind.' },
    get: { messages: [{ role: 'system', content: 'Be kind.' }, hi] },
  },
  { field: 'input: a text', how: 'a user message', what: 'carried', give: { input: 'Hi' }, get: { messages: [hi] } },
  {
    field: 'input: messages of system and developer',
    how: 'the same, those at the start in one',
    what: 'carried',
    give: { instructions: 'A', input: [{ type: 'message', role: 'developer', content: 'B' }, hi] },
    get: { messages: [{ role: 'system', content: 'A\n\nB' }, hi] },
  },
  {
    field: 'input_text, output_text',
    how: 'text',
    what: 'carried',
    give: {
      input: [hi, { role: 'assistant', content: [{ type: 'output_text', text: 'Yes?', annotations: [] }] }, hi],
    },
    get: { messages: [hi, { role: 'assistant', content: 'Yes?' }, hi] },
  },
  {
    field: 'refusal',
    how: 'text',
    what: 'changed',
    give: { input: [hi, { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }, hi] },
    get: { messages: [hi, { role: 'assistant', content: 'No.' }, hi] },
  },
  {
    field: 'input_image',
    how: '`image_url` with its detail',
    what: 'carried',
    give: userInput({ type: 'input_image', image_url: png, detail: 'low' }),
    get: got({ type: 'image_url', image_url: { url: png, detail: 'low' } }),
  },
  {
    field: 'input_file: file_data',
    how: '`file`',
    what: 'carried',
    give: userInput({ type: 'input_file', filename: 'a.pdf', file_data: pdf }),
    get: got({ type: 'file', file: { filename: 'a.pdf', file_data: pdf } }),
  },
  {
    field: 'input_file: text',
    how: 'text below its name',
    what: 'changed',
    give: userInput({ type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,SGk=' }),
    get: { messages: [{ role: 'user', content: 'a.txt\n\nHi' }] },
  },
  {
    field: 'input_file: file_data beside file_url',
    how: 'nobody knows which of both is meant',
    what: 'refused',
    give: userInput({ type: 'input_file', file_url: 'https://example.com/a.pdf', file_data: pdf }),
    param: 'input[0].content[0].file_data',
  },
  {
    field: 'images and files in messages of the assistant',
    how: 'no place for them',
    what: 'refused',
    give: { input: [hi, { role: 'assistant', content: [{ type: 'input_image', image_url: png }] }, hi] },
    param: 'input[1].content[0].image_url',
  },
  {
    field: 'input_audio',
    how: 'the same',
    what: 'carried',
    give: userInput({ type: 'input_audio', input_audio: { format: 'mp3', data: 'AAAA' } }),
    get: got({ type: 'input_audio', input_audio: { format: 'mp3', data: 'AAAA' } }),
  },
  {
    field: 'function_call, function_call_output',
    how: '`tool_calls` and `tool` messages; ids and order as they were',
    what: 'carried',
    give: { input: [hi, called, answered] },
    get: { messages: [hi, { role: 'assistant', tool_calls: [call] }, result('a', '7')] },
  },
  {
    field: 'messages between a call and its result',
    how: 'behind the result',
    what: 'changed',
    give: { input: [hi, called, { role: 'user', content: 'Wait' }, answered] },
    get: {
      messages: [hi, { role: 'assistant', tool_calls: [call] }, result('a', '7'), { role: 'user', content: 'Wait' }],
    },
  },
  {
    field: 'calls without a result, results without a call',
    how: 'all styles forbid it',
    what: 'refused',
    give: { input: [hi, called] },
    param: 'input[1].call_id',
  },
  {
    field: 'reasoning',
    how: 'left out; with the route’s `reasoning_field` it is given back there; upstreams of messages style get it with its seal',
    what: 'changed',
    give: { input: [hi, { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] }, called, answered] },
    get: { messages: [hi, { role: 'assistant', tool_calls: [call] }, result('a', '7')] },
  },
  {
    field: 'function_call of a namespace',
    how: 'the name of its function: `namespace__name`; the name alone in the namespace `functions`',
    what: 'changed',
    give: { input: [hi, { ...called, namespace: 'mcp__files__' }, answered] },
    get: {
      messages: [hi, { tool_calls: [{ ...call, function: { name: 'mcp__files__f', arguments: '{"x":1}' } }] }, {}],
    },
  },
  {
    field: 'custom_tool_call, custom_tool_call_output',
    how: '`tool_calls` and `tool` messages; the text is the argument `input`',
    what: 'changed',
    give: {
      input: [
        hi,
        { type: 'custom_tool_call', call_id: 'a', name: 'f', input: 'x = "1"' },
        { type: 'custom_tool_call_output', call_id: 'a', output: '7' },
      ],
    },
    get: {
      messages: [
        hi,
        { tool_calls: [{ ...call, function: { name: 'f', arguments: '{"input":"x = \\"1\\""}' } }] },
        result('a', '7'),
      ],
    },
  },
  {
    field: 'tool_search_call, tool_search_output of the caller',
    how: 'a call of the function `tool_search`; the tools are given, and the result names them',
    what: 'changed',
    give: {
      input: [
        hi,
        { type: 'tool_search_call', call_id: 'a', execution: 'client', arguments: { query: 'q' } },
        { type: 'tool_search_output', call_id: 'a', execution: 'client', tools: [tool] },
      ],
    },
    get: {
      messages: [
        hi,
        { tool_calls: [{ ...call, function: { name: 'tool_search', arguments: '{"query":"q"}' } }] },
        result('a', 'Tools now available: f'),
      ],
      tools: [{ type: 'function', function: { name: 'f' } }],
    },
  },
  {
    field: 'additional_tools',
    how: 'among the tools',
    what: 'carried',
    give: { input: [{ type: 'additional_tools', role: 'developer', tools: [tool] }, hi] },
    get: { messages: [hi], tools: [{ type: 'function', function: { name: 'f' } }] },
  },
  {
    field: 'additional_tools: a tool that tools, or an earlier item, defines under the same name',
    how: 'the later definition: an item says what the model has from there on, and that is what the caller runs now',
    what: 'changed',
    give: {
      tools: [tool],
      input: [
        { type: 'additional_tools', role: 'developer', tools: [{ ...tool, description: 'e' }] },
        hi,
        { type: 'additional_tools', role: 'developer', tools: [{ ...tool, description: 'e2' }] },
      ],
    },
    get: { tools: [{ type: 'function', function: { name: 'f', description: 'e2' } }] },
  },
  {
    field: 'web_search_call and the like, of tools that a provider ran',
    how: 'text',
    what: 'changed',
    give: { input: [hi, { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { query: 'q' } }, hi] },
    get: { messages: [hi, { role: 'assistant', content: '[web search call] {"action":{"query":"q"}}' }, hi] },
  },
  {
    field: 'items of tools that run on the caller’s computer: local_shell_call, computer_call, apply_patch_call, …',
    how: 'no place for them',
    what: 'refused',
    give: { input: [{ type: 'local_shell_call_output', id: 'a', output: '' }] },
    param: 'input[0].type',
  },
  {
    field: 'tools: functions',
    how: '`tools`',
    what: 'carried',
    give: { tools: [tool] },
    get: { tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters } }] },
  },
  {
    field: 'tools: custom',
    how: 'a function with the argument `input`; the grammar stands in its description',
    what: 'changed',
    give: {
      tools: [
        { type: 'custom', name: 'f', description: 'd', format: { type: 'grammar', syntax: 'lark', definition: 'g' } },
      ],
    },
    get: {
      tools: [
        {
          type: 'function',
          function: {
            name: 'f',
            description: 'd\n\n`input` must match this lark grammar:\n\ng',
            parameters: { required: ['input'] },
          },
        },
      ],
    },
  },
  {
    field: 'tools: namespace',
    how: 'its tools as functions `namespace__name`; its description stands before that of the first',
    what: 'changed',
    give: { tools: [{ type: 'namespace', name: 'n', description: 'N', tools: [tool] }] },
    get: { tools: [{ type: 'function', function: { name: 'n__f', description: 'N\n\nd', parameters } }] },
  },
  {
    field: 'tools: tool_search of the caller',
    how: 'the function `tool_search`',
    what: 'changed',
    give: { tools: [{ type: 'tool_search', execution: 'client', description: 'd', parameters }] },
    get: { tools: [{ type: 'function', function: { name: 'tool_search', description: 'd', parameters } }] },
  },
  {
    field: 'tools: web_search, file_search, code_interpreter, image_generation, mcp, shell, apply_patch and the like',
    how: 'left out, as `x-tools-left-out` says',
    what: 'dropped',
    give: { tools: [{ type: 'web_search' }, { type: 'local_shell' }], tool_choice: 'auto', parallel_tool_calls: true },
  },
  {
    field: 'the same, with a tool_choice that makes the model use them',
    how: 'no place for them',
    what: 'refused',
    give: { tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search' } },
    param: 'tools[0].type',
  },
  {
    field: 'tool_choice: auto, none, required, a function',
    how: 'the same',
    what: 'carried',
    give: { tools: [tool], tool_choice: { type: 'function', name: 'f' } },
    get: { tool_choice: { type: 'function', function: { name: 'f' } } },
  },
  {
    field: 'tool_choice: allowed_tools',
    how: 'only those are given on',
    what: 'carried',
    give: {
      tools: [tool, { ...tool, name: 'g' }],
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'g' }] },
    },
    get: { tools: [{ function: { name: 'g' } }], tool_choice: 'required' },
  },
  {
    field: 'parallel_tool_calls, temperature, top_p, stream',
    how: 'the same',
    what: 'carried',
    give: { tools: [tool], parallel_tool_calls: false, temperature: 0.5, top_p: 0.9, stream: true },
    get: { parallel_tool_calls: false, temperature: 0.5, top_p: 0.9, stream: true },
  },
  {
    field: 'text.format: json_object',
    how: '`response_format`',
    what: 'carried',
    give: { text: { format: { type: 'json_object' } } },
    get: { response_format: { type: 'json_object' } },
  },
  {
    field: 'text.format: json_schema',
    how: '`response_format`',
    what: 'carried',
    give: { text: { format: { type: 'json_schema', name: 'answer', schema: parameters } } },
    get: { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: parameters } } },
  },
  {
    field: 'reasoning.effort',
    how: '`reasoning_effort`, unless the route says `reasoning_effort: false`',
    what: 'carried',
    give: { reasoning: { effort: 'high', summary: 'auto' } },
    get: { reasoning_effort: 'high' },
  },
  {
    field: 'safety_identifier, user',
    how: '`user`',
    what: 'carried',
    give: { user: 'me' },
    get: { user: 'me' },
  },
  {
    field: 'top_logprobs, context_management, moderation',
    how: 'no place for them',
    what: 'refused',
    give: { top_logprobs: 3 },
    param: 'top_logprobs',
  },
  {
    field: 'stop (other styles have it)',
    how: 'the same; a 400 where the upstream has this style',
    what: 'carried',
    give: { stop: ['END'] },
    get: { stop: ['END'] },
  },
  {
    field: 'seed, presence_penalty, frequency_penalty (other styles have them)',
    how: 'hints to sampling; upstreams of Gemini’s style get the seed',
    what: 'dropped',
    give: { seed: 7, presence_penalty: 1, frequency_penalty: 1 },
  },
  {
    field: 'include, metadata, store, text.verbosity, truncation, max_tool_calls, prompt_cache_key and its like',
    how: 'matters of the other provider; `store` is false everywhere',
    what: 'dropped',
    give: {
      include: ['reasoning.encrypted_content'],
      metadata: { a: 'b' },
      store: true,
      text: { verbosity: 'low' },
      truncation: 'auto',
      max_tool_calls: 3,
      prompt_cache_key: 'k',
    },
  },
  {
    field: 'null for any field',
    how: 'not given',
    what: 'dropped',
    give: { instructions: null, tools: null, reasoning: null, text: null, previous_response_id: null },
  },
];

const message = (fields: JsonObject, finish_reason = 'stop'): JsonObject => ({
  choices: [{ index: 0, message: { role: 'assistant', content: null, ...fields }, finish_reason }],
});
const text = (content: string): JsonObject => ({ type: 'output_text', text: content, annotations: [] });
const item = (...content: JsonObject[]): JsonObject => ({ type: 'message', role: 'assistant', content });

/** Answers of chat completions for a caller of the responses style. */
export const answers_for_responses: readonly AnswerRow[] = [
  {
    part: 'id, model',
    how: 'an id of our own; the public name',
    give: {},
    get: { id: 'resp_req_1', object: 'response', created_at: 5, model: 'public', error: null },
  },
  { part: 'content', how: 'a message', give: {}, get: { status: 'completed', output: [item(text('A'))] } },
  {
    part: 'reasoning_content, reasoning',
    how: 'an item of reasoning, its text as the summary',
    give: message({ content: 'A', reasoning_content: 'Hm.' }),
    get: { output: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] }, item(text('A'))] },
  },
  {
    part: 'what seals thinking (of messages style too)',
    how: '`encrypted_content`, to be sent back',
    give: message({ content: 'A', reasoning_details: [{ type: 'reasoning.text', text: 'Hm.', signature: 's' }] }),
    get: { output: [{ type: 'reasoning', encrypted_content: 'signature:s' }, item(text('A'))] },
  },
  {
    part: 'tool_calls',
    how: '`function_call` items',
    give: message({ tool_calls: [call] }, 'tool_calls'),
    get: { status: 'completed', output: [{ ...called, status: 'completed' }] },
  },
  {
    part: 'tool_calls of functions that stand for other tools',
    how: '`custom_tool_call`, `tool_search_call`, or `function_call` with its namespace',
    ask: {
      tools: [
        { type: 'custom', name: 'c' },
        { type: 'namespace', name: 'n', tools: [tool] },
        { type: 'tool_search', execution: 'client' },
      ],
    },
    give: message(
      {
        tool_calls: [
          { id: '1', type: 'function', function: { name: 'c', arguments: '{"input":"a\\nb"}' } },
          { id: '2', type: 'function', function: { name: 'n__f', arguments: '{}' } },
          { id: '3', type: 'function', function: { name: 'tool_search', arguments: '{"query":"q"}' } },
        ],
      },
      'tool_calls',
    ),
    get: {
      output: [
        { type: 'custom_tool_call', call_id: '1', name: 'c', input: 'a\nb' },
        { type: 'function_call', call_id: '2', name: 'f', namespace: 'n', arguments: '{}' },
        { type: 'tool_search_call', call_id: '3', execution: 'client', arguments: { query: 'q' } },
      ],
    },
  },
  {
    part: 'refusal',
    how: 'a part of the message',
    give: message({ refusal: 'No.' }),
    get: { status: 'completed', output: [item({ type: 'refusal', refusal: 'No.' })] },
  },
  {
    part: 'finish_reason: length',
    how: 'status `incomplete`, `max_output_tokens`',
    give: message({ content: 'A' }, 'length'),
    get: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
  },
  {
    part: 'finish_reason: content_filter',
    how: 'status `incomplete`, `content_filter`',
    give: message({ content: 'A' }, 'content_filter'),
    get: { status: 'incomplete', incomplete_details: { reason: 'content_filter' } },
  },
  {
    part: 'finish_reason: others',
    how: 'status `completed`',
    give: message({ content: 'A' }),
    get: { status: 'completed', incomplete_details: null },
  },
  {
    part: 'usage',
    how: 'the same numbers; estimated if there are none',
    give: {
      usage: {
        prompt_tokens: 10,
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens: 5,
        total_tokens: 15,
        completion_tokens_details: { reasoning_tokens: 2 },
      },
    },
    get: {
      usage: {
        input_tokens: 10,
        input_tokens_details: { cached_tokens: 4 },
        output_tokens: 5,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 15,
      },
    },
  },
  {
    part: 'the caller’s settings',
    how: 'told back: instructions, tools, text, temperature and the like',
    ask: { instructions: 'Be kind.', tools: [tool], temperature: 0.5 },
    give: {},
    get: { instructions: 'Be kind.', tools: [tool], temperature: 0.5, tool_choice: 'auto', store: false },
  },
];
