import type { Json, JsonObject } from '../../catalog/model.ts';
import type { SseFrame } from '../../net/sse.ts';
import type { ChatEvent } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { cut, errorEventOf, objectOf, start, type ChatEventReader } from '../stream.ts';
import { callIdOf, errorIn, listOf, readItem, readResponsesFinish, spareId } from './response.ts';
import { usage_format } from './usage.ts';

/** A call, and the arguments that have come of it. */
type OpenCall = { index: number; id: string; json: string; is_done: boolean };

/**
 * Reads a stream of the responses style into what happens in it. Some servers send an item, or the whole output, at its
 * end only: what has not come before is read from there.
 */
export class ResponsesReader implements ChatEventReader {
  readonly #request_id: string;
  #call_count = 0;
  /** By their places: items may be written at the same time. */
  readonly #calls = new Map<Json, OpenCall>();
  readonly #calls_by_id = new Map<string, OpenCall>();
  /** Places of the messages and thoughts that come piece by piece. */
  readonly #places = new Set<Json>();
  #has_unnumbered = false;
  #has_content = false;
  #has_thought = false;
  #has_refusal = false;
  #is_done = false;

  constructor(request_id: string) {
    this.#request_id = request_id;
  }

  read({ data, raw }: SseFrame): ChatEvent[] {
    if (data === undefined || data.trim() === '' || data.startsWith('[DONE]'))
      return raw.length > 0 ? [{ type: 'ping' }] : [];
    const event = objectOf(data);
    const { type, delta, item, response } = event;
    const place = placeOf(event);
    switch (type) {
      case 'response.created':
        return isObject(response) ? [start(response['id'])] : [];
      case 'response.output_text.delta':
        return this.#piece('text', delta, place);
      case 'response.refusal.delta':
        return this.#piece('refusal', delta, place);
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#piece('thinking', delta, place);
      case 'response.reasoning_summary_part.added':
        return event['summary_index'] === 0 || !this.#has_thought ? [] : [{ type: 'thinking', text: '\n\n' }];
      case 'response.output_item.added':
        return isObject(item) && item['type'] === 'function_call' ? this.#begin(item, place) : [];
      case 'response.function_call_arguments.delta':
        return this.#arguments(this.#calls.get(place), delta);
      case 'response.output_item.done':
        return isObject(item) ? this.#finishItem(item, place) : [];
      case 'response.completed':
      case 'response.incomplete':
        return isObject(response) ? this.#end(response) : [];
      case 'response.failed':
        return [errorEventOf(errorIn(isObject(response) ? (response['error'] ?? null) : null))];
      case 'error':
        return [errorEventOf(errorIn(isObject(event['error']) ? event['error'] : event))];
      default:
        return [];
    }
  }

  end(): ChatEvent[] {
    return this.#is_done ? [] : [cut];
  }

  #piece(type: 'text' | 'refusal' | 'thinking', text: Json | undefined, place: Json): ChatEvent[] {
    if (typeof text !== 'string' || text === '') return [];
    this.#places.add(place);
    this.#has_unnumbered ||= typeof place !== 'number';
    return this.#say(type, text);
  }

  #say(type: 'text' | 'refusal' | 'thinking', text: string): ChatEvent[] {
    if (text === '') return [];
    this.#has_content = true;
    if (type === 'thinking') this.#has_thought = true;
    if (type === 'refusal') this.#has_refusal = true;
    return [{ type, text }];
  }

  #begin(item: JsonObject, place: Json): ChatEvent[] {
    const { name } = item;
    if (typeof name !== 'string' || name === '') return [];
    const index = this.#call_count++;
    const id = callIdOf(item) ?? spareId(this.#request_id, index);
    const call = { index, id, json: '', is_done: false };
    this.#calls.set(place, call);
    this.#calls_by_id.set(id, call);
    return [{ type: 'tool_call', index: call.index, id, name }];
  }

  #arguments(call: OpenCall | undefined, json: Json | undefined): ChatEvent[] {
    if (!call || typeof json !== 'string' || json === '') return [];
    call.json += json;
    return [{ type: 'tool_arguments', index: call.index, json }];
  }

  #finishItem(item: JsonObject, place: Json): ChatEvent[] {
    const { type } = item;
    if (type !== 'message' && type !== 'reasoning' && type !== 'function_call' && type !== 'custom_tool_call')
      return [];
    return readItem(item, '').flatMap((part): ChatEvent[] => {
      if (part.type === 'tool_call') return this.#finishCall(item, place, part.arguments);
      if (part.type !== 'text' && part.type !== 'refusal' && part.type !== 'thinking') return [];
      const text = this.#cameInPieces(place) ? [] : this.#say(part.type, part.text);
      if (part.type !== 'thinking' || part.signature === undefined) return text;
      this.#has_content = true;
      return [...text, { type: 'signature', signature: part.signature }];
    });
  }

  /** Ids of one item differ between the events of some servers: without a number, any piece counts. */
  #cameInPieces(place: Json): boolean {
    const is_sure = typeof place === 'number' && !this.#has_unnumbered;
    return is_sure ? this.#places.has(place) : this.#places.size > 0;
  }

  /** Sends what the whole arguments have beyond those that came. */
  #finishCall(item: JsonObject, place: Json, json: string): ChatEvent[] {
    const begun = this.#callOf(item, place);
    const beginning = begun ? [] : this.#begin(item, place);
    const call = begun ?? this.#callOf(item, place);
    if (!call) return [];
    call.is_done = true;
    const rest = json.startsWith(call.json) ? json.slice(call.json.length) : '';
    return [...beginning, ...this.#arguments(call, rest === '' && call.json === '' ? '{}' : rest)];
  }

  #callOf(item: JsonObject, place: Json): OpenCall | undefined {
    const at_place = this.#calls.get(place);
    const id = callIdOf(item);
    if (at_place && (typeof place === 'number' || at_place.id === id)) return at_place;
    if (id === undefined) return at_place?.is_done === false ? at_place : undefined;
    return this.#callWithIdOf(item);
  }

  /** A call whose `call_id` comes later than its item has the id of the item. */
  #callWithIdOf({ call_id, id }: JsonObject): OpenCall | undefined {
    for (const each of [call_id, id]) {
      const call = typeof each === 'string' ? this.#calls_by_id.get(each) : undefined;
      if (call) return call;
    }
    return undefined;
  }

  #end(response: JsonObject): ChatEvent[] {
    if (this.#is_done) return [];
    this.#is_done = true;
    const missing = this.#missingOf(response);
    const usage = usage_format.read(response['usage']);
    const seen = { has_calls: this.#call_count > 0, has_refusal: this.#has_refusal };
    return [
      ...missing,
      ...(usage ? [{ type: 'usage' as const, usage }] : []),
      { type: 'finish', reason: readResponsesFinish(response, seen) },
      { type: 'end' },
    ];
  }

  /** Places and ids are not always the same here: an item is read only where nothing of its kind has come, or by its id. */
  #missingOf({ output }: JsonObject): ChatEvent[] {
    const has_content = this.#has_content;
    const has_calls = this.#call_count > 0;
    return listOf(output).flatMap((item, index) => {
      const { type } = item;
      if (type === 'message' || type === 'reasoning') return has_content ? [] : this.#finishItem(item, index);
      if (this.#callWithIdOf(item)) return this.#finishItem(item, null);
      return has_calls ? [] : this.#finishItem(item, index);
    });
  }
}

/** The place of an event's item in the output: its number, else its id, else null. */
function placeOf({ output_index, item_id, item }: JsonObject): Json {
  return output_index ?? item_id ?? (isObject(item) ? item['id'] : null) ?? null;
}
