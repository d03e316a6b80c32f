import type { JsonObject } from '../../../src/catalog/model.ts';
import {
  assistantCalls,
  asks,
  call,
  closed,
  hi,
  named,
  parameters,
  result,
  user,
  format_option,
  type Row,
} from './row.ts';

export const userContent = (...parts: JsonObject[]): JsonObject => ({ role: 'user', parts });
export const model = (...parts: JsonObject[]): JsonObject => ({ role: 'model', parts });
export const hi_part = userContent({ text: 'Hi' });
export const inline = (mimeType: string): JsonObject => ({ inlineData: { mimeType, data: 'AAAA' } });
export const unsealed = 'skip_thought_signature_validator';
const called = (id: string, args: JsonObject = {}): JsonObject => ({ functionCall: { id, name: 'f', args } });
const replied = (id: string, response: JsonObject): JsonObject => ({ functionResponse: { id, name: 'f', response } });
const config = (generationConfig: JsonObject): JsonObject => ({ generationConfig });
const calling = (functionCallingConfig: JsonObject): JsonObject => ({ toolConfig: { functionCallingConfig } });
const declared = (name: string): JsonObject => ({ name, parametersJsonSchema: parameters });
const sealed = (id: string, thought_signature: string): JsonObject => ({
  ...call(id),
  extra_content: { google: { thought_signature } },
});

