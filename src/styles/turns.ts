import { append } from '../lib/append.ts';
import type { Part, Turn } from './conversation.ts';
import { mistake } from './fields.ts';

/** Adds to the last turn if it is of the same role: both styles may have several messages of one in a row. */
export function addTurn(turns: Turn[], role: Turn['role'], parts: Part[]): void {
  const last = turns.at(-1);
  if (last?.role === role && role !== 'system') append(last.parts, parts);
  else turns.push({ role, parts });
}

/**
 * Which calls of tools have no result yet. Every style wants a result for each call before anything else
 * is said, and no result without a call; upstreams refuse the whole conversation otherwise.
 */
export class OpenCalls {
  // Most conversations have no calls, and never ask for these.
  #open: Map<string, { id: string; at: string; name: string }> | undefined;
  #used: Set<string> | undefined;

  /** Answers the id under which the call goes on: some servers begin to count anew in every turn. */
  add(id: string, name: string, at: string): string {
    this.#open ??= new Map();
    this.#used ??= new Set();
    if (this.#open.has(id)) throw mistake(at, 'is the id of an earlier call too');
    let unique = id;
    for (let round = 2; this.#used.has(unique); round++) unique = `${id}_${round}`;
    this.#used.add(unique);
    this.#open.set(id, { id: unique, at, name });
    return unique;
  }

  /** Answers the id under which the call went on. Throws ApiError 400 if there is no such call. */
  answer(id: string, at: string): string {
    const call = this.#open?.get(id);
    if (!call) throw mistake(at, 'belongs to no call of a tool in the turn before');
    this.#open?.delete(id);
    return call.id;
  }

  /** The same for results that only name the function. */
  answerByName(name: string, at: string): string {
    for (const [id, call] of this.#open ?? []) if (call.name === name) return this.answer(id, at);
    throw mistake(at, 'names no function called in the message before');
  }

  /** Throws ApiError 400 naming the first call that was left without a result. */
  checkAnswered(): void {
    for (const { at } of this.#open?.values() ?? [])
      throw mistake(at, 'is a call of a tool whose result does not follow');
  }
}
