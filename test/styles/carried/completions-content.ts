import { assistantCalls, call, hi, hi_block, pdf, png, result, use, used, user, type Row } from './row.ts';

const cached = { cache_control: { type: 'ephemeral' } };
const cached_for_long = { cache_control: { type: 'ephemeral', ttl: '1h' } };

/** Contents of requests, from chat completions to messages. */
export const completions_content: readonly Row[] = [
  { field: 'model', how: 'the name of the route’s model', what: 'changed', give: {}, get: { model: 'upstream' } },
  {
    field: 'max_tokens, max_completion_tokens',
    how: '`max_tokens`, at most what the model may write; without either, the model’s default',
    what: 'carried',
    give: { max_tokens: 9, max_completion_tokens: 8 },
    get: { max_tokens: 8 },
  },
  {
    field: 'messages: system, developer at the start',
    how: 'blocks of `system`, one each, in order',
    what: 'carried',
    give: {
      messages: [{ role: 'system', content: 'A' }, { role: 'developer', content: [{ type: 'text', text: 'B' }] }, hi],
    },
    get: {
      system: [
        { type: 'text', text: 'A' },
        { type: 'text', text: 'B' },
      ],
      messages: [hi_block],
    },
  },
  {
    field: 'messages: system, developer later on',
    how: 'the end of `system`',
    what: 'changed',
    give: { messages: [hi, { role: 'system', content: 'A' }, { role: 'assistant', content: 'B' }, hi] },
    get: {
      system: [{ type: 'text', text: 'A' }],
      messages: [hi_block, { role: 'assistant', content: [{ type: 'text', text: 'B' }] }, hi_block],
    },
  },
  {
    field: 'the same, with the route’s `system_turns: true`',
    how: 'a system turn in its place, where the style allows one',
    what: 'carried',
    quirks: { system_turns: true },
    give: { messages: [hi, { role: 'system', content: 'A' }, { role: 'assistant', content: 'B' }] },
    get: {
      messages: [
        hi_block,
        { role: 'system', content: [{ type: 'text', text: 'A' }] },
        { role: 'assistant', content: [{ type: 'text', text: 'B' }] },
      ],
    },
  },
  {
    field: 'messages: nothing but system',
    how: 'a user turn, which the style must have',
    what: 'changed',
    give: { messages: [{ role: 'system', content: 'A' }] },
    get: { messages: [{ role: 'user', content: [{ type: 'text', text: 'A' }] }] },
    absent: ['system'],
  },
  {
    field: 'messages: the first is the assistant’s',
    how: 'a user turn that says so is put before it',
    what: 'changed',
    give: { messages: [{ role: 'assistant', content: 'A' }, hi] },
    get: {
      messages: [
        { role: 'user', content: [{ type: 'text', text: '(The conversation begins with the assistant.)' }] },
        { role: 'assistant', content: [{ type: 'text', text: 'A' }] },
        hi_block,
      ],
    },
  },
  {
    field: 'messages: several of one role in a row',
    how: 'one turn',
    what: 'changed',
    give: { messages: [hi, hi] },
    get: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'text', text: 'Hi' },
          ],
        },
      ],
    },
  },
  {
    field: 'messages: text that is empty or white space',
    how: 'left out, which the style demands',
    what: 'changed',
    give: {
      messages: [
        { role: 'assistant', content: ' ' },
        {
          role: 'user',
          content: [
            { type: 'text', text: '\n' },
            { type: 'text', text: 'Hi' },
          ],
        },
      ],
    },
    get: { messages: [hi_block] },
  },
  {
    field: 'messages: a turn that is empty without it',
    how: 'left out, and the turns around it become one',
    what: 'changed',
    give: { messages: [hi, { role: 'assistant', content: ' ' }, hi] },
    get: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'text', text: 'Hi' },
          ],
        },
      ],
    },
  },
  {
    field: 'messages: nothing else but such text',
    how: 'there is nothing to answer',
    what: 'refused',
    give: { messages: [{ role: 'user', content: ' ' }] },
    param: 'messages',
  },
  { field: 'name of a message', how: 'no place for it', what: 'dropped', give: { messages: [{ ...hi, name: 'Ada' }] } },
  {
    field: 'cache_control of parts',
    how: 'the same; `ttl: "1h"` only for models with a price `cache_write_1h_token`, else it is left out',
    what: 'carried',
    give: user({ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }),
    get: {
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }] }],
    },
  },
  {
    field: 'cache_control beside the content of a message',
    how: 'on the last part that can have one; a mark of that part’s own counts',
    what: 'carried',
    give: {
      messages: [
        { role: 'system', content: 'A', ...cached },
        { ...hi, ...cached },
        { role: 'assistant', content: 'B', tool_calls: [call('a'), call('b')], ...cached },
        { ...result('a', '7') },
        { ...result('b', '8'), ...cached },
        { role: 'user', content: [{ type: 'text', text: 'C', ...cached_for_long }], ...cached },
      ],
    },
    get: {
      system: [{ type: 'text', text: 'A', ...cached }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Hi', ...cached }] },
        { role: 'assistant', content: [{ type: 'text', text: 'B' }, use('a'), { ...use('b'), ...cached }] },
        { role: 'user', content: [used('a'), used('b', cached), { type: 'text', text: 'C', ...cached_for_long }] },
      ],
    },
  },
  {
    field: 'cache_control of tool_calls',
    how: 'on the block',
    what: 'carried',
    give: { messages: [hi, assistantCalls({ ...call('a'), ...cached }), result('a', '7')] },
    get: { messages: [hi_block, { role: 'assistant', content: [{ ...use('a'), ...cached }] }, {}] },
  },
  {
    field: 'image_url: http(s) URL',
    how: '`image` by URL',
    what: 'carried',
    give: user({ type: 'image_url', image_url: { url: 'https://x.test/a.png' } }),
    get: {
      messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } }] }],
    },
  },
  {
    field: 'image_url: data URL',
    how: '`image` in base64; parameters of the URL are left out',
    what: 'carried',
    give: user({ type: 'image_url', image_url: { url: 'data:image/png;name=a;base64,AAAA' } }),
    get: { messages: [{ role: 'user', content: [{ type: 'image', source: png }] }] },
  },
  {
    field: 'image_url: data URL that is not base64',
    how: '`image` in base64',
    what: 'changed',
    give: user({ type: 'image_url', image_url: { url: 'data:image/png,%00%00%00' } }),
    get: { messages: [{ role: 'user', content: [{ type: 'image', source: png }] }] },
  },
  {
    field: 'image_url: SVG, HEIC and others',
    how: 'only JPEG, PNG, GIF, WebP',
    what: 'refused',
    give: user({ type: 'image_url', image_url: { url: 'data:image/svg+xml;base64,AAAA' } }),
    param: 'messages[0].content[0].image_url.url',
  },
  {
    field: 'image_url: another kind of address',
    how: 'nobody could fetch it',
    what: 'refused',
    give: user({ type: 'image_url', image_url: { url: 'file:///a.png' } }),
    param: 'messages[0].content[0].image_url.url',
  },
  {
    field: 'image_url.detail',
    how: 'a hint',
    what: 'changed',
    give: user({ type: 'image_url', image_url: { url: 'https://x.test/a.png', detail: 'low' } }),
    get: {
      messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } }] }],
    },
  },
  {
    field: 'file: PDF',
    how: '`document` in base64, `filename` as its title',
    what: 'carried',
    give: user({ type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } }),
    get: { messages: [{ role: 'user', content: [{ type: 'document', source: pdf, title: 'a.pdf' }] }] },
  },
  {
    field: 'file: text',
    how: '`document` of text',
    what: 'carried',
    give: user({
      type: 'file',
      file: { filename: 'a.txt', file_data: 'data:text/plain;charset=utf-8;base64,xYHDs2TFug==' },
    }),
    get: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Łódź' }, title: 'a.txt' },
          ],
        },
      ],
    },
  },
  {
    field: 'file: image',
    how: '`image`; its name is left out',
    what: 'carried',
    give: user({ type: 'file', file: { file_data: 'data:image/png;base64,AAAA' } }),
    get: { messages: [{ role: 'user', content: [{ type: 'image', source: png }] }] },
  },
  {
    field: 'file: anything else',
    how: 'no place for it',
    what: 'refused',
    give: user({ type: 'file', file: { file_data: 'data:application/zip;base64,AAAA' } }),
    param: 'messages[0].content[0].file.file_data',
  },
  {
    field: 'file.file_id',
    how: 'uploaded to another provider',
    what: 'refused',
    give: user({ type: 'file', file: { file_id: 'file-1' } }),
    param: 'messages[0].content[0].file.file_id',
  },
  {
    field: 'input_audio',
    how: 'no place for it',
    what: 'refused',
    give: user({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
    param: 'messages[0].content[0]',
  },
  {
    field: 'parts of other types',
    how: 'their meaning is unknown',
    what: 'refused',
    give: user({ type: 'input_file' }),
    param: 'messages[0].content[0].type',
  },
];
