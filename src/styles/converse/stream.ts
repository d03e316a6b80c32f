import type { Json, JsonObject } from '../../catalog/model.ts';
import type { SseFrame } from '../../net/sse.ts';
import { unfinished_type } from '../codec.ts';
import type { ChatEvent } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { cut, empty, errorEventOf, objectOf, start, type ChatEventReader } from '../stream.ts';
import { readStop } from './response.ts';
import { readUsage } from './usage.ts';

/** Longer than any honest one; nothing of it goes on before it is whole. */
const redacted_length_max = 1_048_576;

/**
 * Reads a stream of Converse, whose frames the adapter has written as server-sent events with their names. The usage
 * comes last, after the reason for the end.
 */
export class ConverseReader implements ChatEventReader {
  /** Index of a block → its call of a tool. */
  readonly #calls = new Map<Json, { index: number; has_arguments: boolean }>();
  /** Index of a block → what is encrypted in it, in pieces. */
  readonly #redacted = new Map<Json, string>();
  #stop: ChatEvent | undefined;
  #has_content = false;
  #is_done = false;

  read({ event: name, data, raw }: SseFrame): ChatEvent[] {
    if (data === undefined || data.trim() === '') return raw.length > 0 ? [{ type: 'ping' }] : [];
    const event = objectOf(data);
    switch (name) {
      case 'messageStart':
        return [start(undefined)];
      case 'contentBlockStart':
        return this.#noted(this.#readStart(event));
      case 'contentBlockDelta':
        return this.#noted(this.#readDelta(event));
      case 'contentBlockStop':
        return this.#noted(this.#readBlockStop(event));
      case 'messageStop':
        return this.#readMessageStop(event);
      case 'metadata':
        return this.#readMetadata(event);
      case 'error':
        return [errorEventOf(event['error'])];
      default:
        return [];
    }
  }

  /** A stream whose usage was lost has said all the same why it ended. */
  end(): ChatEvent[] {
    if (this.#is_done) return [];
    return this.#stop ? this.#finish() : [cut];
  }

  #noted(events: ChatEvent[]): ChatEvent[] {
    this.#has_content ||= events.length > 0;
    return events;
  }

  #readStart({ contentBlockIndex = null, start: begun }: JsonObject): ChatEvent[] {
    const use = isObject(begun) ? begun['toolUse'] : undefined;
    if (!isObject(use)) return [];
    const { toolUseId, name } = use;
    if (typeof toolUseId !== 'string' || typeof name !== 'string' || name === '') return [];
    const call = { index: this.#calls.size, has_arguments: false };
    this.#calls.set(contentBlockIndex, call);
    return [{ type: 'tool_call', index: call.index, id: toolUseId, name }];
  }

  #readDelta({ contentBlockIndex = null, delta }: JsonObject): ChatEvent[] {
    if (!isObject(delta)) return [];
    const { text, toolUse, reasoningContent } = delta;
    if (typeof text === 'string') return text === '' ? [] : [{ type: 'text', text }];
    if (isObject(reasoningContent)) return this.#readReasoning(contentBlockIndex, reasoningContent);
    const call = this.#calls.get(contentBlockIndex);
    const json = isObject(toolUse) ? toolUse['input'] : undefined;
    if (!call || typeof json !== 'string' || json === '') return [];
    call.has_arguments = true;
    return [{ type: 'tool_arguments', index: call.index, json }];
  }

  #readReasoning(index: Json, { text, signature, redactedContent }: JsonObject): ChatEvent[] {
    if (typeof text === 'string') return text === '' ? [] : [{ type: 'thinking', text }];
    if (typeof signature === 'string') return signature === '' ? [] : [{ type: 'signature', signature }];
    if (typeof redactedContent !== 'string') return [];
    const data = (this.#redacted.get(index) ?? '') + redactedContent;
    if (data.length > redacted_length_max) throw new Error('What is encrypted of the thinking does not end.');
    this.#redacted.set(index, data);
    return [];
  }

  /** A call without arguments sends none; callers want an object. */
  #readBlockStop({ contentBlockIndex = null }: JsonObject): ChatEvent[] {
    const data = this.#redacted.get(contentBlockIndex);
    this.#redacted.delete(contentBlockIndex);
    if (data !== undefined) return [{ type: 'redacted_thinking', data }];
    const call = this.#calls.get(contentBlockIndex);
    if (!call || call.has_arguments) return [];
    call.has_arguments = true;
    return [{ type: 'tool_arguments', index: call.index, json: '{}' }];
  }

  #readMessageStop({ stopReason }: JsonObject): ChatEvent[] {
    const finish = readStop(stopReason, this.#calls.size > 0);
    if ('problem' in finish) return [{ type: 'error', error_type: unfinished_type, message: finish.problem }];
    if (!this.#has_content && typeof stopReason !== 'string') return [empty];
    this.#stop = { type: 'finish', reason: finish.reason };
    return [{ type: 'ending' }];
  }

  #readMetadata({ usage: fields }: JsonObject): ChatEvent[] {
    const usage = readUsage(fields);
    const events: ChatEvent[] = usage ? [{ type: 'usage', usage }] : [];
    return this.#stop ? [...events, ...this.#finish()] : events;
  }

  #finish(): ChatEvent[] {
    this.#is_done = true;
    return [this.#stop ?? { type: 'finish', reason: 'stop' }, { type: 'end' }];
  }
}
