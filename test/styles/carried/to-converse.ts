import type { JsonObject } from '../../../src/catalog/model.ts';
import { assistantCalls, asks, blocks, call, closed, hi, named, parameters, pdf, png, result, tool } from './row.ts';
import { use, used, user, format_option, type Row } from './row.ts';

const userMessage = (...content: JsonObject[]): JsonObject => ({ role: 'user', content });
const model = (...content: JsonObject[]): JsonObject => ({ role: 'assistant', content });
const hi_part = userMessage({ text: 'Hi' });
const called = (toolUseId: string, input: JsonObject = {}): JsonObject => ({
  toolUse: { toolUseId, name: 'f', input },
});
const toolResult = (toolUseId: string, ...content: JsonObject[]): JsonObject => ({
  toolResult: { toolUseId, content },
});
const image = { image: { format: 'png', source: { bytes: 'AAAA' } } };
const document = (name: string): JsonObject => ({ document: { format: 'pdf', name, source: { bytes: 'AAAA' } } });
const spec = (name: string, json: JsonObject = parameters): JsonObject => ({
  toolSpec: { name, inputSchema: { json } },
});
const ordered = (text: string): JsonObject => ({ system: [{ text }] });
const additional = (additionalModelRequestFields: JsonObject): JsonObject => ({ additionalModelRequestFields });
const json_option = { output_config: { format: { type: 'json_schema', schema: parameters } } };
const json_tool = { toolConfig: { toolChoice: { tool: { name: 'json_output' } } } };

const claude = { model_family: 'claude' } as const;
const nova = { model_family: 'nova' } as const;
const gpt = { model_family: 'gpt' } as const;
const thinks_by_budget = { ...claude, thinking: 'budget' } as const;

