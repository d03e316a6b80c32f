import type { Json, JsonObject } from '../../../src/catalog/model.ts';
import { geminiOf } from './gemini-caller.ts';
import { schemaOf, type Author } from './marks.ts';
import type { CallerStyle } from '../by-name.ts';

/** Requests of each style with everything in them that its SDKs can say. */
export const callers: { readonly [style in CallerStyle]: (author: Author) => JsonObject } = {
  completions: completionsOf,
  messages: messagesOf,
  responses: responsesOf,
  gemini: geminiOf,
};

const pdf = 'application/pdf';
const png = 'image/png';
const dataUrl = (type: string, base64: string): string => `data:${type};base64,${base64}`;
const asText = (author: Author, place: string): string => Buffer.from(author.text(place)).toString('base64');
const argumentsOf = (author: Author): string =>
  author.one(
    () => JSON.stringify({ [author.name('tool call')]: author.text('tool call') }),
    () => author.text('tool call'),
  );

function completionsOf(author: Author): JsonObject {
  const tools = author.some(() => ({ name: author.name('tool name'), ...describedFunction(author) }));
  const messages: JsonObject[] = [];
  if (author.yes()) messages.push(systemMessage(author));
  messages.push({ role: 'user', content: completionsContent(author) });
  for (const index of author.some(() => 0).keys()) {
    messages.push(...completionsExchange(author, `call_${index}`));
    if (author.yes()) messages.push(systemMessage(author));
    messages.push({
      role: 'user',
      content: completionsContent(author),
      ...author.maybe(() => ({ name: author.name('message name') })),
    });
  }
  return {
    model: 'm',
    max_tokens: 100,
    messages,
    ...author.one<JsonObject>(
      () => ({ tools: tools.map((each) => ({ type: 'function', function: each })) }),
      () => (tools.length === 0 ? {} : { tools: [], functions: tools }),
      () => (tools.length === 0 ? {} : { functions: tools }),
    ),
    ...author.maybe(() => ({ response_format: { type: 'json_schema', json_schema: namedSchema(author) } })),
    ...author.maybe(() => ({ stop: [author.text('stop')] })),
  };
}

function systemMessage(author: Author): JsonObject {
  const role = author.one(
    () => 'system',
    () => 'developer',
  );
  const text = (): string => author.text('system');
  return {
    role,
    content: author.one<Json>(
      text,
      () => `x-anthropic-billing-header: a\n${text()}`,
      () => [
        { type: 'text', text: text() },
        { type: 'text', text: text() },
      ],
    ),
  };
}

function completionsContent(author: Author): Json {
  return author.one<Json>(
    () => author.text('user text'),
    () => [{ type: 'text', text: author.text('user text') }, ...author.some(() => completionsPart(author))],
  );
}

function completionsPart(author: Author): JsonObject {
  const file = (type: string, data: string): JsonObject => ({
    type: 'file',
    file: { filename: author.text('file name'), file_data: dataUrl(type, data) },
  });
  return author.one<JsonObject>(
    () => ({ type: 'text', text: author.text('user text') }),
    () => ({ type: 'image_url', image_url: { url: dataUrl(png, author.base64('image')) } }),
    () => ({ type: 'image_url', image_url: { url: author.url('image link'), detail: 'low' } }),
    () => ({ type: 'image_url', image_url: author.url('image link') }),
    () => file(pdf, author.base64('document')),
    () => file('text/plain', asText(author, 'text file')),
    () => ({
      type: 'file',
      file: { filename: author.text('image file name'), file_data: dataUrl(png, author.base64('image')) },
    }),
    () => ({ type: 'file', file: { filename: author.text('file name'), file_data: author.url('document link') } }),
    () => ({ type: 'input_audio', input_audio: { data: author.base64('audio'), format: 'wav' } }),
  );
}

/** Messages of the assistant, with its calls and their results. */
function completionsExchange(author: Author, id: string): JsonObject[] {
  const results = author.one<Json>(
    () => author.text('tool result'),
    () => [{ type: 'text', text: author.text('tool result') }, completionsPart(author)],
  );
  const call = { name: author.name('called tool'), arguments: argumentsOf(author) };
  const message = {
    role: 'assistant',
    content: author.one<Json>(
      () => author.text('assistant text'),
      () => [{ type: 'refusal', refusal: author.text('assistant text') }],
      () => [
        { type: 'text', text: author.text('assistant text') },
        { type: 'text', text: author.text('assistant text') },
      ],
    ),
    ...author.maybe(() => ({ refusal: author.text('assistant text') })),
    ...author.maybe(() => ({ reasoning_content: author.text('thinking') })),
  };
  return author.one<JsonObject[]>(
    () => [message],
    () => [
      { ...message, tool_calls: [{ id, type: 'function', function: call }] },
      { role: 'tool', tool_call_id: id, content: results },
    ],
    () => [
      {
        ...message,
        tool_calls: [{ id, type: 'function', function: { name: author.name('called tool'), arguments: '{}' } }],
        function_call: call,
      },
      { role: 'tool', tool_call_id: id, content: results },
    ],
    () => [
      { ...message, function_call: call },
      { role: 'function', name: call.name, content: author.text('tool result') },
    ],
  );
}

