import { append } from '../lib/append.ts';
import type { Part, TextPart, Turn } from './conversation.ts';
import { mistake } from './fields.ts';
import type { Quirks } from './quirks.ts';
import { addTurn } from './turns.ts';

/** What upstreams are told that want a user's turn first, where a greeting of the assistant's begins the chat. */
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
