import type { Json, JsonObject } from '../catalog/model.ts';
import type { Part } from './conversation.ts';
import { isObject } from './fields.ts';

/** Calls of an upstream's own tools: their results, which follow in the same turn, tell enough. */
const calls: readonly Json[] = ['server_tool_use', 'mcp_tool_use', 'tool_search_tool_result', 'fallback'];

const type_length_max = 64;

/** More of a result than this another model is not told. */
const told_length_max = 20_000;

/**
 * What is left in the history of an upstream's own tools when another model goes on with it: their results
 * as text. Undefined for blocks of other types.
 */
export function serverBlock(block: JsonObject): Part[] | undefined {
  const type = block['type'] ?? null;
  if (calls.includes(type)) return [];
  if (typeof type !== 'string' || type.length > type_length_max) return undefined;
  if (type === 'compaction') {
    const { content } = block;
    return typeof content === 'string' && content !== '' ? [{ type: 'text', text: content }] : [];
  }
  if (!type.endsWith('_tool_result')) return undefined;
  const text = JSON.stringify(legible(block['content'] ?? null)).slice(0, told_length_max);
  return [{ type: 'text', text: `[${type.replaceAll('_', ' ')}] ${text}` }];
}

/** Without what only the upstream itself can read. */
function legible(value: Json): Json {
  if (Array.isArray(value)) return value.map(legible);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !key.startsWith('encrypted_'))
      .map(([key, member]) => [key, legible(member)]),
  );
}