function describedFunction(author: Author): JsonObject {
  return {
    ...author.maybe(() => ({ description: author.text('tool description') })),
    ...author.maybe(() => ({ parameters: schemaOf(author) })),
    ...author.maybe(() => ({ strict: true })),
  };
}

function namedSchema(author: Author): JsonObject {
  return {
    name: 'answer',
    ...author.maybe(() => ({ description: author.text('format description') })),
    schema: schemaOf(author),
  };
}

function messagesOf(author: Author): JsonObject {
  const messages: JsonObject[] = [{ role: 'user', content: messagesContent(author) }];
  for (const index of author.some(() => 0).keys()) {
    if (author.yes()) messages.push({ role: 'system', content: systemBlocks(author) });
    messages.push(...messagesExchange(author, `toolu_${index}`));
  }
  return {
    model: 'm',
    max_tokens: 100,
    messages,
    ...author.maybe(() => ({ system: systemOf(author) })),
    tools: author.some(() => ({
      name: author.name('tool name'),
      ...author.maybe(() => ({ description: author.text('tool description') })),
      input_schema: schemaOf(author),
    })),
    ...author.maybe(() => ({ output_config: { format: { type: 'json_schema', schema: schemaOf(author) } } })),
    ...author.maybe(() => ({ stop_sequences: [author.text('stop')] })),
  };
}

function systemBlocks(author: Author): Json {
  return author.one<Json>(
    () => author.text('system'),
    () => [
      { type: 'text', text: author.text('system') },
      { type: 'text', text: author.text('system') },
    ],
  );
}

/** As Claude Code sends it, whose first block is no part of the prompt; or as a proxy does, which has joined them. */
function systemOf(author: Author): Json {
  const billing = 'x-anthropic-billing-header: cc_version=2.1; cch=00000;';
  return author.one<Json>(
    () => systemBlocks(author),
    () => [
      { type: 'text', text: billing },
      { type: 'text', text: author.text('system') },
      { type: 'text', text: author.text('system') },
    ],
    () => `${billing}\n\n${author.text('system')}`,
  );
}

function messagesContent(author: Author): Json {
  return author.one<Json>(
    () => author.text('user text'),
    () => [{ type: 'text', text: author.text('user text') }, ...author.some(() => messagesBlock(author))],
  );
}

function messagesBlock(author: Author): JsonObject {
  const named = (): JsonObject => ({
    ...author.maybe(() => ({ title: author.text('file name') })),
    ...author.maybe(() => ({ context: author.text('document context') })),
  });
  return author.one<JsonObject>(
    () => ({ type: 'text', text: author.text('user text') }),
    () => ({ type: 'image', source: { type: 'base64', media_type: png, data: author.base64('image') } }),
    () => ({ type: 'image', source: { type: 'url', url: author.url('image link') } }),
    () => ({
      type: 'document',
      source: { type: 'base64', media_type: pdf, data: author.base64('document') },
      ...named(),
    }),
    () => ({ type: 'document', source: { type: 'url', url: author.url('document link') }, ...named() }),
    () => ({
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: author.text('text file') },
      ...named(),
    }),
    () => ({
      type: 'document',
      source: {
        type: 'content',
        content: [
          { type: 'text', text: author.text('text file') },
          { type: 'image', source: { type: 'base64', media_type: png, data: author.base64('image') } },
        ],
      },
      ...named(),
    }),
    () => ({
      type: 'search_result',
      source: author.text('search result'),
      title: author.text('search result'),
      content: [{ type: 'text', text: author.text('search result') }],
    }),
  );
}

