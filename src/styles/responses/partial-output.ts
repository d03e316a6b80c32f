import type { Json, JsonObject } from '../../catalog/model.ts';
import { isObject } from '../fields.ts';
import type { OutputReader } from '../codec.ts';

/** An item of the output, and the pieces that have come of it by the events' names of their places. */
type Item = {
  item: JsonObject;
  is_done: boolean;
  contents: Map<Json, Part>;
  summaries: Map<Json, Part>;
  /** The arguments, input or code of a call. */
  fields: Map<string, string[]>;
};
type Part = { part: JsonObject; pieces: string[]; annotations: Json[] };

/** Members of a call that come in pieces, by the events that have them. */
const call_fields: ReadonlyMap<Json | undefined, string> = new Map([
  ['response.function_call_arguments.delta', 'arguments'],
  ['response.mcp_call_arguments.delta', 'arguments'],
  ['response.custom_tool_call_input.delta', 'input'],
  ['response.code_interpreter_call_code.delta', 'code'],
]);

/** Parts of a message or a thought that come in pieces, by the events that have them. */
const content_parts: ReadonlyMap<Json | undefined, { part: JsonObject; item: JsonObject }> = new Map([
  [
    'response.output_text.delta',
    { part: { type: 'output_text', text: '', annotations: [], logprobs: [] }, item: message() },
  ],
  ['response.refusal.delta', { part: { type: 'refusal', refusal: '' }, item: message() }],
  ['response.reasoning_text.delta', { part: { type: 'reasoning_text', text: '' }, item: thought() }],
]);

/** These have no status `incomplete` (OpenAI's reference, 2026-11). */
const failing_types: ReadonlySet<Json | undefined> = new Set(['web_search_call', 'image_generation_call']);

/** Adds the events of a stream up to the output that they have brought so far, for an answer that breaks off. */
export class PartialOutput implements OutputReader {
  /** By their places, in the order in which they began. */
  readonly #items = new Map<Json, Item>();

  read(event: JsonObject): void {
    const { type, item, delta = null, part } = event;
    if (type === 'response.output_item.added' || type === 'response.output_item.done') {
      if (isObject(item)) this.#put(event, item, type === 'response.output_item.done');
    } else if (type === 'response.content_part.added') {
      if (isObject(part)) this.#content(event, part, message());
    } else if (type === 'response.output_text.annotation.added') {
      this.#items
        .get(placeOf(event))
        ?.contents.get(event['content_index'] ?? 0)
        ?.annotations.push(event['annotation'] ?? null);
    } else if (typeof delta === 'string') this.#piece(event, delta);
  }

  output(): JsonObject[] {
    return [...this.#items.values()].flatMap((each) => (each.is_done ? [each.item] : incomplete(each)));
  }

  #put(event: JsonObject, item: JsonObject, is_done: boolean): Item {
    const place = placeOf(event);
    const begun = this.#items.get(place);
    const put = begun ?? { item, is_done, contents: new Map(), summaries: new Map(), fields: new Map() };
    this.#items.set(place, Object.assign(put, { item, is_done }));
    return put;
  }

  #piece(event: JsonObject, delta: string): void {
    const { type } = event;
    const usual = content_parts.get(type);
    if (usual) this.#content(event, usual.part, usual.item).pieces.push(delta);
    else if (type === 'response.reasoning_summary_text.delta')
      partAt(this.#at(event, thought()).summaries, event['summary_index'] ?? 0, {
        type: 'summary_text',
        text: '',
      }).pieces.push(delta);
    else {
      const field = call_fields.get(type);
      const call = field === undefined ? undefined : this.#items.get(placeOf(event));
      if (!call || field === undefined) return;
      const pieces = call.fields.get(field) ?? [];
      pieces.push(delta);
      call.fields.set(field, pieces);
    }
  }

  #content(event: JsonObject, part: JsonObject, item: JsonObject): Part {
    return partAt(this.#at(event, item).contents, event['content_index'] ?? 0, part);
  }

  /** The item of an event; some servers do not say that it begins. */
  #at(event: JsonObject, item: JsonObject): Item {
    const { item_id } = event;
    return (
      this.#items.get(placeOf(event)) ??
      this.#put(event, { ...(item_id !== undefined && { id: item_id }), ...item }, false)
    );
  }
}

function message(): JsonObject {
  return { type: 'message', status: 'in_progress', role: 'assistant', content: [] };
}

function thought(): JsonObject {
  return { type: 'reasoning', summary: [] };
}

function placeOf({ output_index, item_id, item }: JsonObject): Json {
  return output_index ?? item_id ?? (isObject(item) ? item['id'] : null) ?? null;
}

function partAt(parts: Map<Json, Part>, place: Json, part: JsonObject): Part {
  const at = parts.get(place) ?? { part, pieces: [], annotations: [] };
  parts.set(place, at);
  return at;
}

/** The item as far as it has come; none if nothing of a message or a thought has. */
function incomplete({ item, contents, summaries, fields }: Item): JsonObject[] {
  const whole: JsonObject = { ...item, status: failing_types.has(item['type']) ? 'failed' : 'incomplete' };
  if (contents.size > 0) whole['content'] = writeParts(contents);
  if (summaries.size > 0) whole['summary'] = writeParts(summaries);
  for (const [field, pieces] of fields) whole[field] = pieces.join('');
  const is_empty = (whole['type'] === 'message' || whole['type'] === 'reasoning') && !hasText(contents, summaries);
  return is_empty ? [] : [whole];
}

function writeParts(parts: ReadonlyMap<Json, Part>): JsonObject[] {
  return [...parts.values()].map(({ part, pieces, annotations }) => ({
    ...part,
    [part['type'] === 'refusal' ? 'refusal' : 'text']: pieces.join(''),
    ...(annotations.length > 0 && { annotations }),
  }));
}

function hasText(...maps: ReadonlyMap<Json, Part>[]): boolean {
  return maps.some((parts) => [...parts.values()].some(({ pieces }) => pieces.length > 0));
}