/** From chat completions to Bedrock's Converse. */
export const completions_to_converse: readonly Row[] = [
  {
    field: 'max_tokens, max_completion_tokens',
    how: '`inferenceConfig.maxTokens`, at most what the model may write',
    what: 'carried',
    give: { max_tokens: 9, max_completion_tokens: 8 },
    get: { inferenceConfig: { maxTokens: 8 } },
    absent: ['model'],
  },
  {
    field: 'messages: system, developer',
    how: '`system`, also those later on',
    what: 'changed',
    give: { messages: [{ role: 'system', content: 'A' }, hi, { role: 'developer', content: 'B' }] },
    get: { system: [{ text: 'A' }, { text: 'B' }], messages: [hi_part] },
  },
  {
    field: 'messages: the first is the assistant’s',
    how: 'a user’s message that says so is put before it',
    what: 'changed',
    give: { messages: [{ role: 'assistant', content: 'A' }, hi] },
    get: {
      messages: [userMessage({ text: '(The conversation begins with the assistant.)' }), model({ text: 'A' }), hi_part],
    },
  },
  {
    field: 'messages of one role in a row, empty text',
    how: 'one message; text of nothing but white space is left out',
    what: 'changed',
    give: { messages: [hi, { role: 'assistant', content: ' ' }, hi] },
    get: { messages: [userMessage({ text: 'Hi' }, { text: 'Hi' })] },
  },
  {
    field: 'messages: nothing but empty text',
    how: 'there is nothing to answer',
    what: 'refused',
    give: { messages: [{ role: 'user', content: '' }] },
    param: 'messages',
  },
  {
    field: 'messages: white space at the end of a last assistant message',
    how: 'left out, since Bedrock refuses it',
    what: 'changed',
    give: { messages: [hi, { role: 'assistant', content: 'So: ' }] },
    get: { messages: [hi_part, model({ text: 'So:' })] },
  },
  {
    field: 'image_url: png, jpeg, gif, webp; file: pdf, text, html, csv, doc, docx, xls, xlsx, md',
    how: '`image`, `document`; a link is fetched before, up to 20 MB each and 64 MB in all. The name of a file keeps letters, digits, spaces, hyphens and brackets',
    what: 'carried',
    give: user(
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
      { type: 'file', file: { filename: 'a_b.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
      { type: 'text', text: 'Hi' },
    ),
    get: { messages: [userMessage(image, document('a b pdf'), { text: 'Hi' })] },
  },
  {
    field: 'the same without a text',
    how: 'a document must have a text beside it: one is added',
    what: 'changed',
    give: user({ type: 'file', file: { filename: 'a', file_data: 'data:application/pdf;base64,AAAA' } }),
    get: { messages: [userMessage(document('a'), { text: '(See the document.)' })] },
  },
  {
    field: 'images and files of other types',
    how: 'no place for them',
    what: 'refused',
    give: user({ type: 'image_url', image_url: { url: 'data:image/tiff;base64,AAAA' } }),
    param: 'messages[0].content[0].image_url.url',
  },
  {
    field: 'input_audio',
    how: 'no place for it',
    what: 'refused',
    give: user({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
    param: 'messages[0].content[0]',
  },
  {
    field: 'file.file_id',
    how: 'uploaded to another provider',
    what: 'refused',
    give: user({ type: 'file', file: { file_id: 'file-1' } }),
    param: 'messages[0].content[0].file.file_id',
  },
  {
    field: 'tool_calls and tool messages',
    how: '`toolUse` and `toolResult`; ids over 64 characters, or with others than letters, digits, `_` and `-`, are replaced',
    what: 'carried',
    give: {
      tools: [named('f')],
      messages: [hi, assistantCalls(call('a', '{"x":1}'), call('b')), result('a', '7'), result('b', '')],
    },
    get: {
      messages: [
        hi_part,
        model(called('a', { x: 1 }), called('b')),
        userMessage(toolResult('a', { text: '7' }), toolResult('b', { text: '(no output)' })),
      ],
    },
  },
  {
    field: 'the same without `tools`',
    how: 'the tools that were called are named, without their schemas, and an instruction to call none; Bedrock refuses it otherwise',
    what: 'changed',
    give: { messages: asks },
    get: { toolConfig: { tools: [spec('f', { type: 'object' })] }, ...ordered('Call no tool any more.') },
  },
  {
    field: 'assistant: reasoning_content, reasoning_details, refusal',
    how: 'what was thought is left out; a refusal is text',
    what: 'changed',
    give: { messages: [hi, { role: 'assistant', content: 'A', refusal: 'B', reasoning_content: 'Hm.' }, hi] },
    get: { messages: [hi_part, model({ text: 'A' }, { text: 'B' }), hi_part] },
  },
  {
    field: 'tools: functions',
    how: '`toolSpec`, `parameters` as `inputSchema.json`',
    what: 'carried',
    give: { tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters } }] },
    get: { toolConfig: { tools: [{ toolSpec: { name: 'f', description: 'd', inputSchema: { json: parameters } } }] } },
  },
  {
    field: 'tools: strict',
    how: 'left out, unless the route says `structured_output: native`',
    what: 'changed',
    quirks: { structured_output: 'native' },
    give: { tools: [{ type: 'function', function: { name: 'f', parameters: closed, strict: true } }] },
    get: { toolConfig: { tools: [{ toolSpec: { name: 'f', strict: true } }] } },
  },
  {
    field: 'tools: names over 64 characters, or with others than letters, digits, `_` and `-`',
    how: 'shortened or replaced; the caller gets its own names back',
    what: 'changed',
    give: { tools: [named('ns.f')] },
    get: { toolConfig: { tools: [spec('ns_f_611c07cd')] } },
  },
  {
    field: 'tools: custom (grammars)',
    how: 'a function with the argument `input`',
    what: 'changed',
    give: { tools: [{ type: 'custom', custom: { name: 'f' } }] },
    get: { toolConfig: { tools: [spec('f', { type: 'object', required: ['input'] })] } },
  },
  {
    field: 'tool_choice: auto, required, a function',
    how: '`toolChoice`: `auto`, `any`, `tool`; an instruction with the route’s `forced_tools: false`',
    what: 'carried',
    give: { tools: [named('f')], tool_choice: { type: 'function', function: { name: 'f' } } },
    get: { toolConfig: { toolChoice: { tool: { name: 'f' } } } },
  },
  {
    field: 'tool_choice: none; parallel_tool_calls: false',
    how: 'an instruction',
    what: 'changed',
    give: { tools: [named('f')], tool_choice: 'none' },
    get: ordered('Call no tool now.'),
  },
  {
    field: 'temperature, top_p',
    how: 'the same, the temperature at most 1; Claude gets one of the two, and none while it thinks',
    what: 'changed',
    quirks: claude,
    give: { temperature: 1.5, top_p: 0.5 },
    get: { inferenceConfig: { temperature: 1 } },
  },
  {
    field: 'temperature, top_p, with the route’s `sampling: false`',
    how: 'the model refuses them',
    what: 'dropped',
    quirks: { sampling: false },
    give: { temperature: 0.5, top_p: 0.5 },
  },
  {
    field: 'stop',
    how: '`stopSequences`, without those of nothing but white space',
    what: 'carried',
    give: { stop: ['END', ' '] },
    get: { inferenceConfig: { stopSequences: ['END'] } },
  },
  {
    field: 'response_format: json_object',
    how: 'an instruction',
    what: 'changed',
    give: { response_format: { type: 'json_object' } },
    get: ordered('Answer with one JSON object only: no other text, no code fence.'),
  },
  {
    field: 'response_format: json_schema',
    how: 'a tool that must be called; its arguments are the answer’s text',
    what: 'changed',
    give: format_option,
    get: { toolConfig: { tools: [spec('json_output')], toolChoice: { tool: { name: 'json_output' } } } },
  },
  {
    field: 'response_format: json_schema, with the route’s `structured_output: native`',
    how: '`outputConfig.textFormat`, the schema as a text',
    what: 'carried',
    quirks: { structured_output: 'native' },
    give: format_option,
    get: { outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema: { name: 'answer' } } } } },
    absent: ['toolConfig'],
  },
  {
    field: 'reasoning_effort: Claude',
    how: '`thinking: adaptive` with `output_config.effort`',
    what: 'changed',
    quirks: claude,
    give: { reasoning_effort: 'minimal' },
    get: additional({ thinking: { type: 'adaptive' }, output_config: { effort: 'low' } }),
  },
  {
    field: 'reasoning_effort: Nova',
    how: '`reasoningConfig` with low, medium or high',
    what: 'changed',
    quirks: nova,
    give: { reasoning_effort: 'xhigh' },
    get: additional({ reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } }),
  },
  {
    field: 'reasoning_effort: models of OpenAI',
    how: '`reasoning_effort`: low, medium or high',
    what: 'changed',
    quirks: gpt,
    give: { reasoning_effort: 'minimal' },
    get: additional({ reasoning_effort: 'low' }),
  },
  {
    field: 'reasoning_effort: other models',
    how: 'no common name for it; they think as they do',
    what: 'dropped',
    give: { reasoning_effort: 'high' },
  },
  { field: 'n above 1', how: 'no place for it', what: 'refused', give: { n: 2 }, param: 'n' },
  {
    field: 'modalities with audio',
    how: 'no place for it',
    what: 'refused',
    give: { modalities: ['text', 'audio'] },
    param: 'modalities',
  },
  {
    field: 'stream',
    how: 'another path',
    what: 'dropped',
    give: { stream: true, stream_options: { include_usage: true } },
  },
  {
    field:
      'seed, presence_penalty, frequency_penalty, logit_bias, logprobs, user, metadata, store, service_tier, prompt_cache_* and all others',
    how: 'hints, and matters of the other provider',
    what: 'dropped',
    give: { seed: 1, presence_penalty: 1, logit_bias: { '1': 1 }, logprobs: true, user: 'u', whatever: 1 },
  },
];