function messagesExchange(author: Author, id: string): JsonObject[] {
  const parts: JsonObject[] = [{ type: 'text', text: author.text('assistant text') }];
  if (author.yes()) parts.unshift({ type: 'thinking', thinking: author.text('thinking'), signature: 'Eq==' });
  if (author.yes()) parts.push(...serverBlocks(author, id));
  const then: JsonObject = { role: 'user', content: messagesContent(author) };
  if (author.yes()) return [{ role: 'assistant', content: parts }, then];
  const call = {
    type: 'tool_use',
    id,
    name: author.name('called tool'),
    input: { [author.name('tool call')]: author.text('tool call') },
  };
  const result: JsonObject = {
    type: 'tool_result',
    tool_use_id: id,
    content: author.one<Json>(
      () => author.text('tool result'),
      () => [{ type: 'text', text: author.text('tool result') }, messagesBlock(author)],
      () => [messagesBlock(author)],
      () => [{ type: 'tool_reference', tool_name: author.name('tool result') }],
    ),
    ...author.maybe(() => ({ is_error: true })),
  };
  const behind = { type: 'text', text: author.text('user text') };
  return [
    { role: 'assistant', content: [...parts, call] },
    { role: 'user', content: [result, behind] },
    { role: 'assistant', content: author.text('assistant text') },
    then,
  ];
}

/** Calls of the upstream's own tools, with their results: more than other models often get. */
function serverBlocks(author: Author, id: string): JsonObject[] {
  const results = author.one(
    () => '',
    () => 'x'.repeat(30_000),
  );
  return [
    { type: 'mcp_tool_use', id, name: 'search', server_name: 's', input: { query: author.text('server tool') } },
    {
      type: 'mcp_tool_result',
      tool_use_id: id,
      is_error: false,
      content: [{ type: 'text', text: `${results}${author.text('server tool')}` }],
    },
  ];
}

function responsesOf(author: Author): JsonObject {
  const items: JsonObject[] = [{ role: 'user', content: responsesContent(author) }];
  for (const index of author.some(() => 0).keys()) {
    items.push(...responsesExchange(author, `call_${index}`));
    items.push({ type: 'message', role: 'user', content: responsesContent(author) });
  }
  return {
    model: 'm',
    ...author.maybe(() => ({ instructions: author.text('system') })),
    input: author.one<Json>(
      () => items,
      () => [{ role: 'developer', content: author.text('system') }, ...items],
      () => [...items, { role: 'system', content: [{ type: 'input_text', text: author.text('system') }] }, ...items],
    ),
    tools: author.some(() => ({ type: 'function', name: author.name('tool name'), ...describedFunction(author) })),
    ...author.maybe(() => ({ text: { format: { type: 'json_schema', ...namedSchema(author) } } })),
  };
}

function responsesContent(author: Author): Json {
  return author.one<Json>(
    () => author.text('user text'),
    () => [{ type: 'input_text', text: author.text('user text') }, ...author.some(() => responsesPart(author))],
  );
}

function responsesPart(author: Author): JsonObject {
  const file = (name: string, more: JsonObject): JsonObject => ({
    type: 'input_file',
    filename: author.text(name),
    ...more,
  });
  return author.one<JsonObject>(
    () => ({ type: 'input_text', text: author.text('user text') }),
    () => ({ type: 'input_image', image_url: dataUrl(png, author.base64('image')) }),
    () => ({ type: 'input_image', image_url: author.url('image link'), detail: 'low' }),
    () => file('file name', { file_data: dataUrl(pdf, author.base64('document')) }),
    () => file('file name', { file_data: dataUrl('text/plain', asText(author, 'text file')) }),
    () => file('image file name', { file_data: dataUrl(png, author.base64('image')) }),
    () => file('file name', { file_url: author.url('document link') }),
    () =>
      file('file name', { file_url: author.url('document link'), file_data: dataUrl(pdf, author.base64('document')) }),
  );
}

function responsesExchange(author: Author, id: string): JsonObject[] {
  const message = {
    type: 'message',
    role: 'assistant',
    content: author.one<Json>(
      () => author.text('assistant text'),
      () => [
        { type: 'output_text', text: author.text('assistant text'), annotations: [] },
        { type: 'refusal', refusal: author.text('assistant text') },
      ],
      () => [{ type: 'output_text', text: author.text('assistant text') }, responsesPart(author)],
    ),
  };
  if (author.yes()) return [message];
  const thought = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: author.text('thinking') }] };
  return [
    ...(author.yes() ? [thought] : []),
    message,
    { type: 'function_call', call_id: id, name: author.name('called tool'), arguments: argumentsOf(author) },
    {
      type: 'function_call_output',
      call_id: id,
      output: author.one<Json>(
        () => author.text('tool result'),
        () => [{ type: 'input_text', text: author.text('tool result') }, responsesPart(author)],
      ),
    },
  ];
}
