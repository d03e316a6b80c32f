import type { JsonObject } from '../../../src/catalog/model.ts';
import type { AnswerRow } from './answers.ts';
import { parameters, result, type Row } from './row.ts';

const hi = { role: 'user', parts: [{ text: 'Hi' }] };
const hi_there = { role: 'user', content: 'Hi' };
const userContents = (...parts: JsonObject[]): JsonObject => ({ contents: [{ role: 'user', parts }] });
const got = (...content: JsonObject[]): JsonObject => ({ messages: [{ role: 'user', content }] });
const config = (generationConfig: JsonObject): JsonObject => ({ generationConfig });
const declared = { functionDeclarations: [{ name: 'f', description: 'd', parametersJsonSchema: parameters }] };
const call = (id: string): JsonObject => ({ id, type: 'function', function: { name: 'f', arguments: '{"x":1}' } });
const turns = (model: JsonObject[], user: JsonObject[]): JsonObject => ({
  contents: [hi, { role: 'model', parts: model }, { role: 'user', parts: user }],
});
const called = { functionCall: { id: 'a', name: 'f', args: { x: 1 } } };
const answered = { functionResponse: { id: 'a', name: 'f', response: { output: '7' } } };
const calling = (id: string): JsonObject => ({ role: 'assistant', content: null, tool_calls: [call(id)] });
const choice = (functionCallingConfig: JsonObject): JsonObject => ({
  tools: [declared],
  toolConfig: { functionCallingConfig },
});

