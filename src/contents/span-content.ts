import { isObject, type Json, type JsonObject } from '../catalog/model.ts';
import { messagesOf } from './messages.ts';
import type { CallContent } from './stored.ts';

/** Collectors take spans of some hundred kB; the oldest messages are left out first. */
const input_length_max = 64_000;

/**
 * Returns the content of a call as attributes of its span: OpenTelemetry's conventions for generative AI
 * (github.com/open-telemetry/semantic-conventions-genai, read 2026-11-28), as JSON texts.
 */
export function spanContent(content: Pick<CallContent, 'request' | 'answers'>): Readonly<Record<string, string>> {
  const messages = messagesOf(content.request).map(messageIn);
  return {
    'gen_ai.input.messages': newest(messages),
    ...(content.answers.length > 0 && { 'gen_ai.output.messages': JSON.stringify(content.answers.map(messageIn)) }),
  };
}

function newest(messages: readonly JsonObject[]): string {
  const texts: string[] = [];
  let length = 2;
  for (const message of messages.toReversed()) {
    const text = JSON.stringify(message);
    length += text.length + 1;
    if (length > input_length_max && texts.length > 0) break;
    texts.unshift(text);
  }
  return `[${texts.join(',')}]`;
}

function messageIn(message: JsonObject): JsonObject {
  const { role = 'user', content = null, tool_call_id, tool_calls, reasoning_content: thinking, refusal } = message;
  const calls = Array.isArray(tool_calls) ? tool_calls.filter(isObject) : [];
  const parts: JsonObject[] = [
    ...(typeof thinking === 'string' && thinking !== '' ? [{ type: 'reasoning', content: thinking }] : []),
    ...(tool_call_id === undefined
      ? partsOf(content)
      : [{ type: 'tool_call_response', id: tool_call_id, response: content }]),
    ...(typeof refusal === 'string' ? [{ type: 'text', content: refusal }] : []),
    ...calls.map(callPart),
  ];
  return { role, parts };
}

function partsOf(content: Json): JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', content }];
  const list = Array.isArray(content) ? content.filter(isObject) : [];
  return list.map((part) => ({
    type: 'text',
    content: typeof part['text'] === 'string' ? part['text'] : JSON.stringify(part),
  }));
}

function callPart({ id = null, function: called }: JsonObject): JsonObject {
  const { name = '', arguments: text = '' } = objectIn(called ?? null);
  return { type: 'tool_call', id, name, arguments: text };
}

function objectIn(value: Json): JsonObject {
  return isObject(value) ? value : {};
}
