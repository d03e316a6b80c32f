import { hi, hi_block, call, assistantCalls, result, png, asks, type Row } from './row.ts';

/** The history of assistants and tools, from chat completions to messages. */
export const completions_history: readonly Row[] = [
  {
    field: 'assistant: content and tool_calls',
    how: 'text, then `tool_use` blocks; ids and order as they were',
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
      messages: [
        hi_block,
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'I look.' },
            { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } },
            { type: 'tool_use', id: 'b', name: 'f', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: '7' }] },
            { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: '8' }] },
          ],
        },
      ],
    },
  },
  {
    field: 'tool_calls: arguments that are no JSON object',
    how: 'whole, as text in `input._raw`',
    what: 'changed',
    give: { messages: [hi, assistantCalls(call('a', '{"x":')), result('a', '7')] },
    get: { messages: [hi_block, { role: 'assistant', content: [{ type: 'tool_use', input: { _raw: '{"x":' } }] }, {}] },
  },
  {
    field: 'tool_calls: ids with other characters than letters, digits, `_`, `-`',
    how: 'replaced, the same in call and result',
    what: 'changed',
    give: { messages: [hi, assistantCalls(call('functions.f:0')), result('functions.f:0', '7')] },
    get: {
      messages: [
        hi_block,
        { role: 'assistant', content: [{ type: 'tool_use', id: 'functions_f_0_d6bdd4de' }] },
        { role: 'user', content: [{ tool_use_id: 'functions_f_0_d6bdd4de' }] },
      ],
    },
  },
  {
    field: 'tool_calls: ids used in an earlier turn too',
    how: 'numbered',
    what: 'changed',
    give: { messages: [...asks, assistantCalls(call('a')), result('a', '8')] },
    get: {
      messages: [
        hi_block,
        { content: [{ id: 'a' }] },
        { content: [{ tool_use_id: 'a' }] },
        { content: [{ id: 'a_2' }] },
        { content: [{ tool_use_id: 'a_2' }] },
      ],
    },
  },
  {
    field: 'tool_calls without a result',
    how: 'both styles forbid it',
    what: 'refused',
    give: { messages: [hi, assistantCalls(call('a'), call('b')), result('a', '7'), hi] },
    param: 'messages[1].tool_calls[1].id',
  },
  {
    field: 'tool messages behind others',
    how: 'both styles forbid it',
    what: 'refused',
    give: { messages: [hi, assistantCalls(call('a')), hi, result('a', '7')] },
    param: 'messages[1].tool_calls[0].id',
  },
  {
    field: 'tool messages without a call',
    how: 'both styles forbid it',
    what: 'refused',
    give: { messages: [hi, result('a', '7')] },
    param: 'messages[1].tool_call_id',
  },
  {
    field: 'tool messages, then user',
    how: 'one user turn, results first',
    what: 'carried',
    give: { messages: [...asks, hi] },
    get: {
      messages: [
        hi_block,
        {},
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: '7' }] },
            { type: 'text', text: 'Hi' },
          ],
        },
      ],
    },
  },
  {
    field: 'tool messages that are empty',
    how: 'a result without content',
    what: 'carried',
    give: { messages: [hi, assistantCalls(call('a')), result('a', '')] },
    get: { messages: [hi_block, {}, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] }] },
  },
  {
    field: 'tool messages with images (other vendors)',
    how: '`image` in the result',
    what: 'carried',
    give: {
      messages: [
        hi,
        assistantCalls(call('a')),
        { ...result('a', ''), content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] },
      ],
    },
    get: {
      messages: [
        hi_block,
        {},
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'image', source: png }] }],
        },
      ],
    },
  },
  {
    field: 'assistant: refusal',
    how: 'text',
    what: 'changed',
    give: { messages: [hi, { role: 'assistant', refusal: 'No.' }, hi] },
    get: { messages: [hi_block, { role: 'assistant', content: [{ type: 'text', text: 'No.' }] }, hi_block] },
  },
  {
    field: 'assistant: reasoning_details (other vendors)',
    how: '`thinking` with its signature, `redacted_thinking`',
    what: 'carried',
    give: {
      messages: [
        hi,
        {
          role: 'assistant',
          content: 'A',
          reasoning_details: [
            { type: 'reasoning.text', text: 'Hm.', signature: 's' },
            { type: 'reasoning.encrypted', data: 'd' },
          ],
        },
        hi,
      ],
    },
    get: {
      messages: [
        hi_block,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: 's' },
            { type: 'redacted_thinking', data: 'd' },
            { type: 'text', text: 'A' },
          ],
        },
        hi_block,
      ],
    },
  },
  {
    field: 'assistant: reasoning_content, reasoning (other vendors)',
    how: 'without a signature the upstream would refuse it',
    what: 'changed',
    give: { messages: [hi, { role: 'assistant', content: 'A', reasoning_content: 'Hm.' }, hi] },
    get: { messages: [hi_block, { role: 'assistant', content: [{ type: 'text', text: 'A' }] }, hi_block] },
  },
  {
    field: 'assistant: audio without text',
    how: 'no place for it',
    what: 'refused',
    give: { messages: [hi, { role: 'assistant', audio: { id: 'x' } }, hi] },
    param: 'messages[1].audio',
  },
  {
    field: 'assistant: annotations and other fields of answers',
    how: 'they come back in what tools send',
    what: 'changed',
    give: { messages: [hi, { role: 'assistant', content: 'A', annotations: [], refusal: null, x: 1 }, hi] },
    get: { messages: [hi_block, { role: 'assistant', content: [{ type: 'text', text: 'A' }] }, hi_block] },
  },
  {
    field: 'assistant: function_call; function messages',
    how: '`tool_use` and `tool_result`; the answer has `function_call` again',
    what: 'carried',
    give: {
      messages: [
        hi,
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: '7' },
      ],
    },
    get: {
      messages: [
        hi_block,
        { role: 'assistant', content: [{ type: 'tool_use', id: 'call_function', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_function' }] },
      ],
    },
  },
];