/** From chat completions to Gemini. */
export const completions_to_gemini: readonly Row[] = [
  {
    field: 'max_tokens, max_completion_tokens',
    how: '`maxOutputTokens`, at most what the model may write; what the model thinks counts too',
    what: 'carried',
    give: { max_tokens: 9, max_completion_tokens: 8 },
    get: config({ maxOutputTokens: 8 }),
    absent: ['model'],
  },
  {
    field: 'messages: system, developer',
    how: 'parts of `systemInstruction`, also those later on',
    what: 'changed',
    give: { messages: [{ role: 'system', content: 'A' }, hi, { role: 'developer', content: 'B' }, hi] },
    get: {
      systemInstruction: { parts: [{ text: 'A' }, { text: 'B' }] },
      contents: [userContent({ text: 'Hi' }, { text: 'Hi' })],
    },
  },
  {
    field: 'messages: nothing but system',
    how: 'a user’s content, which the style must have',
    what: 'changed',
    give: { messages: [{ role: 'system', content: 'A' }] },
    get: { contents: [userContent({ text: 'A' })] },
    absent: ['systemInstruction'],
  },
  {
    field: 'messages: the first is the assistant’s',
    how: 'a user’s content that says so is put before it',
    what: 'changed',
    give: { messages: [{ role: 'assistant', content: 'A' }, hi] },
    get: {
      contents: [userContent({ text: '(The conversation begins with the assistant.)' }), model({ text: 'A' }), hi_part],
    },
  },
  {
    field: 'messages: empty text',
    how: 'left out, with its content if nothing else is in it',
    what: 'changed',
    give: { messages: [hi, { role: 'assistant', content: '' }, hi] },
    get: { contents: [hi_part, hi_part] },
  },
  {
    field: 'messages: nothing but empty text',
    how: 'there is nothing to answer',
    what: 'refused',
    give: { messages: [{ role: 'user', content: '' }] },
    param: 'messages',
  },
  {
    field: 'image_url, file, input_audio: data',
    how: '`inlineData` of any type; the name of a file is a text before it',
    what: 'carried',
    give: user(
      { type: 'image_url', image_url: { url: 'data:image/heic;base64,AAAA', detail: 'low' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
    ),
    get: {
      contents: [userContent(inline('image/heic'), { text: 'a.pdf' }, inline('application/pdf'), inline('audio/mp3'))],
    },
  },
  {
    field: 'image_url, file: http(s) URL',
    how: 'fetched, up to 20 MB each and 64 MB in all, and sent as `inlineData`; 400 if that fails',
    what: 'carried',
    give: user({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }),
    get: { contents: [userContent({ inlineData: {} })] },
  },
  {
    field: 'file: text',
    how: 'text below its name',
    what: 'changed',
    give: user({ type: 'file', file: { filename: 'a.txt', file_data: 'data:text/plain;base64,aGVsbG8=' } }),
    get: { contents: [userContent({ text: 'a.txt\n\nhello' })] },
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
    how: '`functionCall` and `functionResponse` with their ids; what a tool found stands in `response.output`',
    what: 'carried',
    give: { messages: [hi, assistantCalls(call('a', '{"x":1}'), call('b')), result('a', '7'), result('b', '8'), hi] },
    get: {
      contents: [
        hi_part,
        model(called('a', { x: 1 }), called('b')),
        userContent(replied('a', { output: '7' }), replied('b', { output: '8' })),
        hi_part,
      ],
    },
  },
  {
    field: 'tool_calls: extra_content.google.thought_signature',
    how: '`thoughtSignature` of the call; asked again without any if Gemini does not know one',
    what: 'carried',
    give: { messages: [hi, assistantCalls(sealed('a', 'c2VhbA=='), call('b')), result('a', '7'), result('b', '8')] },
    get: {
      contents: [
        hi_part,
        model({ ...called('a'), thoughtSignature: 'c2VhbA==' }, called('b')),
        userContent(replied('a', { output: '7' }), replied('b', { output: '8' })),
      ],
    },
  },
  {
    field: 'tool_calls without any',
    how: `\`thoughtSignature: ${unsealed}\` of the first, without which Gemini refuses calls that other models made`,
    what: 'changed',
    give: { messages: asks },
    get: {
      contents: [
        hi_part,
        model({ ...called('a'), thoughtSignature: unsealed }),
        userContent(replied('a', { output: '7' })),
      ],
    },
  },
  {
    field: 'extra_content.google.thought_signature of a message',
    how: '`thoughtSignature` of its text',
    what: 'carried',
    give: {
      messages: [
        hi,
        { role: 'assistant', content: 'A', extra_content: { google: { thought_signature: 'c2VhbA==' } } },
        hi,
      ],
    },
    get: { contents: [hi_part, model({ text: 'A', thoughtSignature: 'c2VhbA==' }), hi_part] },
  },
  {
    field: 'tool_calls: arguments that are no JSON object',
    how: 'whole, as text in `args._raw`',
    what: 'changed',
    give: { messages: [hi, assistantCalls(call('a', '{"x"')), result('a', '7')] },
    get: { contents: [hi_part, model(called('a', { _raw: '{"x"' })), userContent(replied('a', { output: '7' }))] },
  },
  {
    field: 'tool messages with images (other vendors)',
    how: '`parts` of the `functionResponse`',
    what: 'carried',
    give: {
      messages: [
        hi,
        assistantCalls(call('a')),
        {
          role: 'tool',
          tool_call_id: 'a',
          content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
        },
      ],
    },
    get: {
      contents: [
        hi_part,
        model(called('a')),
        userContent({ functionResponse: { id: 'a', response: { output: '' }, parts: [inline('image/png')] } }),
      ],
    },
  },
  {
    field: 'assistant: reasoning_content, reasoning_details, refusal',
    how: 'what was thought is left out; a refusal is text',
    what: 'changed',
    give: { messages: [hi, { role: 'assistant', content: 'A', refusal: 'B', reasoning_content: 'Hm.' }, hi] },
    get: { contents: [hi_part, model({ text: 'A' }, { text: 'B' }), hi_part] },
  },
  {
    field: 'tools: functions',
    how: '`functionDeclarations`, `parameters` as `parametersJsonSchema`; keywords that Gemini does not know stand in the description',
    what: 'changed',
    give: {
      tools: [
        {
          type: 'function',
          function: { name: 'f', description: 'd', parameters: { ...parameters, maxProperties: 2 } },
        },
      ],
    },
    get: {
      tools: [
        {
          functionDeclarations: [
            { name: 'f', description: 'd', parametersJsonSchema: { ...parameters, description: '{maxProperties: 2}' } },
          ],
        },
      ],
    },
  },
  {
    field: 'tools: strict',
    how: '`VALIDATED`, for all of them, where they are not forced',
    what: 'changed',
    give: { tools: [{ type: 'function', function: { name: 'f', parameters: closed, strict: true } }] },
    get: calling({ mode: 'VALIDATED' }),
  },
  {
    field:
      'tools: names over 64 characters, with others than letters, digits, `_`, `-`, or with another start than a letter or `_`',
    how: 'shortened or replaced; the caller gets its own names back',
    what: 'changed',
    give: { tools: [named('ns.f'), named('2f')] },
    get: { tools: [{ functionDeclarations: [declared('ns_f_611c07cd'), declared('_2f')] }] },
  },
  {
    field: 'tools: an empty list',
    how: 'none',
    what: 'dropped',
    give: { tools: [], tool_choice: 'auto', parallel_tool_calls: true },
  },
  {
    field: 'tools: custom (grammars)',
    how: 'a function with the argument `input`',
    what: 'changed',
    give: { tools: [{ type: 'custom', custom: { name: 'f' } }] },
    get: { tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: { required: ['input'] } }] }] },
  },
  {
    field: 'tool_choice: auto, none, required',
    how: 'the modes `AUTO`, `NONE`, `ANY`',
    what: 'carried',
    give: { tools: [named('f')], tool_choice: 'required' },
    get: calling({ mode: 'ANY' }),
  },
  {
    field: 'tool_choice: a function; allowed_tools',
    how: '`allowedFunctionNames`; only these tools are given',
    what: 'carried',
    give: { tools: [named('f'), named('g')], tool_choice: { type: 'function', function: { name: 'g' } } },
    get: calling({ mode: 'ANY', allowedFunctionNames: ['g'] }),
  },
  {
    field: 'parallel_tool_calls: false; functions',
    how: 'an instruction',
    what: 'changed',
    give: { tools: [named('f')], parallel_tool_calls: false },
    get: { systemInstruction: { parts: [{ text: 'Call at most one tool at a time.' }] } },
  },
  {
    field: 'temperature, top_p, seed',
    how: 'the same; seeds have 32 bits',
    what: 'carried',
    give: { temperature: 1.5, top_p: 0.5, seed: 4_294_967_299 },
    get: config({ temperature: 1.5, topP: 0.5, seed: 3 }),
  },
  {
    field: 'temperature, top_p, seed, with the route’s `sampling: false`',
    how: 'the model refuses them',
    what: 'dropped',
    quirks: { sampling: false },
    give: { temperature: 1.5, top_p: 0.5, seed: 1 },
  },
  {
    field: 'stop',
    how: '`stopSequences`',
    what: 'carried',
    give: { stop: 'END' },
    get: config({ stopSequences: ['END'] }),
  },
  {
    field: 'stop: more than 5',
    how: 'no place for them',
    what: 'refused',
    give: { stop: [...'123456'] },
    param: 'stop',
  },
  {
    field: 'response_format: json_object',
    how: '`responseMimeType`',
    what: 'carried',
    give: { response_format: { type: 'json_object' } },
    get: config({ responseMimeType: 'application/json' }),
  },
  {
    field: 'response_format: json_schema',
    how: '`responseJsonSchema`, with what Gemini does not know in the description',
    what: 'carried',
    give: format_option,
    get: config({ responseMimeType: 'application/json', responseJsonSchema: parameters }),
  },
  {
    field: 'the same beside tools, with the route’s `format_with_tools: false`',
    how: 'an instruction',
    what: 'changed',
    quirks: { format_with_tools: false },
    give: { ...format_option, tools: [named('f')] },
    get: { systemInstruction: {}, generationConfig: { maxOutputTokens: 4000 } },
  },
  {
    field: 'reasoning_effort, reasoning, thinking',
    how: '`thinkingLevel`: LOW, MEDIUM or HIGH; what the model thinks is asked for',
    what: 'changed',
    give: { reasoning_effort: 'xhigh' },
    get: config({ thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } }),
  },
  {
    field: 'reasoning_effort: none',
    how: '`thinkingLevel: LOW`, the least that all models take',
    what: 'changed',
    give: { reasoning_effort: 'none' },
    get: config({ thinkingConfig: { thinkingLevel: 'LOW' } }),
  },
  {
    field: 'reasoning_effort, with the route’s `thinking: budget`',
    how: '`thinkingBudget`, below the limit of the output; none is 0',
    what: 'changed',
    quirks: { thinking: 'budget' },
    give: { reasoning_effort: 'low' },
    get: config({ thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 } }),
  },
  {
    field: 'reasoning_effort, with the route’s `thinking: none`',
    how: 'the model does not think',
    what: 'dropped',
    quirks: { thinking: 'none' },
    give: { reasoning_effort: 'low' },
  },
  { field: 'n', how: '`candidateCount`, up to 8', what: 'carried', give: { n: 2 }, get: config({ candidateCount: 2 }) },
  { field: 'n above 1 in a stream', how: 'no place for it', what: 'refused', give: { n: 2, stream: true }, param: 'n' },
  {
    field: 'stream',
    how: 'another path',
    what: 'dropped',
    give: { stream: true, stream_options: { include_usage: true } },
  },
  {
    field: 'modalities with audio',
    how: 'no place for it',
    what: 'refused',
    give: { modalities: ['text', 'audio'] },
    param: 'modalities',
  },
  {
    field:
      'presence_penalty, frequency_penalty, logit_bias, logprobs, user, metadata, store, service_tier, prompt_cache_*, cache_control and all others',
    how: 'hints, and matters of the other provider',
    what: 'dropped',
    give: { presence_penalty: 1, frequency_penalty: 1, logit_bias: { '1': 1 }, logprobs: true, user: 'u', whatever: 1 },
  },
  { field: 'null for any field', how: 'not given', what: 'dropped', give: { stop: null, tools: null, n: null } },
];
