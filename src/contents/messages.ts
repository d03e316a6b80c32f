import { isObject, type Json, type JsonObject } from '../catalog/model.ts';
import type { LoggedMessage } from './answer.ts';

/**
 * Reads the messages of a stored request, whatever its style: in the form of chat completions, as far as they have a
 * place there. Nothing is refused: what was stored is to be read, if it is half of it.
 */
export function messagesOf(request: JsonObject): LoggedMessage[] {
  const { messages, contents, input, prompt } = request;
  const system = [
    request['system'],
    request['instructions'],
    request['systemInstruction'],
    request['system_instruction'],
  ];
  const leading = system.flatMap((each) => systemMessage(each));
  if (Array.isArray(messages)) return [...leading, ...messages.filter(isObject).flatMap(messageOf)];
  if (Array.isArray(contents)) return [...leading, ...contents.filter(isObject).flatMap(geminiMessage)];
  if (input !== undefined) return [...leading, ...itemsOf(input)];
  return prompt === undefined ? leading : [...leading, { role: 'user', content: textOf(prompt) }];
}

function systemMessage(value: Json | undefined): LoggedMessage[] {
  if (value === undefined || value === null) return [];
  const text = textOf(isObject(value) ? (value['parts'] ?? null) : value);
  return text === '' ? [] : [{ role: 'system', content: text }];
}

/** The texts of a value: a text, or a list of texts and parts that have one. */
function textOf(value: Json): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value))
    return value
      .map(textOf)
      .filter((text) => text !== '')
      .join('\n');
  return isObject(value) && typeof value['text'] === 'string' ? value['text'] : '';
}

/** A message of chat completions stays as it is; blocks of the messages style find their places. */
function messageOf(message: JsonObject): LoggedMessage[] {
  const { role = 'user', content = null } = message;
  if (!Array.isArray(content) || !content.some(isBlock)) return [message];
  const blocks = content.filter(isObject);
  const results = blocks.filter(({ type }) => type === 'tool_result');
  const calls = blocks.filter(({ type }) => type === 'tool_use');
  const rest = blocks.filter(({ type }) => type !== 'tool_result' && type !== 'tool_use');
  const thinking = rest.filter(({ type }) => type === 'thinking').map((block) => String(block['thinking'] ?? ''));
  const shown = rest.filter(({ type }) => type !== 'thinking' && type !== 'redacted_thinking').map(partOf);
  const own: LoggedMessage = {
    role,
    content: shown.length === 0 ? null : shown,
    ...(thinking.length > 0 && { reasoning_content: thinking.join('\n') }),
    ...(calls.length > 0 && { tool_calls: calls.map(({ id, name, input }) => toolCall(id, name, input)) }),
  };
  return [
    ...results.map(({ tool_use_id = null, content: result = '' }) => toolMessage(tool_use_id, textOf(result))),
    ...(shown.length > 0 || calls.length > 0 || thinking.length > 0 ? [own] : []),
  ];
}

const block_types = new Set<unknown>(['tool_use', 'tool_result', 'thinking', 'redacted_thinking', 'image', 'document']);

function isBlock(part: Json): boolean {
  return isObject(part) && block_types.has(part['type']);
}

/** A part of a message, as chat completions have it; of a file, the note that stands in its place. */
function partOf(part: JsonObject): JsonObject {
  const { type, text, image_url } = part;
  if (typeof text === 'string') return { type: 'text', text };
  if (type === 'input_image' && typeof image_url === 'string')
    return { type: 'image_url', image_url: { url: image_url } };
  if (type === 'image_url') return part;
  const note = noteIn(part);
  if (isImage(part) && note?.startsWith('http')) return { type: 'image_url', image_url: { url: note } };
  return { type: 'text', text: note ?? JSON.stringify(part) };
}

/** Tells whether a part is an image of the messages style or of Gemini's. */
function isImage({ type, fileData, file_data = fileData }: JsonObject): boolean {
  if (!isObject(file_data)) return type === 'image';
  return String(file_data['mimeType'] ?? file_data['mime_type']).startsWith('image/');
}

/** The link or the note of a file, wherever a style has it. */
function noteIn(part: Json): string | undefined {
  if (typeof part === 'string') return /^(?:https?:\/\/|\[[^\]]* not logged\])/.test(part) ? part : undefined;
  if (!isObject(part)) return undefined;
  for (const member of Object.values(part)) {
    const note = noteIn(member);
    if (note !== undefined) return note;
  }
  return undefined;
}

function toolCall(id: Json = '', name: Json = '', input: Json = {}): JsonObject {
  const text = typeof input === 'string' ? input : JSON.stringify(input);
  return { id, type: 'function', function: { name, arguments: text } };
}

function toolMessage(id: Json, text: string): LoggedMessage {
  return { role: 'tool', tool_call_id: id, content: text };
}

/** The input of the responses style: a text, or items. Texts to embed are one message each. */
function itemsOf(input: Json): LoggedMessage[] {
  if (!Array.isArray(input)) return [{ role: 'user', content: textOf(input) }];
  return input.map((item): LoggedMessage => {
    if (!isObject(item)) return { role: 'user', content: textOf(item) };
    const { type, call_id = null, name, role = 'user', content = null } = item;
    if (type === 'function_call' || type === 'custom_tool_call')
      return {
        role: 'assistant',
        content: null,
        tool_calls: [toolCall(call_id, name, item['arguments'] ?? item['input'])],
      };
    if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      const { output = '' } = item;
      return toolMessage(call_id, typeof output === 'string' ? output : textOf(output));
    }
    if (type === 'reasoning')
      return { role: 'assistant', content: null, reasoning_content: textOf(item['summary'] ?? '') };
    if (type !== undefined && type !== 'message') return { role: 'assistant', content: JSON.stringify(item) };
    return { role, content: Array.isArray(content) ? content.filter(isObject).map(partOf) : content };
  });
}

function geminiMessage({ role, parts = [] }: JsonObject): LoggedMessage[] {
  const list = Array.isArray(parts) ? parts.filter(isObject) : [];
  const results = list.flatMap(({ functionResponse: result }) =>
    isObject(result)
      ? [toolMessage(result['id'] ?? result['name'] ?? null, JSON.stringify(result['response'] ?? null))]
      : [],
  );
  const calls = list.flatMap(({ functionCall: call }) =>
    isObject(call) ? [toolCall(call['id'] ?? call['name'], call['name'], call['args'])] : [],
  );
  const shown = list
    .filter((part) => !isObject(part['functionResponse']) && !isObject(part['functionCall']))
    .map(partOf);
  const own: LoggedMessage = {
    role: role === 'model' ? 'assistant' : 'user',
    content: shown.length === 0 ? null : shown,
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return [...results, ...(shown.length > 0 || calls.length > 0 ? [own] : [])];
}

/** Members of a request that say what is answered, and how it comes: all others are settings. */
const conversation_members =
  /^(?:model|messages|contents|input|prompt|system|instructions|system_?[Ii]nstruction|stream|stream_options)$/;

/** The members of a request beside its messages: how the model was to answer. */
export function settingsOf(request: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(request).filter(([name]) => !conversation_members.test(name)));
}
