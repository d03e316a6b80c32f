import type { Json, JsonObject } from '../../catalog/model.ts';
import type { Part } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { excerptIn } from './searches.ts';

/** Calls of an upstream's own tools. */
const calls: readonly Json[] = ['server_tool_use', 'mcp_tool_use'];

/** Say nothing to a model that is given all tools, or to another one. */
const passed_over: readonly Json[] = ['tool_search_tool_result', 'fallback'];

const type_length_max = 64;

/**
 * Returns calls and results of an upstream's own tools as text, for another model that continues the
 * conversation. Undefined for blocks of other types.
 */
export function serverBlock(block: JsonObject): Part[] | undefined {
  const type = block['type'] ?? null;
  if (passed_over.includes(type)) return [];
  if (calls.includes(type)) return [text(`[call of ${nameOf(block)}] ${JSON.stringify(block['input'] ?? {})}`)];
  if (typeof type !== 'string' || type.length > type_length_max) return undefined;
  if (type === 'compaction') {
    const { content } = block;
    return typeof content === 'string' && content !== '' ? [text(content)] : [];
  }
  if (!type.endsWith('_tool_result')) return undefined;
  return [text(`[${type.replaceAll('_', ' ')}] ${JSON.stringify(legible(block['content'] ?? null))}`)];
}

function text(content: string): Part {
  return { type: 'text', text: content };
}

function nameOf({ name }: JsonObject): string {
  return typeof name === 'string' ? name : 'a tool';
}

/** Without what only the upstream itself can read, and without the bytes of files. */
function legible(value: Json): Json {
  if (Array.isArray(value)) return value.map(legible);
  if (!isObject(value)) return value;
  if (value['type'] === 'base64') return { ...value, data: '(left out)' };
  const excerpt = excerptIn(value);
  if (excerpt !== undefined) {
    const { encrypted_content: _, ...shown } = value;
    return legible({ ...shown, text: excerpt });
  }
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !key.startsWith('encrypted_'))
      .map(([key, member]) => [key, legible(member)]),
  );
}
