import type { ChatAnswer, ChatBody, ChatChunk, ChatCost } from './chat-types.ts';
import { MedleyError } from './errors.ts';
import { fieldsOf, isFields, listOf, parse, type Fields } from './json.ts';

/** Members that a later part repeats and does not go on with. */
const repeated_names: readonly string[] = ['id', 'type', 'role', 'name', 'finish_reason'];

/** Puts the parts of a stream together. */
export class ChatParts {
  readonly #body: Fields = {};
  /** By their index. */
  readonly #choices: Fields[] = [];
  /** The text of the first choice. */
  text = '';

  /** Returns an event of a stream as a part of its answer, and adds it. Throws MedleyError if it is none. */
  add(event: unknown): ChatChunk {
    const chunk: Fields = { ...fieldsOf(event), choices: listOf(fieldsOf(event)['choices']).flatMap(choiceOf) };
    if (!isChunk(chunk, event)) throw new MedleyError('The stream has an event that is no part of an answer.');
    const { choices, ...facts } = chunk;
    for (const [name, value] of Object.entries(facts)) if (value !== null) this.#body[name] = value;
    for (const { delta, index, ...more } of choices) {
      if (index === 0 && typeof delta.content === 'string') this.text += delta.content;
      const choice = this.#choiceAt(index);
      join(fieldsOf(choice['message']), delta);
      join(choice, more);
    }
    return chunk;
  }

  /** Returns what has come, as a whole answer has it. */
  body(): ChatBody {
    const choices = this.#choices.map(withoutIndexes);
    return readBody({ ...this.#body, object: 'chat.completion', choices });
  }

  #choiceAt(index: number): Fields {
    const before = this.#choices.find((choice) => choice['index'] === index);
    if (before) return before;
    const choice = { index, message: { role: 'assistant', content: null, refusal: null }, finish_reason: null };
    const behind = this.#choices.findIndex((one) => Number(one['index']) > index);
    this.#choices.splice(behind < 0 ? this.#choices.length : behind, 0, choice);
    return choice;
  }
}

/** Returns the JSON of a whole answer. Throws MedleyError if it is none. */
export function parseBody(text: string): ChatBody {
  return readBody(fieldsOf(parse(text)));
}

function readBody(body: Fields): ChatBody {
  if (isBody(body)) return body;
  throw new MedleyError('The answer is no chat completion. Is base_url the address of a Medley service?');
}

export function answerOf(
  body: ChatBody,
  { headers, cost }: { headers: Headers; cost: ChatCost | undefined },
): ChatAnswer {
  const { message = { role: 'assistant' }, finish_reason = null } = body.choices[0] ?? {};
  return {
    text: typeof message.content === 'string' ? message.content : '',
    message,
    tool_calls: message.tool_calls ?? [],
    finish_reason,
    usage: body.usage ?? undefined,
    cost,
    request_id: headers.get('x-request-id') ?? '',
    body,
  };
}

/** Returns the cost of a whole answer. */
export function costIn(headers: Headers): ChatCost | undefined {
  const exact = headers.get('x-cost-amount');
  const currency = headers.get('x-cost-currency');
  return exact === null || currency === null ? undefined : { exact, currency };
}

function isBody(value: Fields): value is ChatBody {
  const { choices } = value;
  return Array.isArray(choices) && choices.every((choice) => isFields(fieldsOf(choice)['message']));
}

/** `value`: the event, with choices that can be read. */
function isChunk(value: Fields, event: unknown): value is ChatChunk {
  return isFields(event) && Array.isArray(value['choices']);
}

function choiceOf(value: unknown): Fields[] {
  if (!isFields(value)) return [];
  const { index, delta } = value;
  return [{ ...value, index: typeof index === 'number' ? index : 0, delta: fieldsOf(delta) }];
}

/** Adds `next` to `target`: texts and lists go on, all else is replaced. */
function join(target: Fields, next: Fields): Fields {
  for (const [name, value] of Object.entries(next)) {
    if (value === null || value === undefined || name === '__proto__') continue;
    const before = target[name];
    if (Array.isArray(value)) target[name] = joinLists(Array.isArray(before) ? before : [], value);
    else if (isFields(value)) target[name] = join(fieldsOf(before), value);
    else if (typeof value === 'string' && typeof before === 'string' && !repeated_names.includes(name))
      target[name] = before + value;
    else if (value !== '' || before === undefined) target[name] = value;
  }
  return target;
}

/** Items with an `index` are parts of the item that has it; others are whole. */
function joinLists(target: unknown[], next: readonly unknown[]): unknown[] {
  for (const item of next) {
    const { index } = fieldsOf(item);
    const before = typeof index === 'number' ? target.find((one) => fieldsOf(one)['index'] === index) : undefined;
    if (isFields(before)) join(before, fieldsOf(item));
    else target.push(isFields(item) ? join({}, item) : item);
  }
  return target;
}

/** A whole answer does not number its calls of tools. */
function withoutIndexes(choice: Fields): Fields {
  const { tool_calls, ...message } = fieldsOf(choice['message']);
  if (!Array.isArray(tool_calls)) return choice;
  return { ...choice, message: { ...message, tool_calls: tool_calls.map(withoutIndex) } };
}

function withoutIndex(value: unknown): Fields {
  const fields = { ...fieldsOf(value) };
  delete fields['index'];
  return fields;
}
