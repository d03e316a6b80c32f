import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '../catalog/model.ts';
import { isObject } from '../styles/fields.ts';

/**
 * The choice of a model among those of an alias: by weight, and the same in all calls of a conversation on every node, so
 * that what the model's provider has cached of it is found again. Nothing is remembered for that.
 */

/** Fields that name a conversation, or whose it is; the first that there is counts. */
const key_fields = [
  ['prompt_cache_key'],
  ['session_id'],
  ['conversation'],
  ['conversation', 'id'],
  ['metadata', 'user_id'],
  ['safety_identifier'],
  ['user'],
] as const;

/** Returns what is the same in all calls of a conversation of this account. */
export function conversationKey(account_id: string, body: JsonObject, turns_field: string | undefined): string {
  for (const path of key_fields) {
    const value = path.reduce<Json | undefined>((at, name) => (isObject(at) ? at[name] : undefined), body);
    if (typeof value === 'string' && value !== '') return JSON.stringify([account_id, path.join('.'), value]);
  }
  return JSON.stringify([account_id, 'turns', turns_field === undefined ? '' : beginningOf(body[turns_field] ?? null)]);
}

/** Characters of a text that tell one conversation from another. */
const beginning_max = 65_536;

/** The text of the first turn of the user: marks for caches, which are not text, wander from turn to turn. */
function beginningOf(turns: Json): string {
  if (typeof turns === 'string') return turns.slice(0, beginning_max);
  if (!Array.isArray(turns)) return '';
  const first = turns.find((turn) => isObject(turn) && turn['role'] === 'user') ?? turns[0];
  const content = isObject(first) ? (first['content'] ?? first['parts'] ?? null) : (first ?? null);
  if (typeof content === 'string') return content.slice(0, beginning_max);
  const texts = (Array.isArray(content) ? content : []).map((part) =>
    isObject(part) && typeof part['text'] === 'string' ? part['text'] : '',
  );
  return texts.join('\n').slice(0, beginning_max);
}

type Weighted = { readonly model: { readonly id: string }; readonly weight: number };

/**
 * Returns the one that the key falls to: each gets its part of all keys, and other weights or models move no more keys than
 * they must (weighted rendezvous hashing). Undefined if all weights are 0.
 */
export function chosenBy<Choice extends Weighted>(key: string, choices: readonly Choice[]): Choice | undefined {
  let best: { choice: Choice; score: number } | undefined;
  for (const choice of choices) {
    if (choice.weight === 0) continue;
    const score = -Math.log(fractionOf(`${choice.model.id} ${key}`)) / choice.weight;
    if (!best || score < best.score) best = { choice, score };
  }
  return best?.choice;
}

const steps = 2 ** 48;

/** A number between 0 and 1, neither of them, that depends on the text alone. */
function fractionOf(text: string): number {
  return (createHash('sha256').update(text).digest().readUIntBE(0, 6) + 0.5) / steps;
}