/** From Gemini's style to chat completions. */
export const from_gemini: readonly Row[] = [
  {
    field: 'the model of the path; generationConfig.maxOutputTokens',
    how: 'the name of the route’s model; at most what the model may write',
    what: 'changed',
    give: config({ maxOutputTokens: 50 }),
    get: { model: 'upstream', max_tokens: 50 },
  },
  {
    field: 'systemInstruction',
    how: 'a system message at the start',
    what: 'carried',
    give: { systemInstruction: { parts: [{ text: 'Be kind.' }] } },
    get: { messages: [{ role: 'system', content: 'Be kind.' }, hi_there] },
  },
  {
    field: 'contents: several of the model in a row',
    how: 'one message: streams come back in pieces',
    what: 'carried',
    give: { contents: [hi, { role: 'model', parts: [{ text: 'A' }] }, { role: 'model', parts: [{ text: 'B' }] }, hi] },
    get: { messages: [hi_there, { role: 'assistant', content: 'AB' }, hi_there] },
  },
  {
    field: 'inlineData: image',
    how: '`image_url` as a data URL',
    what: 'carried',
    give: userContents({ inlineData: { mimeType: 'image/png', data: 'AAAA' } }),
    get: got({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }),
  },
  {
    field: 'fileData: image',
    how: '`image_url` as a link',
    what: 'carried',
    give: userContents({ fileData: { mimeType: 'image/png', fileUri: 'https://files.example/a.png' } }),
    get: got({ type: 'image_url', image_url: { url: 'https://files.example/a.png' } }),
  },
  {
    field: 'inlineData: PDF',
    how: 'a file with its name',
    what: 'carried',
    give: userContents({ inlineData: { mimeType: 'application/pdf', data: 'AAAA', displayName: 'a.pdf' } }),
    get: got({ type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } }),
  },
  {
    field: 'inlineData: audio',
    how: '`input_audio`',
    what: 'carried',
    give: userContents({ inlineData: { mimeType: 'audio/wav', data: 'AAAA' } }),
    get: got({ type: 'input_audio', input_audio: { format: 'wav', data: 'AAAA' } }),
  },
  {
    field: 'functionCall, functionResponse',
    how: '`tool_calls`, a tool message',
    what: 'carried',
    give: turns([called], [answered]),
    get: { messages: [hi_there, calling('a'), result('a', '7')] },
  },
  {
    field: 'functionCall, functionResponse without ids',
    how: 'ids of our own; results find their calls by the name, in order',
    what: 'carried',
    give: turns(
      [{ functionCall: { name: 'f', args: { x: 1 } } }],
      [{ functionResponse: { name: 'f', response: { output: '7' } } }],
    ),
    get: { messages: [hi_there, calling('call_1_0'), result('call_1_0', '7')] },
  },
  {
    field: 'functionResponse with more than an output',
    how: 'its JSON',
    what: 'carried',
    give: turns([called], [{ functionResponse: { id: 'a', name: 'f', response: { a: 1, b: [2] } } }]),
    get: { messages: [hi_there, calling('a'), result('a', '{"a":1,"b":[2]}')] },
  },
  {
    field: 'functionResponse without a call',
    how: 'no upstream takes it',
    what: 'refused',
    param: 'contents[0].parts[0].functionResponse.id',
    give: userContents(answered),
  },
  {
    field: 'executableCode, codeExecutionResult, toolCall, toolResponse',
    how: 'a model of Google’s wrote them for itself',
    what: 'dropped',
    give: userContents({ text: 'Hi' }, { executableCode: { code: '1' } }, { codeExecutionResult: { output: '1' } }),
  },
  {
    field: 'inlineData of the model',
    how: 'other models do not take files that they have not made',
    what: 'refused',
    param: 'contents[1].parts[0]',
    give: turns([{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }], [{ text: 'Hi' }]),
  },
  {
    field: 'thoughtSignature',
    how: '`extra_content.google.thought_signature` is for upstreams that ask for it; Gemini’s own goes to no other',
    what: 'changed',
    give: turns([{ ...called, thoughtSignature: 'c2VhbA==' }], [answered]),
    get: { messages: [hi_there, calling('a'), result('a', '7')] },
  },
  {
    field: 'tools: functionDeclarations with parametersJsonSchema',
    how: 'functions',
    what: 'carried',
    give: { tools: [declared] },
    get: { tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters } }] },
  },
  {
    field: 'tools: functionDeclarations with parameters',
    how: 'as JSON Schema: types in small letters, `nullable` as a type, texts of counts as numbers',
    what: 'changed',
    give: {
      tools: [
        {
          functionDeclarations: [
            {
              name: 'f',
              parameters: {
                type: 'OBJECT',
                properties: {
                  a: { type: 'STRING', nullable: true, format: 'enum', enum: ['x'] },
                  b: { type: 'ARRAY', items: { type: 'INTEGER' }, minItems: '1' },
                },
                propertyOrdering: ['a', 'b'],
              },
            },
          ],
        },
      ],
    },
    get: {
      tools: [
        {
          type: 'function',
          function: {
            name: 'f',
            parameters: {
              type: 'object',
              properties: {
                a: { type: ['string', 'null'], enum: ['x', null] },
                b: { type: 'array', items: { type: 'integer' }, minItems: 1 },
              },
            },
          },
        },
      ],
    },
  },
  {
    field: 'tools: googleSearch, codeExecution, urlContext, …',
    how: 'left out, as `x-tools-left-out` says',
    what: 'dropped',
    give: { tools: [{ googleSearch: {} }, { codeExecution: {} }] },
  },
  {
    field: 'toolConfig: AUTO, VALIDATED',
    how: '`auto`',
    what: 'carried',
    give: choice({ mode: 'AUTO' }),
    get: { tool_choice: 'auto' },
  },
  {
    field: 'toolConfig: ANY',
    how: '`required`',
    what: 'carried',
    give: choice({ mode: 'ANY' }),
    get: { tool_choice: 'required' },
  },
  {
    field: 'toolConfig: ANY with one allowed function',
    how: 'that function',
    what: 'carried',
    give: choice({ mode: 'ANY', allowedFunctionNames: ['f'] }),
    get: { tool_choice: { type: 'function', function: { name: 'f' } } },
  },
  {
    field: 'toolConfig: NONE',
    how: '`none`',
    what: 'carried',
    give: choice({ mode: 'NONE' }),
    get: { tool_choice: 'none' },
  },
  {
    field: 'toolConfig with a function that is none',
    how: 'no model could call it',
    what: 'refused',
    param: 'toolConfig.functionCallingConfig.allowedFunctionNames',
    give: choice({ mode: 'ANY', allowedFunctionNames: ['g'] }),
  },
  {
    field: 'temperature, topP',
    how: 'the same',
    what: 'carried',
    give: config({ temperature: 0.5, topP: 0.9 }),
    get: { temperature: 0.5, top_p: 0.9 },
  },
  {
    field: 'stopSequences',
    how: '`stop`',
    what: 'carried',
    give: config({ stopSequences: ['END'] }),
    get: { stop: ['END'] },
  },
  {
    field: 'topK, seed, penalties, logprobs, mediaResolution, safetySettings, serviceTier',
    how: 'the upstream’s own are used',
    what: 'dropped',
    give: {
      ...config({
        topK: 5,
        seed: 5,
        presencePenalty: 1,
        frequencyPenalty: 1,
        responseLogprobs: true,
        mediaResolution: 'X',
      }),
      safetySettings: [{ category: 'a', threshold: 'b' }],
      serviceTier: 'flex',
    },
  },
  {
    field: 'responseMimeType: application/json',
    how: '`json_object`',
    what: 'carried',
    give: config({ responseMimeType: 'application/json' }),
    get: { response_format: { type: 'json_object' } },
  },
  {
    field: 'responseSchema, responseJsonSchema',
    how: '`json_schema`, the first as JSON Schema',
    what: 'carried',
    give: config({
      responseMimeType: 'application/json',
      responseSchema: { type: 'OBJECT', properties: { a: { type: 'STRING' } } },
    }),
    get: {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'output', schema: { type: 'object', properties: { a: { type: 'string' } } } },
      },
    },
  },
  {
    field: 'responseMimeType: text/x.enum',
    how: 'others have nothing like it',
    what: 'refused',
    param: 'generationConfig.responseMimeType',
    give: config({ responseMimeType: 'text/x.enum' }),
  },
  {
    field: 'responseModalities: more than text',
    how: 'models of chat answer in text',
    what: 'refused',
    param: 'generationConfig.responseModalities',
    give: config({ responseModalities: ['TEXT', 'IMAGE'] }),
  },
  {
    field: 'cachedContent',
    how: 'a part of the conversation would be missing',
    what: 'refused',
    param: 'cachedContent',
    give: { cachedContent: 'cachedContents/x' },
  },
  {
    field: 'thinkingConfig: thinkingLevel',
    how: '`reasoning_effort`',
    what: 'carried',
    give: config({ thinkingConfig: { thinkingLevel: 'LOW' } }),
    get: { reasoning_effort: 'low' },
  },
  {
    field: 'thinkingConfig: thinkingBudget',
    how: 'the effort that is nearest',
    what: 'changed',
    give: config({ thinkingConfig: { thinkingBudget: 9000 } }),
    get: { reasoning_effort: 'medium' },
  },
];

