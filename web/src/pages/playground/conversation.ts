import { Failure, isRecord } from '../../api.ts';
import type { ChatStyle } from '../../../../src/dashboard/views/playground.ts';
import { parseJson } from './json.ts';
import type { AnswerError, Attachment, ModelAnswer, ToolCall, Turn } from './turn.ts';

export function answerError(error: unknown): AnswerError {
  if (error instanceof Failure) return { message: error.message, status: error.status, request_id: error.request_id };
  return { message: 'The service cannot be reached. It may be restarting.', status: 0, request_id: undefined };
}

export function failureOf({ message, status, request_id }: AnswerError): Failure {
  return new Failure(status, { message, ...(request_id !== undefined && { request_id }) });
}

/** The part of an answer in one event of a stream. */
export type Delta = { text?: string; thinking?: string; tools?: (Pick<ToolCall, 'key'> & Partial<ToolCall>)[] };

export type Settings = {
  style: ChatStyle;
  system: string;
  max_tokens: number | undefined;
  temperature: number | undefined;
  /** JSON, as the chat-completions style has it. */
  tools: string;
  /** Fields of the call that have no control of their own. */
  more: Record<string, unknown>;
};

const usual_settings: Settings = {
  style: 'completions',
  system: '',
  max_tokens: 1_000,
  temperature: undefined,
  tools: '',
  more: {},
};

/** Settings that an address brought along, in which anything may stand. */
export function settingsIn(part: Record<string, unknown> | undefined): Settings {
  if (!part) return usual_settings;
  const { style, system, fields } = part;
  return withFields(
    {
      ...usual_settings,
      style: style === 'messages' ? 'messages' : 'completions',
      system: typeof system === 'string' ? system : '',
    },
    isRecord(fields) ? fields : {},
  );
}

/** The settings as an address carries them. */
export function sharedSettings(settings: Settings): Record<string, unknown> {
  const { style, system } = settings;
  return { style, ...(system !== '' && { system }), fields: fieldsOf(settings) };
}

/** Returns the fields of the body beside the messages. */
export function fieldsOf({ max_tokens, temperature, tools, more }: Settings): Record<string, unknown> {
  const read = readTools(tools);
  return {
    ...(max_tokens !== undefined && { max_tokens }),
    ...(temperature !== undefined && { temperature }),
    ...(read && read.length > 0 && { tools: read }),
    ...more,
  };
}

/** The settings with these fields in the place of all that they had. */
export function withFields(settings: Settings, fields: Record<string, unknown>): Settings {
  // Said elsewhere: who is asked, what, and how the answer comes.
  const { model: _m, messages: _s, stream: _w, stream_options: _o, max_tokens, temperature, tools, ...more } = fields;
  return {
    ...settings,
    max_tokens: typeof max_tokens === 'number' ? max_tokens : undefined,
    temperature: typeof temperature === 'number' ? temperature : undefined,
    tools: Array.isArray(tools) && tools.length > 0 ? JSON.stringify(tools, undefined, 2) : '',
    more,
  };
}

export const empty_answer: ModelAnswer = {
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

export function withDelta(answer: ModelAnswer, { text = '', thinking = '', tools = [] }: Delta): ModelAnswer {
  const calls = [...answer.tools];
  for (const { key, id, name, arguments: more } of tools) {
    const at = calls.findIndex((call) => call.key === key);
    const before = calls[at] ?? { key, id: '', name: '', arguments: '' };
    const call = { key, id: id ?? before.id, name: name ?? before.name, arguments: before.arguments + (more ?? '') };
    if (at === -1) calls.push(call);
    else calls[at] = call;
  }
  return { ...answer, text: answer.text + text, thinking: answer.thinking + thinking, tools: calls };
}

/** The next thing that a person says: to tools that were called, it is what they found. */
export function nextTurn(turns: readonly Turn[], text: string, files: Attachment[]): Turn {
  const last = turns.at(-1);
  const called = last?.role === 'assistant' && last.state === 'done' ? last.tools : [];
  return called.length > 0 ? { role: 'tool', text, ids: called.map(({ id }) => id) } : { role: 'user', text, files };
}

export function attachmentsIn(turns: readonly Turn[]): Attachment[] {
  return turns.flatMap((turn) => (turn.role === 'user' ? turn.files : []));
}

/** Reads a list in JSON; undefined if the text is none. */
export function readTools(text: string): unknown[] | undefined {
  if (text.trim() === '') return [];
  try {
    const read = parseJson(text);
    return Array.isArray(read) ? read : undefined;
  } catch {
    return undefined;
  }
}
