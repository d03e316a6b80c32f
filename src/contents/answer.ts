import { setImmediate as nextTurn } from 'node:timers/promises';
import { isObject, type JsonObject } from '../catalog/model.ts';
import { SseSplitter } from '../net/sse.ts';
import type { Codec } from '../styles/codec.ts';
import type { ChatEvent, Part } from '../styles/conversation.ts';
import { objectOf } from '../styles/stream.ts';

/** A message in the form of chat completions, in which contents are read whatever the style of their call was. */
export type LoggedMessage = JsonObject;

/** The bytes that a caller got: a whole answer, or the pieces of a stream. */
export type AnswerBytes = { whole: Buffer } | { pieces: readonly Buffer[] };

/** Reads the messages of an answer in this style; as far as it came, and none from bytes that cannot be read. */
export async function readAnswer(style: Codec, bytes: AnswerBytes, request_id: string): Promise<LoggedMessage[]> {
  if ('whole' in bytes) return wholeAnswer(style, bytes.whole, request_id);
  if (bytes.pieces.length === 0) return [];
  const parts = new PartCollector();
  const splitter = new SseSplitter(answer_bytes_max);
  const read = readerOf(style, request_id);
  try {
    for (const piece of bytes.pieces) {
      for (const frame of splitter.push(piece)) for (const event of read(frame.data ?? '', frame)) parts.add(event);
      await nextTurn();
    }
  } catch {
    // The beginning of an answer says more than nothing.
  }
  return parts.isEmpty ? [] : [messageOf(parts.parts())];
}

const answer_bytes_max = 67_108_864;

function wholeAnswer(style: Codec, bytes: Buffer, request_id: string): LoggedMessage[] {
  try {
    const answers = style.upstream.parseResponse(objectOf(bytes.toString('utf8')), request_id);
    return answers.map(({ parts }) => messageOf(parts));
  } catch {
    return []; // such as one that was cut off
  }
}

type Frame = Parameters<ReturnType<Codec['upstream']['openReader']>['read']>[0];

/** Styles that no upstream streams to us have no reader: their texts are read from the choices. */
function readerOf(style: Codec, request_id: string): (data: string, frame: Frame) => ChatEvent[] {
  try {
    const reader = style.upstream.openReader(request_id);
    return (_, frame) => reader.read(frame);
  } catch {
    return (data) => (data.startsWith('{') ? [{ type: 'text', text: textsIn(objectOf(data)) }] : []);
  }
}

function textsIn({ choices }: JsonObject): string {
  const list = Array.isArray(choices) ? choices.filter(isObject) : [];
  return list.map(({ text }) => (typeof text === 'string' ? text : '')).join('');
}

/** Puts the events of a stream together. */
class PartCollector {
  #text = '';
  #thinking = '';
  #refusal = '';
  readonly #calls = new Map<number, { id: string; name: string; json: string }>();

  get isEmpty(): boolean {
    return this.#text + this.#thinking + this.#refusal === '' && this.#calls.size === 0;
  }

  add(event: ChatEvent): void {
    if (event.type === 'text') this.#text += event.text;
    else if (event.type === 'thinking') this.#thinking += event.text;
    else if (event.type === 'refusal') this.#refusal += event.text;
    else if (event.type === 'tool_call') this.#calls.set(event.index, { id: event.id, name: event.name, json: '' });
    else if (event.type === 'tool_arguments') {
      const call = this.#calls.get(event.index);
      if (call) call.json += event.json;
    }
  }

  parts(): Part[] {
    const texts = { thinking: this.#thinking, text: this.#text, refusal: this.#refusal };
    const written = (['thinking', 'text', 'refusal'] as const).filter((type) => texts[type] !== '');
    return [
      ...written.map((type): Part => ({ type, text: texts[type] })),
      ...Array.from(this.#calls.values(), ({ id, name, json }): Part => ({
        type: 'tool_call',
        id,
        name,
        arguments: json,
      })),
    ];
  }
}

function messageOf(parts: readonly Part[]): LoggedMessage {
  const joined = (type: 'text' | 'thinking' | 'refusal') =>
    parts.map((part) => (part.type === type ? part.text : '')).join('');
  const images = parts.flatMap((part) => (part.type === 'made_image' ? [`[image: ${part.prompt}]`] : []));
  const calls = parts.flatMap((part): JsonObject[] =>
    part.type === 'tool_call'
      ? [{ id: part.id, type: 'function', function: { name: part.name, arguments: part.arguments } }]
      : [],
  );
  const [text, thinking, refusal] = [joined('text'), joined('thinking'), joined('refusal')];
  const shown = [text, ...images].filter((each) => each !== '').join('\n');
  return {
    role: 'assistant',
    content: shown === '' && calls.length > 0 ? null : shown,
    ...(thinking !== '' && { reasoning_content: thinking }),
    ...(refusal !== '' && { refusal }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}
