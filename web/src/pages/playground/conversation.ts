import type { Cost } from '../../../../src/dashboard/views/common.ts';
import type { Delta, ToolCall } from './chat-stream.ts';

/** What was said to one model, and by it. */
export type Turn =
  | { role: 'user'; text: string }
  /** Results of the tools that were just called, the same for each of them. */
  | { role: 'tool'; text: string; ids: string[] }
  | Said;

export type Said = {
  role: 'assistant';
  text: string;
  thinking: string;
  tools: ToolCall[];
  state: 'streaming' | 'done' | 'stopped' | 'failed';
  finish: string | undefined;
  error: Error | undefined;
  request_id: string | undefined;
  bill: Bill | undefined;
};

export type Bill = { input_tokens: number; output_tokens: number; cost: Cost; total_ms: number };

export type Settings = {
  system: string;
  max_tokens: number | undefined;
  temperature: number | undefined;
  tools: string;
};

export const nothing_said: Said = {
  role: 'assistant',
  text: '',
  thinking: '',
  tools: [],
  state: 'streaming',
  finish: undefined,
  error: undefined,
  request_id: undefined,
  bill: undefined,
};

export function withDelta(said: Said, { text, thinking, tools }: Delta): Said {
  const calls = [...said.tools];
  for (const { index, call } of tools) {
    const before = calls[index] ?? { id: '', name: '', arguments: '' };
    calls[index] = {
      id: call.id ?? before.id,
      name: call.name ?? before.name,
      arguments: before.arguments + (call.arguments ?? ''),
    };
  }
  return { ...said, text: said.text + text, thinking: said.thinking + thinking, tools: calls };
}

/** The next thing that a person says: to tools that were called, it is what they found. */
export function nextTurn(turns: readonly Turn[], text: string): Turn {
  const last = turns.at(-1);
  const called = last?.role === 'assistant' && last.state === 'done' ? last.tools : [];
  return called.length > 0 ? { role: 'tool', text, ids: called.map(({ id }) => id) } : { role: 'user', text };
}

/** The body of a call in the completions style. */
export function bodyOf(model: string, turns: readonly Turn[], settings: Settings): Record<string, unknown> {
  const { system, max_tokens, temperature, tools } = settings;
  const read = readTools(tools);
  return {
    model,
    messages: [...(system.trim() === '' ? [] : [{ role: 'system', content: system }]), ...turns.flatMap(messagesOf)],
    ...(max_tokens !== undefined && { max_tokens }),
    ...(temperature !== undefined && { temperature }),
    ...(read && read.length > 0 && { tools: read }),
  };
}

function messagesOf(turn: Turn): object[] {
  if (turn.role === 'user') return [{ role: 'user', content: turn.text }];
  if (turn.role === 'tool') return turn.ids.map((id) => ({ role: 'tool', tool_call_id: id, content: turn.text }));
  if (turn.text === '' && turn.tools.length === 0) return [];
  const tool_calls = turn.tools.map(({ id, name, arguments: given }) => {
    return { id, type: 'function', function: { name, arguments: given } };
  });
  return [
    {
      role: 'assistant',
      content: turn.text === '' ? null : turn.text,
      ...(tool_calls.length > 0 && turn.state === 'done' && { tool_calls }),
    },
  ];
}

/** Undefined: this is no list in JSON. */
export function readTools(text: string): unknown[] | undefined {
  if (text.trim() === '') return [];
  try {
    const read: unknown = JSON.parse(text);
    return Array.isArray(read) ? read : undefined;
  } catch {
    return undefined;
  }
}
