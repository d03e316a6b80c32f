import type { Json, JsonObject } from '../catalog/model.ts';
import { isObject } from './fields.ts';

/**
 * Gemini seals what it thought in parts of its answer, and refuses the next turn of a loop of tools without the
 * seals. Callers of chat completions find them where Google's own endpoint of that style puts them; callers of
 * messages style in the signature of a block of thinking, which names the call that it belongs to.
 */

/** Sealing what a model of another kind called, or what comes without its seal; documented for that. */
export const no_seal = 'skip_thought_signature_validator';

/** What an `extra_content` holds, of a message or of a call. */
export function readExtraContent(holder: JsonObject): { seal?: string } {
  const extra = holder['extra_content'];
  const google = isObject(extra) ? extra['google'] : undefined;
  const seal = isObject(google) ? google['thought_signature'] : undefined;
  return typeof seal === 'string' && seal !== '' ? { seal } : {};
}

export function writeExtraContent(seal: string | undefined): JsonObject {
  return seal === undefined ? {} : { extra_content: { google: { thought_signature: seal } } };
}

const mark = 'gemini:';

/** A signature of thinking in messages style that holds the seal of a call. */
export function signatureOf(call_id: string, seal: string): string {
  return `${mark}${call_id}:${seal}`;
}

/** Undefined for signatures that other upstreams made. */
export function readSignature(signature: Json | undefined): { call_id: string; seal: string } | undefined {
  if (typeof signature !== 'string' || !signature.startsWith(mark)) return undefined;
  const end = signature.indexOf(':', mark.length);
  if (end === -1) return undefined;
  return { call_id: signature.slice(mark.length, end), seal: signature.slice(end + 1) };
}

/** Whether it seals a call, and not the thought that it stands with. */
export function isOfCall(signature: string): boolean {
  return signature.startsWith(mark);
}

const thought_mark = 'responses:';

/** A signature that holds what an upstream of the responses style sealed its own thought with. */
export function thoughtSeal(encrypted_content: string): string {
  return thought_mark + encrypted_content;
}

/** Undefined for thoughts of other upstreams. */
export function readThoughtSeal(signature: string | undefined): string | undefined {
  return signature?.startsWith(thought_mark) === true ? signature.slice(thought_mark.length) : undefined;
}

/** Whether no upstream of messages style knows this signature. */
export function isForeign(signature: string): boolean {
  return isOfCall(signature) || signature.startsWith(thought_mark);
}
