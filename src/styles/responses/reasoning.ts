import type { Json, JsonObject } from '../../catalog/model.ts';
import type { Part } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { isOfCall, readSignature } from '../thought-signatures.ts';

/**
 * Items of reasoning in the responses style, as they stand for what an upstream of another style thought. What
 * that upstream wants back (signatures, redacted thoughts) is their `encrypted_content`.
 */

/** Value of `include` that returns reasoning encrypted instead of storing it. */
export const encrypted_reasoning = 'reasoning.encrypted_content';

const signature_mark = 'signature:';
const redacted_mark = 'redacted:';

export type Thought = Extract<Part, { type: 'thinking' | 'redacted_thinking' }>;

export function writeThought(thought: Thought, id: string): JsonObject {
  const text = thought.type === 'thinking' ? thought.text : '';
  const encrypted = encryptedContentOf(thought);
  return {
    id,
    type: 'reasoning',
    summary: text === '' ? [] : [{ type: 'summary_text', text }],
    ...(encrypted !== undefined && { encrypted_content: encrypted }),
  };
}

function encryptedContentOf(thought: Thought): string | undefined {
  if (thought.type === 'redacted_thinking') return redacted_mark + thought.data;
  return thought.signature === undefined ? undefined : signature_mark + thought.signature;
}

/**
 * Reads the thoughts of an item. Those that an upstream of the responses style encrypted mean nothing to
 * another style.
 */
export function readThought(item: JsonObject): Thought[] {
  const encrypted = item['encrypted_content'];
  if (typeof encrypted === 'string' && encrypted.startsWith(redacted_mark)) {
    return [{ type: 'redacted_thinking', data: encrypted.slice(redacted_mark.length) }];
  }
  const text = textsIn(item['summary']) || textsIn(item['content']);
  const signature = signatureIn(item);
  if (signature !== undefined && isOfCall(signature)) return text === '' ? [] : [{ type: 'thinking', text }];
  if (text === '' && signature === undefined) return [];
  return [{ type: 'thinking', text, ...(signature !== undefined && { signature }) }];
}

function signatureIn({ encrypted_content: encrypted }: JsonObject): string | undefined {
  return typeof encrypted === 'string' && encrypted.startsWith(signature_mark)
    ? encrypted.slice(signature_mark.length)
    : undefined;
}

/** Thought signatures of calls, which stand in reasoning before them, by the ids that the caller knows. */
export function thoughtSignaturesIn(items: readonly Json[]): ReadonlyMap<Json | undefined, string> {
  const signatures = items.flatMap((item) => {
    const signed = isObject(item) && item['type'] === 'reasoning' && readSignature(signatureIn(item));
    return signed ? [signed] : [];
  });
  return new Map(signatures.map(({ call_id, thought_signature }) => [call_id, thought_signature]));
}

/** Tells whether an upstream of the responses style can read this item without having stored it. */
export function isWhole(item: JsonObject): boolean {
  const encrypted = item['encrypted_content'];
  return typeof encrypted === 'string' && !encrypted.startsWith(signature_mark) && !encrypted.startsWith(redacted_mark);
}

function textsIn(list: Json | undefined): string {
  if (!Array.isArray(list)) return '';
  return list
    .flatMap((part) => (isObject(part) && typeof part['text'] === 'string' ? [part['text']] : []))
    .join('\n\n');
}