/** From messages style to Bedrock's Converse. */
export const messages_to_converse: readonly Row[] = [
  {
    field: 'max_tokens',
    how: '`inferenceConfig.maxTokens`, at most what the model may write',
    what: 'carried',
    give: { max_tokens: 9 },
    get: { inferenceConfig: { maxTokens: 9 } },
    absent: ['model'],
  },
  {
    field: 'system; messages: system turns',
    how: '`system`',
    what: 'changed',
    give: { system: [{ type: 'text', text: 'A' }], messages: [hi, { role: 'system', content: 'B' }] },
    get: { system: [{ text: 'A' }, { text: 'B' }], messages: [hi_part] },
  },
  {
    field: 'cache_control of system, tools and messages',
    how: 'a `cachePoint` behind the block; an hour only where the model has a price for it',
    what: 'carried',
    give: { system: [{ type: 'text', text: 'A', cache_control: { type: 'ephemeral', ttl: '1h' } }] },
    get: { system: [{ text: 'A' }, { cachePoint: { type: 'default', ttl: '1h' } }] },
  },
  {
    field: 'image, document: base64, URL',
    how: '`image`, `document`; a link is fetched before, up to 20 MB each and 64 MB in all',
    what: 'carried',
    give: user(
      { type: 'image', source: png },
      { type: 'document', source: pdf, title: 'T' },
      { type: 'text', text: 'Hi' },
    ),
    get: { messages: [userMessage(image, document('T'), { text: 'Hi' })] },
  },
  {
    field: 'image, document: file',
    how: 'uploaded to another provider',
    what: 'refused',
    give: user({ type: 'image', source: { type: 'file', file_id: 'x' } }),
    param: 'messages[0].content[0].source',
  },
  {
    field: 'document: text',
    how: '`document` with the format `txt`',
    what: 'carried',
    give: user({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'A' }, title: 'T' }),
    get: { messages: [userMessage({ document: { format: 'txt', name: 'T', source: { bytes: 'QQ==' } } }, {})] },
  },
  {
    field: 'tool_use, tool_result',
    how: '`toolUse`, `toolResult` with images and documents; `is_error` as `status: error`',
    what: 'carried',
    give: { ...blocks(used('a', { content: [{ type: 'image', source: png }], is_error: true })), tools: [tool('f')] },
    get: {
      messages: [
        hi_part,
        model(called('a')),
        userMessage({ toolResult: { toolUseId: 'a', content: [image], status: 'error' } }),
      ],
    },
  },
  {
    field: 'thinking with a signature, redacted_thinking: Claude',
    how: '`reasoningContent`; without a signature, or with one of another provider, left out',
    what: 'carried',
    quirks: claude,
    give: {
      messages: [
        hi,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: 'EqQB' },
            { type: 'thinking', thinking: 'Well.', signature: '' },
            { type: 'redacted_thinking', data: 'ZW5j' },
            { type: 'text', text: 'A' },
          ],
        },
        hi,
      ],
    },
    get: {
      messages: [
        hi_part,
        model(
          { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'EqQB' } } },
          { reasoningContent: { redactedContent: 'ZW5j' } },
          { text: 'A' },
        ),
        hi_part,
      ],
    },
  },
  {
    field: 'thinking, redacted_thinking: other models',
    how: 'left out',
    what: 'changed',
    give: {
      messages: [
        hi,
        { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: 'EqQB' }, use('a')] },
        { role: 'user', content: [used('a', { content: '7' })] },
      ],
    },
    get: { messages: [hi_part, model(called('a')), userMessage(toolResult('a', { text: '7' }))] },
  },
  {
    field: 'tools: custom',
    how: '`toolSpec`; `strict` with the route’s `structured_output: native`',
    what: 'carried',
    give: { tools: [{ ...tool('f'), description: 'd' }] },
    get: { toolConfig: { tools: [{ toolSpec: { name: 'f', description: 'd', inputSchema: { json: parameters } } }] } },
  },
  {
    field: 'tools: web_search_*, code_execution_*, bash_*, …; mcp_servers',
    how: 'the provider’s own: left out, unless tool_choice makes the model use them',
    what: 'dropped',
    give: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
  },
  {
    field: 'tool_choice: auto, any, tool',
    how: '`toolChoice`: `auto`, `any`, `tool`',
    what: 'carried',
    give: { tools: [tool('f')], tool_choice: { type: 'any' } },
    get: { toolConfig: { toolChoice: { any: {} } } },
  },
  {
    field: 'tool_choice: none; disable_parallel_tool_use',
    how: 'an instruction',
    what: 'changed',
    give: { tools: [tool('f')], tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    get: ordered('Call at most one tool at a time.'),
  },
  {
    field: 'temperature, top_p, stop_sequences',
    how: 'the same; which sequence was met is not told',
    what: 'carried',
    give: { temperature: 0.5, top_p: 0.5, stop_sequences: ['END'] },
    get: { inferenceConfig: { temperature: 0.5, topP: 0.5, stopSequences: ['END'] } },
  },
  {
    field: 'top_k: Claude, Nova',
    how: '`top_k`, `inferenceConfig.topK` of the model’s own fields',
    what: 'carried',
    quirks: nova,
    give: { top_k: 7 },
    get: additional({ inferenceConfig: { topK: 7 } }),
  },
  { field: 'top_k: other models', how: 'no common name for it', what: 'dropped', give: { top_k: 7 } },
  {
    field: 'thinking: adaptive, output_config.effort: Claude',
    how: 'the same, among the model’s own fields',
    what: 'carried',
    quirks: claude,
    give: { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
    get: additional({ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }),
  },
  {
    field: 'thinking: enabled, with the route’s `thinking: budget`: Claude',
    how: 'the same, the budget at least 1,024 and below the limit of the output; not beside a tool that must be called',
    what: 'carried',
    quirks: thinks_by_budget,
    give: { max_tokens: 3000, thinking: { type: 'enabled', budget_tokens: 2000 } },
    get: additional({ thinking: { type: 'enabled', budget_tokens: 2000 } }),
  },
  {
    field: 'thinking: enabled: Nova, models of OpenAI',
    how: 'low below 4,096 tokens, medium below 16,384, else high',
    what: 'changed',
    quirks: gpt,
    give: { thinking: { type: 'enabled', budget_tokens: 9000 } },
    get: additional({ reasoning_effort: 'medium' }),
  },
  {
    field: 'thinking: disabled: Claude, Nova',
    how: 'the same, in the words of the model; nothing with `thinking: always`',
    what: 'carried',
    quirks: nova,
    give: { thinking: { type: 'disabled' } },
    get: additional({ reasoningConfig: { type: 'disabled' } }),
  },
  {
    field: 'thinking: other models',
    how: 'no common name for it; they think as they do',
    what: 'dropped',
    give: { thinking: { type: 'enabled', budget_tokens: 2000 } },
  },
  {
    field: 'output_config.format, output_format',
    how: 'a tool that must be called; its arguments are the answer’s text',
    what: 'changed',
    give: json_option,
    get: json_tool,
  },
  {
    field: 'the same, with the route’s `structured_output: native`',
    how: '`outputConfig.textFormat`, the schema as a text',
    what: 'carried',
    quirks: { structured_output: 'native' },
    give: json_option,
    get: { outputConfig: { textFormat: { type: 'json_schema' } } },
    absent: ['toolConfig'],
  },
  {
    field: 'metadata, context_management, container, betas and all others',
    how: 'hints, and matters of the other provider',
    what: 'dropped',
    give: { metadata: { user_id: 'u' }, context_management: { edits: [] }, whatever: 1, stream: true },
  },
];
