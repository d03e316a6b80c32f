import type { Json, JsonObject } from '../catalog/model.ts';
import { isObject } from './fields.ts';

/**
 * Gemini signs what it thought in parts of its answer, and refuses the next turn of a loop of tools without these
 * signatures. Callers of chat completions find them where Google's own endpoint of that style puts them; callers of
 * messages style in the signature of a block of thinking, which names the call that it belongs to.
 */

/** Signs what a model of another kind called, or what comes without its signature; documented for that. */
export const no_thought_signature = 'skip_thought_signature_validator';

/** Reads the `extra_content` of a message or of a call. */
export function readExtraContent(holder: JsonObject): { thought_signature?: string } {
  const extra = holder['extra_content'];
  const google = isObject(extra) ? extra['google'] : undefined;
  const thought_signature = isObject(google) ? google['thought_signature'] : undefined;
  return typeof thought_signature === 'string' && thought_signature !== '' ? { thought_signature } : {};
}

export function writeExtraContent(thought_signature: string | undefined): JsonObject {
  return thought_signature === undefined ? {} : { extra_content: { google: { thought_signature } } };
}

const mark = 'gemini:';

/** A signature of thinking in messages style that holds the thought signature of a call. */
export function signatureOf(call_id: string, thought_signature: string): string {
  return `${mark}${call_id}:${thought_signature}`;
}

/** Reads a signature; undefined for those that other upstreams made. */
export function readSignature(signature: Json | undefined): { call_id: string; thought_signature: string } | undefined {
  if (typeof signature !== 'string' || !signature.startsWith(mark)) return undefined;
  const end = signature.indexOf(':', mark.length);
  if (end === -1) return undefined;
  return { call_id: signature.slice(mark.length, end), thought_signature: signature.slice(end + 1) };
}

/** Returns true if it signs a call, and not the thought that it stands with. */
export function isOfCall(signature: string): boolean {
  return signature.startsWith(mark);
}

const thought_mark = 'responses:';

/** A signature that holds what an upstream of the responses style encrypted its own thought as. */
export function signatureOfThought(encrypted_content: string): string {
  return thought_mark + encrypted_content;
}

/** Returns the encrypted thought; undefined for thoughts of other upstreams. */
export function encryptedThoughtIn(signature: string | undefined): string | undefined {
  return signature?.startsWith(thought_mark) === true ? signature.slice(thought_mark.length) : undefined;
}

/** Tells whether no upstream of messages style knows this signature. */
export function isForeign(signature: string): boolean {
  return isOfCall(signature) || signature.startsWith(thought_mark);
}
