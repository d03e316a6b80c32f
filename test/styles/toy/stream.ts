import type { JsonObject } from '../../../src/catalog/model.ts';
import type { SseFrame } from '../../../src/net/sse.ts';
import type { ChatEvent, FinishReason, Usage } from '../../../src/styles/conversation.ts';
import { memberEdits, type OwnMembers } from '../../../src/styles/model-name.ts';
import {
  changed,
  cut,
  deliverText,
  fail,
  learnUsage,
  objectOf,
  start,
  upstreamIdOf,
  type SameStream,
  type ChatEventReader,
  type StreamState,
  type ChatEventWriter,
} from '../../../src/styles/stream.ts';
import { usage_format } from './usage.ts';

/** Reads the pieces of an upstream. */
export class ToyReader implements ChatEventReader {
  #has_begun = false;
  #is_done = false;

  read({ data }: SseFrame): ChatEvent[] {
    if (data === undefined) return [];
    const { id, text, why, usage: fields } = objectOf(data);
    const events: ChatEvent[] = this.#has_begun ? [] : [start(id)];
    this.#has_begun = true;
    if (typeof text === 'string') events.push({ type: 'text', text });
    const usage = usage_format.read(fields);
    if (usage) events.push({ type: 'usage', usage });
    if (typeof why !== 'string') return events;
    this.#is_done = true;
    return [...events, { type: 'finish', reason: why === 'full' ? 'length' : 'stop' }, { type: 'end' }];
  }

  end(): ChatEvent[] {
    return this.#is_done ? [] : [cut];
  }
}

type Words = { writeFinish: (reason: FinishReason) => string; writeUsage: (usage: Usage) => JsonObject };

/** Writes pieces for a caller. */
export class ToyWriter implements ChatEventWriter {
  finish: string | undefined;
  readonly #own: OwnMembers;
  readonly #words: Words;
  #reason: FinishReason = 'stop';

  constructor(own: OwnMembers, words: Words) {
    this.#own = own;
    this.#words = words;
  }

  write(event: ChatEvent, usage: () => Usage): string {
    if (event.type === 'text') return frame({ ...this.#own, text: event.text });
    if (event.type === 'finish') this.#reason = event.reason;
    if (event.type !== 'end') return '';
    this.finish = this.#words.writeFinish(this.#reason);
    return frame({ why: this.finish, usage: this.#words.writeUsage(usage()) });
  }
}

function frame(data: JsonObject): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** Pieces go on with another name and another id. */
export function openToyStream(own: OwnMembers, state: StreamState): SameStream {
  return {
    take: (each) => {
      if (each.data === undefined) return each.raw;
      const { id, text, why, usage } = objectOf(each.data);
      state.has_begun = true;
      state.upstream_id ??= upstreamIdOf(id);
      deliverText(state, text);
      learnUsage(state, usage_format.read(usage));
      if (typeof why !== 'string') return changed(each, (data) => memberEdits(data, own));
      [state.finish, state.is_complete] = [why, true];
      return each.raw;
    },
    end: () => {
      if (!state.is_complete) fail(state, 'The stream was cut off.', 'cut');
      return undefined;
    },
  };
}
