import { hash } from 'node:crypto';
import type { Json, JsonObject } from '../catalog/model.ts';
import { checkShape, depth_max } from '../lib/json-shape.ts';
import { parseExactly } from '../lib/long-integers.ts';
import { isObject } from './fields.ts';
import type { Quirks } from './quirks.ts';

/**
 * Adapts calls of tools to the styles. All of it is a function of the input, so that both halves of a call
 * come out the same, today and in the next request.
 */

/** The form of ids in messages style, and of names of tools in both. */
const safe_text = /^[a-zA-Z0-9_-]+$/;

/** Longest that every upstream of chat-completions style takes; newer ones take 64. */
const id_length_max = 40;

/** `id` as messages style takes it: other characters are replaced, and a digest keeps different ids apart. */
export function safeId(id: string): string {
  return safe_text.test(id) ? id : `${replaced(id).slice(0, 40)}_${digest(id, 8)}`;
}

/** `id`, shortened if it is longer than upstreams of chat-completions style take. */
export function shortId(id: string, length_max: number = id_length_max): string {
  return id.length <= length_max ? id : `${id.slice(0, length_max - 17)}_${digest(id, 16)}`;
}

/** The id of a tool call as a route takes it. */
export function callId(id: string, { tool_ids, tool_id_length_max }: Quirks): string {
  return tool_ids === undefined ? shortId(id, tool_id_length_max) : nineLetters(id);
}

/** The id of a tool call as Mistral takes it: nine letters and digits, the same for the same id. */
export function nineLetters(id: string): string {
  return /^[a-zA-Z0-9]{9}$/.test(id) ? id : digest(id, 9);
}

/** A tool's name as upstreams take it: at most 64 of the characters that both styles have. */
export function safeName(name: string): string {
  return safe_text.test(name) && name.length <= 64 ? name : `${replaced(name).slice(0, 55)}_${digest(name, 8)}`;
}

/** The same for Gemini, where a name begins with a letter or an underscore. */
export function safeFunctionName(name: string): string {
  return /^[a-zA-Z_]/.test(name) ? safeName(name) : safeName(`_${name}`);
}

function replaced(text: string): string {
  return text.replaceAll(/[^a-zA-Z0-9_-]/g, '_');
}

function digest(text: string, length: number): string {
  return hash('sha256', text).slice(0, length);
}

/**
 * Arguments as messages style has them: an object. What is no JSON object, as weak models write and as
 * answers that were cut end, or one that takes long to read, stands whole in `_raw`.
 */
export function inputOf(text: string): JsonObject {
  if (text.trim() === '') return {};
  if (depthOf(text) > depth_max) return { _raw: text };
  try {
    checkShape(text);
    const value = parseExactly(text);
    if (isObject(value)) return value;
  } catch {
    // it stays text
  }
  return { _raw: text };
}

/** Returns the depth of a JSON text. Upstreams' parsers overflow at some thousand. */
function depthOf(text: string): number {
  let deepest = 0;
  let depth = 0;
  let in_string = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (in_string) {
      if (code === 0x5c) at += 1;
      else if (code === 0x22) in_string = false;
    } else if (code === 0x22) in_string = true;
    else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      deepest = Math.max(deepest, depth);
    } else if (code === 0x7d || code === 0x5d) depth -= 1;
  }
  return deepest;
}

/** Arguments as chat-completions style has them: JSON text. Undoes `inputOf`. */
export function argumentsOf(input: Json | undefined): string {
  if (!isObject(input)) return input === undefined || input === null ? '{}' : JSON.stringify(input);
  const keys = Object.keys(input);
  return keys.length === 1 && typeof input['_raw'] === 'string' ? input['_raw'] : JSON.stringify(input);
}

/** The names under which an upstream knows the caller's tools, in definitions, choices and history alike. */
export class ToolNames {
  #caller_names: Map<string, string> | undefined; // few need any
  readonly #safe: (name: string) => string;

  /** `safe`: a name as the upstream takes it. */
  constructor(safe: (name: string) => string = safeName) {
    this.#safe = safe;
  }

  forUpstream(name: string): string {
    const safe = this.#safe(name);
    if (safe !== name) (this.#caller_names ??= new Map()).set(safe, name);
    return safe;
  }

  /** The changed names, for `UpstreamBody`. */
  get changed(): { tool_names?: Map<string, string> } {
    return this.#caller_names ? { tool_names: this.#caller_names } : {};
  }
}
