import { addTurn } from '../styles/turns.ts';
import type { CallerCodec } from '../styles/codec.ts';
import type { ChatAnswer, ChatEvent, Conversation, FinishReason, Part, Turn, Usage } from '../styles/conversation.ts';
import type { ChatEventWriter } from '../styles/stream.ts';
import type { CallPart, OwnTools } from './own-tools.ts';

/** One round of a call with tools of the service's own: a request to the model, with what it has said and found before. */

/** A round in front of others, or the last that there may be. */
export type RoundPlace = { readonly is_first: boolean; readonly is_last: boolean };

/** Everything that a model says in one round; calls of the service's own tools are kept, all else goes on to the caller. */
export class RoundAnswer implements ChatEventWriter {
  readonly finish = undefined;
  readonly parts: Part[] = [];
  /** Undefined until the model has said why it ends. */
  ended: { reason: FinishReason; stop_sequence?: string } | undefined;
  readonly #tools: Pick<OwnTools, 'has'>;
  readonly #shown: ChatEventWriter | undefined;
  readonly #is_first: boolean;
  /** By the upstream's index: the part, and the index under which the caller knows the call. */
  readonly #calls = new Map<number, { part: CallPart; index: number | undefined }>();
  #own_calls = 0;

  /** `shown`: of the caller's stream; absent for a whole answer. */
  constructor(tools: Pick<OwnTools, 'has'>, shown: ChatEventWriter | undefined, { is_first }: RoundPlace) {
    this.#tools = tools;
    this.#shown = shown;
    this.#is_first = is_first;
  }

  /** Calls of the service's own tools. */
  get calls(): CallPart[] {
    return this.parts.filter((part) => part.type === 'tool_call').filter((part) => this.#tools.has(part.name));
  }

  /** The parts that the caller is shown. */
  get shown_parts(): Part[] {
    return this.parts.filter((part) => part.type !== 'tool_call' || !this.#tools.has(part.name));
  }

  /** Takes a whole answer. */
  take({ parts, finish }: ChatAnswer): void {
    this.parts.push(...parts);
    this.ended = finish;
  }

  /** Takes an event of a stream. Returns the bytes for the caller. */
  write(event: ChatEvent, usage: () => Usage): string {
    const passed = this.#note(event);
    return passed && this.#shown ? this.#shown.write(passed, usage) : '';
  }

  /** Returns the event for the caller; undefined for none. */
  #note(event: ChatEvent): ChatEvent | undefined {
    switch (event.type) {
      case 'start':
        return this.#is_first ? event : undefined;
      case 'text':
      case 'thinking':
        return this.#say(event);
      case 'signature':
        this.#sign(event.signature);
        return event;
      case 'text_signature':
        for (const part of this.parts.slice(-1))
          if (part.type === 'text') part.thought_signature = event.thought_signature;
        return event;
      case 'redacted_thinking':
      case 'refusal':
        this.parts.push({ ...event });
        return event;
      case 'tool_call':
        return this.#call(event);
      case 'tool_arguments':
        return this.#arguments(event);
      case 'finish': {
        const { type: _, ...ended } = event;
        this.ended = ended;
        return undefined;
      }
      case 'ping':
        return event;
      default:
        return undefined; // the end is that of the last round
    }
  }

  #say(event: Extract<ChatEvent, { type: 'text' | 'thinking' }>): ChatEvent {
    const last = this.parts.at(-1);
    if (last?.type !== event.type || isSigned(last)) this.parts.push({ ...event });
    else last.text += event.text;
    return event;
  }

  #sign(signature: string): void {
    const last = this.parts.at(-1);
    if (last?.type === 'thinking' && !isSigned(last)) last.signature = signature;
    else this.parts.push({ type: 'thinking', text: '', signature });
  }

  #call(event: Extract<ChatEvent, { type: 'tool_call' }>): ChatEvent | undefined {
    const { type, index, ...call } = event;
    const part: CallPart = { type, ...call, arguments: '' };
    this.parts.push(part);
    const own_index = this.#tools.has(call.name) ? undefined : this.#own_calls++;
    this.#calls.set(index, { part, index: own_index });
    return own_index === undefined ? undefined : { ...event, index: own_index };
  }

  #arguments(event: Extract<ChatEvent, { type: 'tool_arguments' }>): ChatEvent | undefined {
    const call = this.#calls.get(event.index);
    if (!call) return undefined;
    call.part.arguments += event.json;
    return call.index === undefined ? undefined : { ...event, index: call.index };
  }
}

function isSigned(part: Part): boolean {
  return (
    (part.type === 'thinking' && part.signature !== undefined) ||
    (part.type === 'text' && part.thought_signature !== undefined)
  );
}

/** The turns that a round goes on from. */
export type RoundPast = { readonly turns: readonly Turn[]; readonly tools: Pick<OwnTools, 'has'> };

/**
 * Returns the caller's style with a round in place of the caller: what the model is sent has the turns before, and what it
 * says goes to `answer`.
 */
export function roundStyle(style: CallerCodec, past: RoundPast, place: RoundPlace, answer: RoundAnswer): CallerCodec {
  const { caller } = style;
  return {
    ...style,
    caller: {
      ...caller,
      parseRequest: (body) => continued(caller.parseRequest(body), past, place),
      openWriter: () => answer,
      renderResponse: ([whole]) => {
        if (whole) answer.take(whole);
        return {};
      },
      finishOf: () => undefined,
    },
  };
}

/** A choice that made the model use a tool is met by the first round; after the last, nobody answers a call. */
function continued(conversation: Conversation, { turns, tools: own }: RoundPast, place: RoundPlace): Conversation {
  const all: Turn[] = conversation.turns.map(({ role, parts }) => ({ role, parts: [...parts] }));
  for (const { role, parts } of turns) addTurn(all, role, [...parts]);
  const { tools, tool_choice: choice } = conversation;
  const is_forced = choice?.mode === 'any' || choice?.mode === 'one';
  const has_others = tools.some(({ name }) => !own.has(name));
  if (place.is_last && !has_others && !place.is_first)
    return { ...conversation, turns: all, tool_choice: { mode: 'none' } };
  return { ...conversation, turns: all, ...(is_forced && !place.is_first && { tool_choice: { mode: 'auto' } }) };
}
