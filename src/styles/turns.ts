import { append } from '../lib/append.ts';
import { JsonShape, JsonTooComplex, short_json_length } from '../lib/json-shape.ts';
import type { Part, TextPart, Turn } from './conversation.ts';
import { mistake } from './fields.ts';
import type { Quirks } from './quirks.ts';

/** Adds to the last turn if it is of the same role: both styles may have several messages of one in a row. */
export function addTurn(turns: Turn[], role: Turn['role'], parts: Part[]): void {
  const last = turns.at(-1);
  if (last?.role === role && role !== 'system') append(last.parts, parts);
  else turns.push({ role, parts });
}

type OpenCall = { given_id: string; id: string; at: string; name: string };

/**
 * Which calls of tools have no result yet. Every style wants a result for each call before anything else
 * is said, and no result without a call; upstreams refuse the whole conversation otherwise.
 */
export class OpenCalls {
  // Most conversations have no calls, and never ask for these.
  #open: Map<string, OpenCall> | undefined;
  /** Ids that have gone on, and the number that the last call of this id went on with. */
  #used: Map<string, number> | undefined;
  #by_name: Map<string, OpenCall[]> | undefined;
  #arguments_length = 0;
  #arguments: JsonShape | undefined;

  /** Answers the id under which the call goes on: some servers begin to count anew in every turn. */
  add(id: string, name: string, at: string): string {
    this.#open ??= new Map();
    this.#used ??= new Map();
    if (this.#open.has(id)) throw mistake(at, 'is the id of an earlier call too');
    const unique = unusedId(id, this.#used);
    this.#open.set(id, { given_id: id, id: unique, at, name });
    this.#by_name = undefined;
    return unique;
  }

  /**
   * Arguments are parsed for most upstreams, and all of them hold no more than a body may: 900,000 members in the text
   * of one call took 1.6 s. Throws ApiError 400.
   */
  checkArguments(text: string, at: string): void {
    this.#arguments_length += text.length;
    if (this.#arguments_length <= short_json_length) return;
    this.#arguments ??= new JsonShape({ takes_deep: true }); // inputOf leaves those as texts
    try {
      this.#arguments.add(Buffer.from(text));
    } catch (error) {
      if (!(error instanceof JsonTooComplex)) throw error;
      throw mistake(at, error.what, 'json_too_complex');
    }
  }

  /** Answers the id under which the call went on. Throws ApiError 400 if there is no such call. */
  answer(id: string, at: string): string {
    const call = this.#open?.get(id);
    if (!call) throw mistake(at, 'belongs to no tool call of the previous turn');
    this.#open?.delete(id);
    return call.id;
  }

  /** The same for results that only name the function. */
  answerByName(name: string, at: string): string {
    // The first of them last, to be taken from there.
    this.#by_name ??= Map.groupBy([...(this.#open?.values() ?? [])].toReversed(), (call) => call.name);
    const calls = this.#by_name.get(name) ?? [];
    for (let call = calls.pop(); call; call = calls.pop())
      if (this.#open?.get(call.given_id) === call) return this.answer(call.given_id, at);
    throw mistake(at, 'names no function that the previous message calls');
  }

  /** Throws ApiError 400 naming the first call that was left without a result. */
  checkAnswered(): void {
    for (const { at } of this.#open?.values() ?? []) throw mistake(at, 'is a tool call whose result does not follow');
  }
}

/** `id`, or with the next number that makes it another; goes on where the last one ended. */
function unusedId(id: string, used: Map<string, number>): string {
  const last = used.get(id);
  if (last === undefined) {
    used.set(id, 1);
    return id;
  }
  let round = last + 1;
  while (used.has(`${id}_${round}`)) round += 1;
  const unique = `${id}_${round}`;
  used.set(id, round).set(unique, 1);
  return unique;
}

/** Said for the user to upstreams that want a user's turn first, where a greeting of the assistant's begins the chat. */
export const opening = '(The conversation begins with the assistant.)';

/** Which turns of the system stay where they are; the others go to the top, and all texts there are their own block. */
export function placeSystem(turns: readonly Turn[], quirks: Quirks): { system: TextPart[]; turns: Turn[] } {
  const system: TextPart[] = [];
  const placed: Turn[] = [];
  const is_legal = quirks.system_turns === true ? legalPlaces(turns) : undefined;
  for (const [index, turn] of turns.entries()) {
    if (turn.role !== 'system') addTurn(placed, turn.role, [...turn.parts]);
    else if (is_legal?.[index] === true && textsIn(turn.parts).length > 0)
      placed.push({ role: 'system', parts: turn.parts });
    else append(system, textsIn(turn.parts));
  }
  if (placed.length > 0) return { system, turns: placed };
  if (system.length === 0) throw mistake('messages', 'must hold some text');
  return { system: [], turns: [{ role: 'user', parts: system }] };
}

function textsIn(parts: readonly Part[]): TextPart[] {
  return parts.filter((part) => part.type === 'text').filter(({ text }) => text.trim() !== '');
}

/** After a user turn, and before one of the assistant or the end; several in a row count as one. */
function legalPlaces(turns: readonly Turn[]): boolean[] {
  const is_legal = turns.map(() => false);
  let before: Turn['role'] | undefined;
  for (let from = 0; from < turns.length;) {
    let to = from;
    while (turns[to]?.role === 'system') to += 1;
    if (before === 'user' && turns[to]?.role !== 'user') is_legal.fill(true, from, to);
    before = turns[to]?.role;
    from = to + 1;
  }
  return is_legal;
}
