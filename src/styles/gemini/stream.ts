import type { Json, JsonObject } from '../../catalog/model.ts';
import { checkShape } from '../../lib/json-shape.ts';
import { parseExactly } from '../../lib/long-integers.ts';
import type { SseFrame } from '../../net/sse.ts';
import type { ChatEvent } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { blockReason, candidatesOf, partsOf, readFinishReason, usageOf, type Candidate } from './response.ts';
import { unfinished_type } from '../codec.ts';
import { cut, errorEventOf, start, type ChatEventReader } from '../stream.ts';

/**
 * Each chunk is an answer by itself, with what is new in it. Nothing marks the end: some models say why they
 * ended in every chunk, so the stream is complete when its connection ends after one that did. Only the first
 * candidate is read.
 */
export class GeminiReader implements ChatEventReader {
  readonly #request_id: string;
  #started = false;
  #calls = 0;
  #last: Candidate | undefined;
  #has_content = false;
  #usage: Json = null;

  constructor(request_id: string) {
    this.#request_id = request_id;
  }

  /** The last `usageMetadata` that came. */
  get usage(): Json {
    return this.#usage;
  }

  /** The reason for the end, in the words of the style. */
  get finish(): string | undefined {
    const reason = this.#last?.['finishReason'];
    return typeof reason === 'string' ? reason : undefined;
  }

  read({ data, raw }: SseFrame): ChatEvent[] {
    // Once it has said why it ended, nobody waits any more: what follows is the end of a line, cut in two.
    if (data === undefined || data.trim() === '') return raw.length > 0 && !this.#last ? [{ type: 'ping' }] : [];
    const chunk = chunkOf(data);
    if (chunk['error'] !== undefined && chunk['error'] !== null) return [errorEventOf(chunk['error'])];
    const usage = usageOf(chunk);
    this.#usage = chunk['usageMetadata'] ?? this.#usage;
    const events: ChatEvent[] = usage ? [{ type: 'usage', usage }] : [];
    if (!this.#started) events.push(start(chunk['responseId']));
    this.#started = true;
    const [candidate] = candidatesOf(chunk);
    const part_events = candidate ? this.#readParts(candidate) : [];
    this.#has_content ||= part_events.length > 0;
    events.push(...part_events);
    if (candidate && typeof candidate['finishReason'] === 'string') {
      this.#last = candidate;
      events.push({ type: 'ending' });
    }
    const blocked = this.#last || this.#has_content ? undefined : blockReason(chunk);
    if (blocked !== undefined) events.push(blockedEvent(blocked));
    return events;
  }

  end(): ChatEvent[] {
    if (!this.#last) return [cut];
    const finish = readFinishReason(this.#last, { has_calls: this.#calls > 0, has_content: this.#has_content });
    if ('problem' in finish) return [{ type: 'error', error_type: unfinished_type, message: finish.problem }];
    const refusal: ChatEvent[] = finish.refusal === undefined ? [] : [{ type: 'refusal', text: finish.refusal }];
    return [...refusal, { type: 'finish', reason: finish.reason }, { type: 'end' }];
  }

  #readParts(candidate: Candidate): ChatEvent[] {
    return partsOf(candidate, `${this.#request_id}_`, this.#calls).flatMap((part): ChatEvent[] => {
      switch (part.type) {
        case 'thinking':
          return [{ type: 'thinking', text: part.text }];
        case 'text': {
          const text: ChatEvent[] = part.text === '' ? [] : [{ type: 'text', text: part.text }];
          return part.thought_signature === undefined
            ? text
            : [...text, { type: 'text_signature', thought_signature: part.thought_signature }];
        }
        case 'tool_call': {
          const index = this.#calls++;
          const { id, name, thought_signature } = part;
          return [
            { type: 'tool_call', index, id, name, ...(thought_signature !== undefined && { thought_signature }) },
            { type: 'tool_arguments', index, json: part.arguments },
          ];
        }
        default:
          return [];
      }
    });
  }
}

/** Errors come as a list of one at times. */
function chunkOf(data: string): JsonObject {
  checkShape(data);
  const value = parseExactly(data);
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (!isObject(first)) throw new Error('An event is no JSON object.');
  return first;
}

function blockedEvent(message: string): ChatEvent {
  return { type: 'error', error_type: 'content_policy_violation', message };
}
