import type { JsonObject } from '../../../src/catalog/model.ts';
import type { Quirks } from '../../../src/styles/quirks.ts';
import type { CallerStyle } from '../by-name.ts';

/** A field of a request, and its form at an upstream of the other style. docs/chat-translation.md shows it. */
export type Row = {
  field: string;
  how: string;
  /** Of the caller's body, beside or in place of the fields of the plainest request. */
  give: JsonObject;
  quirks?: Quirks;
} & (
  | { what: 'carried' | 'changed'; get: JsonObject; absent?: readonly string[] }
  /** The upstream's body is that of the plainest request. */
  | { what: 'dropped' }
  /** 400, naming `param`. */
  | { what: 'refused'; param: string }
);

export const plainest: { readonly [style in CallerStyle]: JsonObject } = {
  completions: { model: 'm', messages: [{ role: 'user', content: 'Hi' }] },
  messages: { model: 'm', max_tokens: 1000, messages: [{ role: 'user', content: 'Hi' }] },
  responses: { model: 'm', input: 'Hi' },
  gemini: { model: 'm', contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
};

export const hi = { role: 'user', content: 'Hi' };
export const hi_block = { role: 'user', content: [{ type: 'text', text: 'Hi' }] };
export const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
export const closed = { ...parameters, additionalProperties: false };
export const named = (name: string): JsonObject => ({ type: 'function', function: { name, parameters } });
export const tool = (name: string): JsonObject => ({ name, input_schema: parameters });
export const user = (...content: JsonObject[]): JsonObject => ({ messages: [{ role: 'user', content }] });
export const call = (id: string, text = '{}'): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: text },
});
export const assistantCalls = (...calls: JsonObject[]): JsonObject => ({
  role: 'assistant',
  content: null,
  tool_calls: calls,
});
export const result = (tool_call_id: string, content: string): JsonObject => ({ role: 'tool', tool_call_id, content });
export const use = (id: string, input: JsonObject = {}): JsonObject => ({ type: 'tool_use', id, name: 'f', input });
export const used = (id: string, extra: JsonObject = {}): JsonObject => ({
  type: 'tool_result',
  tool_use_id: id,
  ...extra,
});
export const png = { type: 'base64', media_type: 'image/png', data: 'AAAA' };
export const pdf = { type: 'base64', media_type: 'application/pdf', data: 'AAAA' };
const json_schema = { name: 'answer', schema: parameters, strict: true };
export const format_option = { response_format: { type: 'json_schema', json_schema } };
export const asks = [hi, assistantCalls(call('a')), result('a', '7')];
export const blocks = (...results: JsonObject[]): JsonObject => ({
  messages: [hi, { role: 'assistant', content: [use('a')] }, { role: 'user', content: results }],
});
