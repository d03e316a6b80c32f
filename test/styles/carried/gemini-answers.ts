import type { JsonObject } from '../../../src/catalog/model.ts';
import { named } from './row.ts';
import type { Style } from '../by-name.ts';

/** A part of Gemini's whole answer, and its form for callers of both styles. */
export type ContentsAnswerRow = {
  part: string;
  how: { readonly [style in Style]: string };
  give: JsonObject;
  get: { readonly [style in Style]: JsonObject };
  /** Of the request in chat completions, beside the plainest. */
  ask?: JsonObject;
};

export const plainest_of_contents: JsonObject = {
  candidates: [{ content: { parts: [{ text: 'A' }], role: 'model' }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  modelVersion: 'upstream',
  responseId: 'up-1',
};

const parts = (...content_parts: JsonObject[]): JsonObject => finished('STOP', ...content_parts);
const finished = (finishReason: string, ...content_parts: JsonObject[]): JsonObject => ({
  candidates: [{ content: { parts: content_parts, role: 'model' }, finishReason, index: 0 }],
});
const chosen = (message: JsonObject, finish_reason = 'stop'): JsonObject => ({
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
});
const content = (stop_reason: string, ...blocks: JsonObject[]): JsonObject => ({ content: blocks, stop_reason });
const text = { type: 'text', text: 'A' };
const called = { functionCall: { id: 'a', name: 'f', args: { x: 1 } } };
const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } };
const use = { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } };
const google = (thought_signature: string): JsonObject => ({ extra_content: { google: { thought_signature } } });

