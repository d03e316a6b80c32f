import type { Json, JsonObject } from '../../catalog/model.ts';
import type { SseFrame } from '../../net/sse.ts';
import type { ChatEvent } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { readResponsesFinish } from './response.ts';
import { toldBy } from './passthrough.ts';
import { thoughtSeal } from '../seal.ts';
import { cut, errorEventOf, objectOf, start, type StreamReader } from '../stream-reader.ts';
import { readUsage } from '../usage.ts';

/** A call by its place in the output: items may be written at the same time. */
type Call = { index: number; has_arguments: boolean };

/** Reads a stream of the responses style into what happens in it. */
export class ResponsesReader implements StreamReader {
  readonly #calls = new Map<Json, Call>();
  #has_refusal = false;
  #is_done = false;

  read({ data, raw }: SseFrame): ChatEvent[] {
    if (data === undefined || data.trim() === '' || data.startsWith('[DONE]'))
      return raw.length > 0 ? [{ type: 'ping' }] : [];
    const event = objectOf(data);
    const { type, delta, item, response, output_index: place = null } = event;
    switch (type) {
      case 'response.created':
        return isObject(response) ? [start(response['id'])] : [];
      case 'response.output_text.delta':
        return textOf(delta).map((text) => ({ type: 'text', text }));
      case 'response.refusal.delta':
        this.#has_refusal = true;
        return textOf(delta).map((text) => ({ type: 'refusal', text }));
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return textOf(delta).map((text) => ({ type: 'thinking', text }));
      case 'response.reasoning_summary_part.added':
        return event['summary_index'] === 0 ? [] : [{ type: 'thinking', text: '\n\n' }];
      case 'response.output_item.added':
        return isObject(item) ? this.#begin(item, place) : [];
      case 'response.function_call_arguments.delta':
        return this.#arguments(place, delta);
      case 'response.output_item.done':
        return isObject(item) ? this.#finishItem(item, place) : [];
      case 'response.completed':
      case 'response.incomplete':
        return isObject(response) ? this.#end(response) : [];
      case 'response.failed':
        return [errorEventOf(toldBy(isObject(response) ? (response['error'] ?? null) : null))];
      case 'error':
        return [errorEventOf(toldBy(isObject(event['error']) ? event['error'] : event))];
      default:
        return [];
    }
  }

  end(): ChatEvent[] {
    return this.#is_done ? [] : [cut];
  }

  #begin(item: JsonObject, place: Json): ChatEvent[] {
    const { type, call_id, name } = item;
    if (type !== 'function_call' || typeof call_id !== 'string' || typeof name !== 'string') return [];
    const call = { index: this.#calls.size, has_arguments: false };
    this.#calls.set(place, call);
    return [{ type: 'tool_call', index: call.index, id: call_id, name }];
  }

  #arguments(place: Json, json: Json | undefined): ChatEvent[] {
    const call = this.#calls.get(place);
    if (!call || typeof json !== 'string' || json === '') return [];
    call.has_arguments = true;
    return [{ type: 'tool_arguments', index: call.index, json }];
  }

  /** Some servers tell the arguments at the end only; the seal of a thought always comes there. */
  #finishItem(item: JsonObject, place: Json): ChatEvent[] {
    if (item['type'] === 'reasoning') {
      const { encrypted_content: seal } = item;
      return typeof seal === 'string' && seal !== '' ? [{ type: 'signature', signature: thoughtSeal(seal) }] : [];
    }
    const call = this.#calls.get(place);
    return call && !call.has_arguments ? this.#arguments(place, item['arguments'] || '{}') : [];
  }

  #end(response: JsonObject): ChatEvent[] {
    if (this.#is_done) return [];
    this.#is_done = true;
    const usage = readUsage('responses', response['usage']);
    const seen = { has_calls: this.#calls.size > 0, has_refusal: this.#has_refusal };
    return [
      ...(usage ? [{ type: 'usage' as const, usage }] : []),
      { type: 'finish', reason: readResponsesFinish(response, seen) },
      { type: 'end' },
    ];
  }
}

function textOf(delta: Json | undefined): string[] {
  return typeof delta === 'string' && delta !== '' ? [delta] : [];
}
