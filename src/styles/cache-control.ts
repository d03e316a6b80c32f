import type { Json, JsonObject } from '../catalog/model.ts';
import type { Part } from './conversation.ts';
import { isObject } from './fields.ts';

/** Marks of callers: the input up to a part that has one is to be cached. */

/** The mark of a block, of a part or of a message, as it stands there; what is no object is none. */
export function cacheControl(holder: JsonObject): { cache_control?: Json } {
  return isObject(holder['cache_control']) ? { cache_control: holder['cache_control'] } : {};
}

/**
 * Puts a mark that stands beside the content of a message on the last of its parts that can have one, as LiteLLM and
 * OpenRouter read it (2026-11). A mark of the part's own counts.
 */
export function markLast<P extends Part>(parts: P[], message: JsonObject): P[] {
  const mark = cacheControl(message);
  if (mark.cache_control === undefined) return parts;
  const index = parts.findLastIndex(takesMark);
  return parts.map((part, at) => (at === index ? { ...mark, ...part } : part));
}

function takesMark(part: Part): boolean {
  switch (part.type) {
    case 'text':
      return part.text.trim() !== ''; // an empty one reaches no upstream
    case 'image':
    case 'document':
    case 'tool_call':
    case 'tool_result':
      return true;
    default:
      return false;
  }
}
