import { hi, user, png, pdf, type Row } from './row.ts';

/** Contents of requests, from messages to chat completions. */
export const messages_content: readonly Row[] = [
  { field: 'model', how: 'the name of the route’s model', what: 'changed', give: {}, get: { model: 'upstream' } },
  {
    field: 'max_tokens',
    how: 'the same, or the field that the route’s `max_tokens_field` names; at most what the model may write',
    what: 'carried',
    quirks: { max_tokens_field: 'max_completion_tokens' },
    give: { max_tokens: 128_000 },
    get: { max_completion_tokens: 4000 },
  },
  {
    field: 'system',
    how: 'one system message; blocks joined by blank lines',
    what: 'carried',
    give: {
      system: [
        { type: 'text', text: 'A', cache_control: { type: 'ephemeral' } },
        { type: 'text', text: 'B' },
      ],
    },
    get: { messages: [{ role: 'system', content: 'A\n\nB' }, hi] },
  },
  {
    field: 'system: a first line `x-anthropic-billing-header: …`',
    how: 'telemetry of a tool; what follows it is carried',
    what: 'dropped',
    give: { system: [{ type: 'text', text: 'x-anthropic-billing-header: v=1' }] },
  },
  {
    field: 'messages: system turns',
    how: 'a system message in the same place',
    what: 'carried',
    give: { messages: [hi, { role: 'system', content: 'A' }, { role: 'assistant', content: 'B' }, hi] },
    get: { messages: [hi, { role: 'system', content: 'A' }, { role: 'assistant', content: 'B' }, hi] },
  },
  {
    field: 'text of users',
    how: 'a string, or several parts',
    what: 'carried',
    give: user({ type: 'text', text: 'A', cache_control: { type: 'ephemeral' } }, { type: 'text', text: 'B' }),
    get: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'A' },
            { type: 'text', text: 'B' },
          ],
        },
      ],
    },
  },
  {
    field: 'text of the assistant',
    how: 'one string',
    what: 'carried',
    give: {
      messages: [
        hi,
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'A' },
            { type: 'text', text: 'B' },
          ],
        },
        hi,
      ],
    },
    get: { messages: [hi, { role: 'assistant', content: 'AB' }, hi] },
  },
  {
    field: 'cache_control',
    how: 'strict upstreams refuse it',
    what: 'dropped',
    give: {
      ...user({ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }),
      cache_control: { type: 'ephemeral' },
    },
  },
  {
    field: 'image: base64',
    how: '`image_url` with a data URL',
    what: 'carried',
    give: user({ type: 'image', source: png }),
    get: {
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] }],
    },
  },
  {
    field: 'image: URL',
    how: '`image_url`',
    what: 'carried',
    give: user({ type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } }),
    get: { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x.test/a.png' } }] }] },
  },
  {
    field: 'image, document: file',
    how: 'uploaded to another provider',
    what: 'refused',
    give: user({ type: 'image', source: { type: 'file', file_id: 'f' } }),
    param: 'messages[0].content[0].source',
  },
  {
    field: 'document: PDF',
    how: '`file` with its title as `filename`',
    what: 'carried',
    give: user({ type: 'document', source: pdf, title: 'a.pdf' }),
    get: {
      messages: [
        {
          role: 'user',
          content: [{ type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } }],
        },
      ],
    },
  },
  {
    field: 'document: PDF, with the route’s `document_parts: false`',
    how: 'the upstream reads none',
    what: 'refused',
    quirks: { document_parts: false },
    give: user({ type: 'document', source: pdf }),
    param: 'messages[0].content[0].source',
  },
  {
    field: 'document: text, content',
    how: 'text below its title; `context` before it',
    what: 'changed',
    give: user({
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: 'A' },
      title: 'T',
      context: 'C',
    }),
    get: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'C' },
            { type: 'text', text: 'T\n\nA' },
          ],
        },
      ],
    },
  },
  {
    field: 'document: URL',
    how: 'upstreams fetch no documents',
    what: 'refused',
    give: user({ type: 'document', source: { type: 'url', url: 'https://x.test/a.pdf' } }),
    param: 'messages[0].content[0].source',
  },
  {
    field: 'citations of documents',
    how: 'answers have none then',
    what: 'changed',
    give: user({
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: 'A' },
      citations: { enabled: true },
    }),
    get: { messages: [{ role: 'user', content: 'A' }] },
  },
  {
    field: 'search_result',
    how: 'text: title, source, content',
    what: 'changed',
    give: user({ type: 'search_result', title: 'T', source: 'S', content: [{ type: 'text', text: 'A' }] }),
    get: { messages: [{ role: 'user', content: 'T (S):\nA' }] },
  },
];
