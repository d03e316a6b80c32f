import { isRecord } from '../../../api.ts';
import { dataUrl } from '../attachments.ts';
import { fieldsOf, type Delta, type Settings } from '../conversation.ts';
import { textIn, type Heard, type Style } from './style.ts';
import type { Attachment, Turn } from '../turn.ts';

/** The chat-completions style. */
export const completions: Style = {
  bodyOf,
  streamed: { stream: true, stream_options: { include_usage: true } },
  hear,
};

function bodyOf(model: string, turns: readonly Turn[], settings: Settings): Record<string, unknown> {
  const system = settings.system.trim() === '' ? [] : [{ role: 'system', content: settings.system }];
  return { model, messages: [...system, ...turns.flatMap(messagesOf)], ...fieldsOf(settings) };
}

function messagesOf(turn: Turn): object[] {
  if (turn.role === 'user') {
    const { text, files } = turn;
    if (files.length === 0) return [{ role: 'user', content: text }];
    return [{ role: 'user', content: [...files.map(partOf), ...(text === '' ? [] : [{ type: 'text', text }])] }];
  }
  if (turn.role === 'tool') return turn.ids.map((id) => ({ role: 'tool', tool_call_id: id, content: turn.text }));
  if (turn.text === '' && turn.tools.length === 0) return [];
  const tool_calls = turn.tools.map(({ id, name, arguments: input }) => {
    return { id, type: 'function', function: { name, arguments: input } };
  });
  return [
    {
      role: 'assistant',
      content: turn.text === '' ? null : turn.text,
      ...(tool_calls.length > 0 && turn.state === 'done' && { tool_calls }),
    },
  ];
}

function partOf(file: Attachment): object {
  if (file.kind === 'link') {
    const { url, detail } = file;
    return { type: 'image_url', image_url: { url, ...(detail !== undefined && { detail }) } };
  }
  if (file.kind === 'image') return { type: 'image_url', image_url: { url: dataUrl(file) } };
  if (file.kind === 'document') return { type: 'file', file: { filename: file.name, file_data: dataUrl(file) } };
  const format = file.media_type === 'audio/mpeg' ? 'mp3' : 'wav';
  return { type: 'input_audio', input_audio: { data: file.data, format } };
}

function hear(event: Record<string, unknown>): Heard {
  if (isRecord(event['error'])) return { error: textIn(event['error']['message']) || 'The response was cut off.' };
  const [choice] = Array.isArray(event['choices']) ? event['choices'] : [];
  if (!isRecord(choice)) return {};
  const { finish_reason: finish, delta } = choice;
  return {
    ...(typeof finish === 'string' && { finish }),
    ...(isRecord(delta) && { delta: readDelta(delta) }),
  };
}

function readDelta(delta: Record<string, unknown>): Delta {
  const tools = (Array.isArray(delta['tool_calls']) ? delta['tool_calls'] : []).filter(isRecord);
  return {
    text: textIn(delta['content']),
    thinking: textIn(delta['reasoning_content']) || textIn(delta['reasoning']),
    tools: tools.map((tool) => {
      const { index, id } = tool;
      const call = isRecord(tool['function']) ? tool['function'] : {};
      return {
        key: typeof index === 'number' ? index : 0,
        ...(typeof id === 'string' && { id }),
        ...(typeof call['name'] === 'string' && { name: call['name'] }),
        arguments: textIn(call['arguments']),
      };
    }),
  };
}