export const answers_of_contents: readonly ContentsAnswerRow[] = [
  {
    part: 'responseId; modelVersion',
    how: { completions: 'an id of our own; the public name', messages: 'the same' },
    give: {},
    get: {
      completions: { id: 'chatcmpl-req_1', model: 'public', ...chosen({ content: 'A', refusal: null }) },
      messages: {
        id: 'msg_req_1',
        type: 'message',
        model: 'public',
        ...content('end_turn', text),
        stop_sequence: null,
      },
    },
  },
  {
    part: 'text; thoughts',
    how: {
      completions: 'one `content`; `reasoning_content`',
      messages: '`text`; `thinking` without a signature, first',
    },
    give: parts({ text: 'Hm.', thought: true }, { text: 'A' }),
    get: {
      completions: chosen({ content: 'A', reasoning_content: 'Hm.' }),
      messages: content('end_turn', { type: 'thinking', thinking: 'Hm.', signature: '' }, text),
    },
  },
  {
    part: 'functionCall',
    how: { completions: '`tool_calls`', messages: '`tool_use`' },
    give: parts(called),
    get: {
      completions: chosen({ content: null, tool_calls: [call] }, 'tool_calls'),
      messages: content('tool_use', use),
    },
  },
  {
    part: 'functionCall without an id or arguments',
    how: { completions: 'an id of our own, an empty object', messages: 'the same' },
    give: parts({ functionCall: { name: 'f' } }, { functionCall: { name: 'f' } }),
    get: {
      completions: chosen(
        {
          tool_calls: [
            { id: 'call_req_1_0_0', function: { name: 'f', arguments: '{}' } },
            { id: 'call_req_1_0_1', function: { name: 'f', arguments: '{}' } },
          ],
        },
        'tool_calls',
      ),
      messages: content('tool_use', { id: 'call_req_1_0_0', input: {} }, { id: 'call_req_1_0_1', input: {} }),
    },
  },
  {
    part: 'thoughtSignature of a functionCall',
    how: {
      completions: '`extra_content.google.thought_signature` of the call, to be sent back',
      messages: 'the `signature` of the thinking before it, or of an empty one, to be sent back',
    },
    give: parts({ text: 'Hm.', thought: true }, { ...called, thoughtSignature: 'c2VhbA==' }),
    get: {
      completions: chosen({ tool_calls: [{ ...call, ...google('c2VhbA==') }] }, 'tool_calls'),
      messages: content('tool_use', { type: 'thinking', thinking: 'Hm.', signature: 'gemini:a:c2VhbA==' }, use),
    },
  },
  {
    part: 'thoughtSignature of a text',
    how: { completions: '`extra_content` of the message', messages: 'left out: Gemini goes on without it' },
    give: parts({ text: 'A', thoughtSignature: 'c2VhbA==' }),
    get: { completions: chosen({ content: 'A', ...google('c2VhbA==') }), messages: content('end_turn', text) },
  },
  {
    part: 'functionCall, for callers with `functions`',
    how: { completions: '`function_call`', messages: '' },
    ask: { functions: [{ name: 'f' }] },
    give: parts(called),
    get: {
      completions: chosen({ function_call: { name: 'f', arguments: '{"x":1}' } }, 'function_call'),
      messages: content('tool_use', use),
    },
  },
  {
    part: 'names of tools that were changed',
    how: { completions: 'the caller’s own', messages: 'the same' },
    ask: { tools: [named('ns.f')] },
    give: parts({ functionCall: { id: 'a', name: 'ns_f_611c07cd' } }),
    get: {
      completions: chosen({ tool_calls: [{ id: 'a', function: { name: 'ns.f', arguments: '{}' } }] }, 'tool_calls'),
      messages: content('tool_use', { name: 'ns_f_611c07cd' }),
    },
  },
  {
    part: 'inlineData, executableCode, groundingMetadata',
    how: { completions: 'left out', messages: 'left out' },
    give: parts({ executableCode: { code: '1' } }, { text: 'A' }, { inlineData: { mimeType: 'image/png', data: '' } }),
    get: { completions: chosen({ content: 'A' }), messages: content('end_turn', text) },
  },
  {
    part: 'finishReason: STOP and words that we do not know',
    how: { completions: '`stop`; `tool_calls` if there are any', messages: '`end_turn`; `tool_use` if there are any' },
    give: finished('NEW', { text: 'A' }),
    get: { completions: chosen({ content: 'A' }), messages: content('end_turn', text) },
  },
  {
    part: 'finishReason: MAX_TOKENS',
    how: { completions: '`length`', messages: '`max_tokens`' },
    give: finished('MAX_TOKENS', { text: 'A' }),
    get: { completions: chosen({ content: 'A' }, 'length'), messages: content('max_tokens', text) },
  },
  {
    part: 'finishReason: SAFETY, RECITATION, BLOCKLIST, PROHIBITED_CONTENT, SPII, IMAGE_SAFETY, …',
    how: {
      completions: '`content_filter`, what is told of it in `refusal`',
      messages: '`refusal`, what is told of it as text',
    },
    give: { candidates: [{ finishReason: 'SAFETY', finishMessage: 'No.', index: 0 }] },
    get: {
      completions: chosen({ content: null, refusal: 'No.' }, 'content_filter'),
      messages: content('refusal', { type: 'text', text: 'No.' }),
    },
  },
  {
    part: 'usageMetadata',
    how: {
      completions: 'cached tokens are within the prompt’s, thoughts are added to the output',
      messages: '`input_tokens` leaves out what was cached, thoughts are added to the output',
    },
    give: {
      usageMetadata: {
        promptTokenCount: 10,
        cachedContentTokenCount: 4,
        toolUsePromptTokenCount: 2,
        candidatesTokenCount: 5,
        thoughtsTokenCount: 3,
        totalTokenCount: 20,
      },
    },
    get: {
      completions: {
        usage: {
          prompt_tokens: 12,
          completion_tokens: 8,
          total_tokens: 20,
          prompt_tokens_details: { cached_tokens: 4 },
          completion_tokens_details: { reasoning_tokens: 3 },
        },
      },
      messages: { usage: { input_tokens: 8, cache_read_input_tokens: 4, output_tokens: 8 } },
    },
  },
  {
    part: 'usageMetadata without candidates: all was thought',
    how: { completions: 'only thoughts', messages: 'the same' },
    give: {
      ...finished('MAX_TOKENS'),
      usageMetadata: { promptTokenCount: 10, thoughtsTokenCount: 7, totalTokenCount: 17 },
    },
    get: {
      completions: { ...chosen({ content: '' }, 'length'), usage: { completion_tokens: 7 } },
      messages: { ...content('max_tokens'), usage: { input_tokens: 10, output_tokens: 7 } },
    },
  },
  {
    part: 'usageMetadata: none',
    how: { completions: 'estimated', messages: 'estimated' },
    give: { usageMetadata: null },
    get: {
      completions: { usage: { prompt_tokens: 11, completion_tokens: 1 } },
      messages: { usage: { input_tokens: 11, output_tokens: 1 } },
    },
  },
];

type Failure = { part: string; how: string; give: JsonObject; status?: 400 };

/** Bodies that are no answer at all. */
export const failures_of_contents: readonly Failure[] = [
  {
    part: 'promptFeedback.blockReason without candidates',
    how: '400 `invalid_request`, code `content_filter`; nothing is charged',
    give: { candidates: null, promptFeedback: { blockReason: 'OTHER' } },
    status: 400,
  },
  {
    part: 'finishReason: MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, TOO_MANY_TOOL_CALLS, MISSING_THOUGHT_SIGNATURE, MALFORMED_RESPONSE',
    how: 'no answer: the next route is asked; in a stream that has begun, an error',
    give: finished('MALFORMED_FUNCTION_CALL', { text: 'A' }),
  },
  {
    part: 'finishReason: OTHER, LANGUAGE, NO_IMAGE, IMAGE_OTHER, without any content',
    how: 'the same',
    give: finished('OTHER'),
  },
];
