import { isRecord } from '../../../api.ts';
import { empty_answer } from '../conversation.ts';
import { textIn } from '../styles/style.ts';
import type { Attachment, ModelAnswer, ToolCall, Turn } from '../turn.ts';

/** A stored message, in the form of chat completions whatever the style of its call was. */
type StoredMessage = Record<string, unknown>;

/** The messages of a stored request as the playground has them, and what it cannot have of them. */
export type ReadMessages = {
  system: string;
  turns: Turn[];
  /** Files in whose place a note was stored. */
  missing_files: number;
  /** Names of messages, parts and calls without a place here. */
  left_out: Set<string>;
  /** A system message stood among the others. */
  has_moved_system: boolean;
  has_thinking: boolean;
};

/** Reads the messages of a stored request. `has_items`: those of the responses style may be items in JSON. */
export function readMessages(messages: readonly StoredMessage[], has_items = false): ReadMessages {
  const read: ReadMessages = {
    system: '',
    turns: [],
    missing_files: 0,
    left_out: new Set(),
    has_moved_system: false,
    has_thinking: false,
  };
  const called = new Set<string>();
  for (const message of messages) {
    const item = has_items ? itemType(message) : undefined;
    if (item === undefined) addMessage(message, read, called);
    else read.left_out.add(item);
  }
  return read;
}

function addMessage(message: StoredMessage, read: ReadMessages, called: Set<string>): void {
  const { role, content, tool_call_id } = message;
  const { turns, left_out } = read;
  if (role === 'system' || role === 'developer') {
    read.has_moved_system ||= turns.length > 0;
    read.system = joined(read.system, readContent(content, read).text);
  } else if (role === 'user') {
    turns.push({ role, ...readContent(content, read) });
  } else if (role === 'tool') {
    const id = textIn(tool_call_id);
    if (called.has(id)) turns.push({ role, text: readContent(content, read).text, ids: [id] });
    else left_out.add('results of calls that are not here'); // a model refuses them
  } else if (role === 'assistant') {
    const answer = readAnswer(message, read);
    read.has_thinking ||= answer.thinking !== '';
    for (const { id } of answer.tools) called.add(id);
    addAnswer(turns, answer);
  } else {
    left_out.add(`messages of the role ${String(role)}`);
  }
}

/** Items of the responses style are one message each; together they are one answer. */
function addAnswer(turns: Turn[], answer: ModelAnswer): void {
  const last = turns.at(-1);
  if (last?.role !== 'assistant') {
    turns.push(answer);
    return;
  }
  const tools = [...last.tools, ...answer.tools].map((tool, key) => ({ ...tool, key }));
  const [text, thinking] = [joined(last.text, answer.text), joined(last.thinking, answer.thinking)];
  turns[turns.length - 1] = { ...last, text, thinking, tools };
}

type LostParts = Pick<ReadMessages, 'missing_files' | 'left_out'>;

/** Reads an answer, with its thinking and its calls of functions. */
export function readAnswer(message: StoredMessage, lost: LostParts): ModelAnswer {
  const { content, refusal, reasoning_content, tool_calls } = message;
  const calls = (Array.isArray(tool_calls) ? tool_calls : []).filter(isRecord);
  const functions = calls.flatMap(({ id, function: call }): Omit<ToolCall, 'key'>[] =>
    isRecord(call) ? [{ id: textIn(id), name: textIn(call['name']), arguments: textIn(call['arguments']) }] : [],
  );
  if (functions.length < calls.length) lost.left_out.add('calls of custom tools');
  return {
    ...empty_answer,
    state: 'done',
    text: joined(readContent(content, lost).text, textIn(refusal)),
    thinking: textIn(reasoning_content),
    tools: functions.map((call, key) => ({ ...call, key })),
  };
}

function joined(...texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join('\n\n');
}

/** The texts and the linked images of a message. The note of a file stays, so that everybody sees where it was. */
function readContent(content: unknown, lost: LostParts): { text: string; files: Attachment[] } {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const texts: string[] = [];
  const files: Attachment[] = [];
  for (const part of Array.isArray(parts) ? parts.filter(isRecord) : []) {
    const note = noteIn(part);
    const link = imageLink(part);
    if (note !== undefined) {
      lost.missing_files += 1;
      texts.push(note);
    } else if (link) files.push(link);
    else if (typeof part['text'] === 'string') texts.push(part['text']);
    else if (typeof part['refusal'] === 'string') texts.push(part['refusal']);
    else lost.left_out.add(`parts of the type ${String(part['type'])}`);
  }
  return { text: texts.filter((text) => text !== '').join('\n'), files };
}

const file_note = /^\[[^\]]{1,150} of \d+ bytes, not logged\]$/;

/** The note that was stored in the place of a file, wherever in its part it is. */
function noteIn(part: unknown): string | undefined {
  if (typeof part === 'string') return file_note.test(part) ? part : undefined;
  if (!isRecord(part)) return undefined;
  return Object.values(part)
    .map(noteIn)
    .find((note) => note !== undefined);
}

function imageLink({ image_url }: Record<string, unknown>): Attachment | undefined {
  if (!isRecord(image_url)) return undefined;
  const { url, detail } = image_url;
  if (typeof url !== 'string' || !/^https?:\/\//i.test(url)) return undefined;
  return { kind: 'link', name: url, url, ...(typeof detail === 'string' && { detail }) };
}

/** The type of an item that has no form in chat completions, such as a search: its text is its JSON. */
function itemType({ role, content }: StoredMessage): string | undefined {
  if (role !== 'assistant' || typeof content !== 'string' || !content.startsWith('{')) return undefined;
  try {
    const item: unknown = JSON.parse(content);
    if (isRecord(item) && typeof item['type'] === 'string') return `items of the type ${item['type']}`;
  } catch {
    return undefined; // a text
  }
  return undefined;
}
