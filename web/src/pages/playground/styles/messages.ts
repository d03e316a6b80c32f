import { isRecord } from '../../../api.ts';
import { fieldsOf, type Settings } from '../conversation.ts';
import { parseJson } from '../json.ts';
import { textIn, type Heard, type Style } from './style.ts';
import type { Attachment, Turn } from '../turn.ts';

/** The messages style. */
export const messages: Style = { bodyOf, streamed: { stream: true }, hear };

/** Every call of this style says how long the answer may be. */
const usual_max_tokens = 4_096;

function bodyOf(model: string, turns: readonly Turn[], settings: Settings): Record<string, unknown> {
  const { system } = settings;
  const { tools, ...fields } = fieldsOf(settings);
  return {
    model,
    max_tokens: usual_max_tokens,
    ...(system.trim() !== '' && { system }),
    messages: merged(turns.flatMap(messageOf)),
    ...fields,
    ...(Array.isArray(tools) && { tools: tools.map(toolOf) }),
  };
}

/** Returns a tool in this style; one for the other style is a function in a wrapper. */
function toolOf(tool: unknown): unknown {
  if (!isRecord(tool) || !isRecord(tool['function'])) return tool;
  const { name, description, parameters } = tool['function'];
  return {
    name,
    ...(description !== undefined && { description }),
    input_schema: parameters ?? { type: 'object', properties: {} },
  };
}

type Message = { role: string; content: unknown };

/** Results of several tools that were called at once are one message. */
function merged(separate: readonly Message[]): Message[] {
  const list: Message[] = [];
  for (const message of separate) {
    const last = list.at(-1);
    const both = [last?.content, message.content];
    if (last && both.every(isResults)) list[list.length - 1] = { ...last, content: both.flat() };
    else list.push(message);
  }
  return list;
}

function isResults(content: unknown): boolean {
  return Array.isArray(content) && content.every((block) => isRecord(block) && block['type'] === 'tool_result');
}

function messageOf(turn: Turn): Message[] {
  if (turn.role === 'user') {
    const { text, files } = turn;
    if (files.length === 0) return [{ role: 'user', content: text }];
    return [{ role: 'user', content: [...files.map(blockOf), ...(text === '' ? [] : [{ type: 'text', text }])] }];
  }
  if (turn.role === 'tool') {
    const content = turn.ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: turn.text }));
    return [{ role: 'user', content }];
  }
  const calls = turn.state === 'done' ? turn.tools : [];
  if (turn.text === '' && calls.length === 0) return [];
  const text = turn.text === '' ? [] : [{ type: 'text', text: turn.text }];
  const uses = calls.map(({ id, name, arguments: input }) => ({ type: 'tool_use', id, name, input: objectIn(input) }));
  return [{ role: 'assistant', content: [...text, ...uses] }];
}

function blockOf(file: Attachment): object {
  if (file.kind === 'link') return { type: 'image', source: { type: 'url', url: file.url } };
  const { kind, name, media_type, data } = file;
  if (kind === 'image') return { type: 'image', source: { type: 'base64', media_type, data } };
  if (!media_type.startsWith('text/')) {
    return { type: 'document', title: name, source: { type: 'base64', media_type, data } };
  }
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const text = new TextDecoder().decode(bytes);
  return { type: 'document', title: name, source: { type: 'text', media_type: 'text/plain', data: text } };
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const read = parseJson(text);
    return isRecord(read) ? read : {};
  } catch {
    return {};
  }
}

function hear(event: Record<string, unknown>): Heard {
  const { type, index } = event;
  const key = typeof index === 'number' ? index : 0;
  if (type === 'error') {
    return { error: (isRecord(event['error']) && textIn(event['error']['message'])) || 'The response was cut off.' };
  }
  if (type === 'content_block_start' && isRecord(event['content_block'])) {
    const { type: kind, id, name } = event['content_block'];
    return kind === 'tool_use' ? { delta: { tools: [{ key, id: textIn(id), name: textIn(name) }] } } : {};
  }
  const delta = isRecord(event['delta']) ? event['delta'] : {};
  if (type === 'content_block_delta') {
    const { text, thinking, partial_json } = delta;
    if (typeof partial_json === 'string') return { delta: { tools: [{ key, arguments: partial_json }] } };
    return { delta: { text: textIn(text), thinking: textIn(thinking) } };
  }
  const { stop_reason } = delta;
  if (type !== 'message_delta' || typeof stop_reason !== 'string') return {};
  return { finish: stop_reason === 'max_tokens' ? 'length' : stop_reason };
}