/** Answers of messages style for a caller of Gemini's. */
export const answers_for_gemini: readonly AnswerRow[] = [
  {
    part: 'id, model',
    how: '`responseId`, an id of our own; `modelVersion`, the public name',
    give: {},
    get: { responseId: 'req_1', modelVersion: 'public', candidates: [{ index: 0, finishReason: 'STOP' }] },
  },
  {
    part: 'thinking, redacted_thinking',
    how: 'thoughts, their signatures in `thoughtSignature`, with `includeThoughts`; else left out',
    ask: config({ thinkingConfig: { includeThoughts: true } }),
    give: {
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: 'Eq==' },
        { type: 'redacted_thinking', data: 'x' },
        { type: 'text', text: 'A' },
      ],
    },
    get: {
      candidates: [
        {
          content: {
            parts: [
              { text: 'Hm.', thought: true, thoughtSignature: 'bWVkbGV5LXRoaW5raW5nOkVxPT0=' },
              { text: '', thought: true, thoughtSignature: 'bWVkbGV5LXJlZGFjdGVkOng=' },
              { text: 'A' },
            ],
            role: 'model',
          },
        },
      ],
    },
  },
  {
    part: 'tool_use',
    how: '`functionCall`',
    give: { content: [{ type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } }], stop_reason: 'tool_use' },
    get: {
      candidates: [
        { content: { parts: [{ functionCall: { id: 'a', name: 'f', args: { x: 1 } } }] }, finishReason: 'STOP' },
      ],
    },
  },
  {
    part: 'max_tokens',
    how: '`MAX_TOKENS`',
    give: { stop_reason: 'max_tokens' },
    get: { candidates: [{ finishReason: 'MAX_TOKENS' }] },
  },
  {
    part: 'refusal',
    how: '`SAFETY`',
    give: { stop_reason: 'refusal' },
    get: { candidates: [{ finishReason: 'SAFETY' }] },
  },
  {
    part: 'usage',
    how: 'all input, cached or not, is `promptTokenCount`; thoughts stand beside the candidates’ tokens',
    give: { usage: { input_tokens: 5, cache_read_input_tokens: 3, cache_creation_input_tokens: 2, output_tokens: 4 } },
    get: {
      usageMetadata: { promptTokenCount: 10, cachedContentTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 14 },
    },
  },
];
