import { user, png, hi, call, assistantCalls, result, use, used, blocks, type Row } from './row.ts';

/** The history of assistants and tools, from messages to chat completions. */
export const messages_history: readonly Row[] = [
  {
    field: 'tool_use',
    how: '`tool_calls`, `input` as JSON text; ids and order as they were',
    what: 'carried',
    give: {
      messages: [
        hi,
        { role: 'assistant', content: [{ type: 'text', text: 'I look.' }, use('a', { x: 1 }), use('b')] },
        { role: 'user', content: [used('a', { content: '7' }), used('b', { content: '8' })] },
      ],
    },
    get: {
      messages: [
        hi,
        { role: 'assistant', content: 'I look.', tool_calls: [call('a', '{"x":1}'), call('b')] },
        result('a', '7'),
        result('b', '8'),
      ],
    },
  },
  {
    field: 'tool_use: `input._raw` alone',
    how: 'its text: what we made of broken arguments',
    what: 'changed',
    give: {
      messages: [
        hi,
        { role: 'assistant', content: [use('a', { _raw: '{"x":' })] },
        { role: 'user', content: [used('a')] },
      ],
    },
    get: { messages: [hi, assistantCalls(call('a', '{"x":')), result('a', '')] },
  },
  {
    field: 'tool_use: ids over 40 characters',
    how: 'shortened, the same in call and result; `tool_id_length_max` of the route allows longer ones',
    what: 'changed',
    give: {
      messages: [
        hi,
        { role: 'assistant', content: [use('a'.repeat(41))] },
        { role: 'user', content: [used('a'.repeat(41))] },
      ],
    },
    get: {
      messages: [
        hi,
        assistantCalls(call(`${'a'.repeat(23)}_c0f8bd4dbc2b0c03`)),
        result(`${'a'.repeat(23)}_c0f8bd4dbc2b0c03`, ''),
      ],
    },
  },
  {
    field: 'tool_use without a result',
    how: 'both styles forbid it',
    what: 'refused',
    give: { messages: [hi, { role: 'assistant', content: [use('a')] }, hi] },
    param: 'messages[1].content[0].id',
  },
  {
    field: 'tool_result in a later turn',
    how: 'both styles forbid it',
    what: 'refused',
    give: {
      messages: [
        hi,
        { role: 'assistant', content: [use('a')] },
        hi,
        { role: 'assistant', content: 'A' },
        { role: 'user', content: [used('a')] },
      ],
    },
    param: 'messages[1].content[0].id',
  },
  {
    field: 'tool_result without a call',
    how: 'both styles forbid it',
    what: 'refused',
    give: user(used('a')),
    param: 'messages[0].content[0].tool_use_id',
  },
  {
    field: 'tool_result',
    how: 'a tool message each, before all else the turn says',
    what: 'carried',
    give: blocks(
      { type: 'text', text: 'Hi' },
      used('a', {
        content: [
          { type: 'text', text: '7' },
          { type: 'text', text: '8' },
        ],
      }),
    ),
    get: { messages: [hi, assistantCalls(call('a')), result('a', '7\n8'), hi] },
  },
  {
    field: 'tool_result: none or empty',
    how: 'an empty text',
    what: 'carried',
    give: blocks(used('a')),
    get: { messages: [hi, assistantCalls(call('a')), result('a', '')] },
  },
  {
    field: 'tool_result: is_error',
    how: '`Error: ` before the text',
    what: 'changed',
    give: blocks(used('a', { content: 'no', is_error: true })),
    get: { messages: [hi, assistantCalls(call('a')), result('a', 'Error: no')] },
  },
  {
    field: 'tool_result: images, documents',
    how: 'in a user message behind the results, which point to it',
    what: 'changed',
    give: blocks(used('a', { content: [{ type: 'image', source: png }] })),
    get: {
      messages: [
        hi,
        assistantCalls(call('a')),
        result('a', '(see the image in the next user message)'),
        {
          role: 'user',
          content: [
            { type: 'text', text: 'From the result of the tool call a:' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
      ],
    },
  },
  {
    field: 'tool_result: tool_reference',
    how: 'text',
    what: 'changed',
    give: blocks(used('a', { content: [{ type: 'tool_reference', tool_name: 'g' }] })),
    get: { messages: [hi, assistantCalls(call('a')), result('a', 'Tool now available: g')] },
  },
  {
    field: 'thinking, redacted_thinking',
    how: 'not asked for by upstreams',
    what: 'changed',
    give: {
      messages: [
        hi,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: '' },
            { type: 'text', text: 'A' },
          ],
        },
        hi,
      ],
    },
    get: { messages: [hi, { role: 'assistant', content: 'A' }, hi] },
  },
  {
    field: 'thinking, with the route’s `reasoning_field`',
    how: 'in that field of the message',
    what: 'carried',
    quirks: { reasoning_field: 'reasoning_content' },
    give: {
      messages: [
        hi,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: '' },
            { type: 'text', text: 'A' },
          ],
        },
        hi,
      ],
    },
    get: { messages: [hi, { role: 'assistant', content: 'A', reasoning_content: 'Hm.' }, hi] },
  },
  {
    field: 'an assistant turn of nothing but thinking',
    how: 'left out',
    what: 'dropped',
    give: { messages: [hi, { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: '' }] }] },
  },
  {
    field: 'calls of the provider’s own tools (search, code, MCP) and their results',
    how: 'text, without what is encrypted and the bytes of files',
    what: 'changed',
    give: {
      messages: [
        hi,
        {
          role: 'assistant',
          content: [
            { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } },
            { type: 'web_search_tool_result', tool_use_id: 's', content: [{ title: 'T', encrypted_content: 'x' }] },
          ],
        },
        hi,
      ],
    },
    get: {
      messages: [
        hi,
        { role: 'assistant', content: '[call of web_search] {"query":"q"}[web search tool result] [{"title":"T"}]' },
        hi,
      ],
    },
  },
  {
    field: 'blocks of other types',
    how: 'their meaning is unknown',
    what: 'refused',
    give: user({ type: 'container_upload', file_id: 'f' }),
    param: 'messages[0].content[0].type',
  },
];
