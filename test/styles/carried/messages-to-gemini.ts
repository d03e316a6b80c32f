import type { JsonObject } from '../../../src/catalog/model.ts';
import { hi_part, inline, model, userContent, unsealed } from './completions-to-gemini.ts';
import { blocks, closed, hi, parameters, pdf, png, tool, use, used, user, type Row } from './row.ts';

const called = (id: string): JsonObject => ({ functionCall: { id, name: 'f', args: {} } });
const config = (generationConfig: JsonObject): JsonObject => ({ generationConfig });
const answered = (response: JsonObject, more: JsonObject = {}): JsonObject =>
  userContent({ functionResponse: { id: 'a', name: 'f', response, ...more } });

/** From messages style to Gemini. */
export const messages_to_gemini: readonly Row[] = [
  {
    field: 'max_tokens',
    how: '`maxOutputTokens`, at most what the model may write and at least 1',
    what: 'carried',
    give: { max_tokens: 0 },
    get: config({ maxOutputTokens: 1 }),
    absent: ['model'],
  },
  {
    field: 'system; messages: system turns',
    how: 'parts of `systemInstruction`, without a first line `x-anthropic-billing-header: …`',
    what: 'changed',
    give: {
      system: [
        { type: 'text', text: 'x-anthropic-billing-header: 1' },
        { type: 'text', text: 'A', cache_control: { type: 'ephemeral' } },
      ],
      messages: [hi, { role: 'system', content: 'B' }],
    },
    get: { systemInstruction: { parts: [{ text: 'A' }, { text: 'B' }] }, contents: [hi_part] },
  },
  {
    field: 'image, document: base64',
    how: '`inlineData`; a title is a text before it',
    what: 'carried',
    give: user({ type: 'image', source: png }, { type: 'document', source: pdf, title: 'a.pdf' }),
    get: { contents: [userContent(inline('image/png'), { text: 'a.pdf' }, inline('application/pdf'))] },
  },
  {
    field: 'image, document: URL',
    how: 'fetched, up to 20 MB each and 64 MB in all, and sent as `inlineData`; 400 if that fails',
    what: 'carried',
    give: user({ type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } }),
    get: { contents: [userContent({ inlineData: {} })] },
  },
  {
    field: 'image, document: file',
    how: 'uploaded to another provider',
    what: 'refused',
    give: user({ type: 'image', source: { type: 'file', file_id: 'x' } }),
    param: 'messages[0].content[0].source',
  },
  {
    field: 'document: text, content; search_result',
    how: 'text',
    what: 'changed',
    give: user({ type: 'document', source: { type: 'text', data: 'A' }, title: 'T' }),
    get: { contents: [userContent({ text: 'T\n\nA' })] },
  },
  {
    field: 'tool_use, tool_result',
    how: '`functionCall` and `functionResponse` with their ids; what a tool found stands in `response.output`',
    what: 'carried',
    give: blocks(used('a', { content: '7' }), { type: 'text', text: 'Hi' }),
    get: { contents: [hi_part, model(called('a')), answered({ output: '7' }), hi_part] },
  },
  {
    field: 'tool_result: is_error',
    how: '`response.error`',
    what: 'carried',
    give: blocks(used('a', { content: 'No.', is_error: true })),
    get: { contents: [hi_part, model(called('a')), answered({ error: 'No.' })] },
  },
  {
    field: 'tool_result: images, documents',
    how: '`parts` of the `functionResponse`',
    what: 'carried',
    give: blocks(used('a', { content: [{ type: 'image', source: png }] })),
    get: { contents: [hi_part, model(called('a')), answered({ output: '' }, { parts: [inline('image/png')] })] },
  },
  {
    field: 'the same, with the route’s `result_media: false`',
    how: 'in a content behind the results, which point to it',
    what: 'changed',
    quirks: { result_media: false },
    give: blocks(used('a', { content: [{ type: 'image', source: png }] })),
    get: {
      contents: [
        hi_part,
        model(called('a')),
        answered({ output: '(see the image in the next message)' }),
        userContent({ text: 'From the result of the tool call a:' }, inline('image/png')),
      ],
    },
  },
  {
    field: 'thinking with a signature that Gemini’s answer came with',
    how: '`thoughtSignature` of the call that it names; asked again without any if Gemini does not know one',
    what: 'carried',
    give: {
      messages: [
        hi,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: 'gemini:b:c2VhbA==' },
            { type: 'text', text: 'A' },
            use('a'),
            use('b'),
          ],
        },
        { role: 'user', content: [used('a'), used('b')] },
      ],
    },
    get: {
      contents: [hi_part, model({ text: 'A' }, called('a'), { ...called('b'), thoughtSignature: 'c2VhbA==' }), {}],
    },
  },
  {
    field: 'tool_use without any',
    how: `\`thoughtSignature: ${unsealed}\` of the first, without which Gemini refuses calls that other models made; not with the route’s \`thinking: budget\` or \`none\``,
    what: 'changed',
    give: blocks(used('a')),
    get: { contents: [hi_part, model({ ...called('a'), thoughtSignature: unsealed }), {}] },
  },
  {
    field: 'thinking, redacted_thinking',
    how: 'left out',
    what: 'changed',
    give: {
      messages: [
        hi,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: 'EqQB' },
            { type: 'redacted_thinking', data: 'x' },
            { type: 'text', text: 'A' },
          ],
        },
        hi,
      ],
    },
    get: { contents: [hi_part, model({ text: 'A' }), hi_part] },
  },
  {
    field: 'tools: custom',
    how: '`functionDeclarations`, `input_schema` as `parametersJsonSchema`; `strict` as `VALIDATED`',
    what: 'changed',
    give: {
      tools: [
        { ...tool('f'), description: 'd' },
        { name: 'g', input_schema: closed, strict: true },
      ],
    },
    get: {
      tools: [
        {
          functionDeclarations: [
            { name: 'f', description: 'd', parametersJsonSchema: parameters },
            { name: 'g', parametersJsonSchema: closed },
          ],
        },
      ],
      toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } },
    },
  },
  {
    field: 'tools: web_search_*, code_execution_*, bash_*, …; mcp_servers',
    how: 'the provider’s own: left out, unless tool_choice makes the model use them',
    what: 'dropped',
    give: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
  },
  {
    field: 'tool_choice: auto, any, tool, none',
    how: 'the modes `AUTO`, `ANY`, `ANY` with `allowedFunctionNames`, `NONE`',
    what: 'carried',
    give: { tools: [tool('f')], tool_choice: { type: 'tool', name: 'f' } },
    get: { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } } },
  },
  {
    field: 'tool_choice.disable_parallel_tool_use',
    how: 'an instruction',
    what: 'changed',
    give: { tools: [tool('f')], tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    get: { systemInstruction: { parts: [{ text: 'Call at most one tool at a time.' }] } },
  },
  {
    field: 'temperature, top_p, top_k',
    how: 'the same',
    what: 'carried',
    give: { temperature: 0.5, top_p: 0.5, top_k: 5 },
    get: config({ temperature: 0.5, topP: 0.5, topK: 5 }),
  },
  {
    field: 'stop_sequences',
    how: '`stopSequences`; which one was met is not told',
    what: 'carried',
    give: { stop_sequences: ['END'] },
    get: config({ stopSequences: ['END'] }),
  },
  {
    field: 'stop_sequences: more than 5',
    how: 'no place for them',
    what: 'refused',
    give: { stop_sequences: [...'123456'] },
    param: 'stop_sequences',
  },
  {
    field: 'thinking: enabled; adaptive; output_config.effort',
    how: '`thinkingLevel`: LOW below 4,096 tokens, MEDIUM below 16,384, else HIGH; what the model thinks is asked for',
    what: 'changed',
    give: { thinking: { type: 'enabled', budget_tokens: 5000 } },
    get: config({ thinkingConfig: { includeThoughts: true, thinkingLevel: 'MEDIUM' } }),
  },
  {
    field: 'the same, with the route’s `thinking: budget`',
    how: '`thinkingBudget`, below `max_tokens`',
    what: 'carried',
    quirks: { thinking: 'budget' },
    give: { max_tokens: 3000, thinking: { type: 'enabled', budget_tokens: 2000 } },
    get: config({ thinkingConfig: { includeThoughts: true, thinkingBudget: 2000 } }),
  },
  {
    field: 'thinking: disabled',
    how: '`thinkingLevel: LOW`, the least that all models take; `thinkingBudget: 0`; nothing with `thinking: always`',
    what: 'changed',
    quirks: { thinking: 'budget' },
    give: { thinking: { type: 'disabled' } },
    get: config({ thinkingConfig: { thinkingBudget: 0 } }),
  },
  {
    field: 'output_config.format, output_format',
    how: '`responseJsonSchema`',
    what: 'carried',
    give: { output_config: { format: { type: 'json_schema', schema: parameters } } },
    get: config({ responseMimeType: 'application/json', responseJsonSchema: parameters }),
  },
  {
    field: 'the same, with the route’s `structured_output: tool`',
    how: 'a tool that must be called; its arguments are the answer’s text',
    what: 'changed',
    quirks: { structured_output: 'tool' },
    give: { output_config: { format: { type: 'json_schema', schema: parameters } } },
    get: { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['json_output'] } } },
  },
  {
    field: 'cache_control, metadata, context_management, container, betas and all others',
    how: 'hints, and matters of the other provider',
    what: 'dropped',
    give: { metadata: { user_id: 'u' }, context_management: { edits: [] }, whatever: 1, stream: true },
  },
];
