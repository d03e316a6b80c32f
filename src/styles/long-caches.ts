import type { Json, JsonObject } from '../catalog/model.ts';
import { isObject } from './fields.ts';

/**
 * Marks for caches: input stays in an upstream's cache for five minutes, or with `ttl: "1h"` for an hour.
 * To write it there costs 1.25 times its price for five minutes, 2 times for an hour.
 */

const long_ttl = '1h';

/** Members that are marks: of the messages style, and of Bedrock's Converse. */
const marks: readonly string[] = ['cache_control', 'cachePoint'];

/** Members that hold what the model reads or calls, so nothing in them is a mark. */
const opaque_members: ReadonlySet<string> = new Set([
  'input',
  'input_schema',
  'inputSchema',
  'input_examples',
  'arguments',
  'parameters',
  'schema',
  'metadata',
]);

/** Returns true if a body has a mark for an hour. */
export function hasLongCaches(body: JsonObject): boolean {
  return hasLong(body);
}

/** A body with marks for five minutes in place of those for an hour; the same object where there are none. */
export function withoutLongCaches(body: JsonObject): JsonObject {
  return hasLong(body) ? shortened(body) : body;
}

function hasLong(value: Json | undefined): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(hasLong);
  if (marks.some((name) => isLong(value[name]))) return true;
  for (const name in value) if (!opaque_members.has(name) && hasLong(value[name])) return true;
  return false;
}

function isLong(mark: Json | undefined): mark is JsonObject {
  return isObject(mark) && mark['ttl'] === long_ttl;
}

function shortened(holder: JsonObject): JsonObject {
  const changed: JsonObject = { ...holder };
  for (const [name, value] of Object.entries(holder)) {
    if (marks.includes(name) && isLong(value)) {
      const { ttl: _, ...rest } = value;
      changed[name] = rest;
    } else if (!opaque_members.has(name) && hasLong(value)) changed[name] = shortenedIn(value);
  }
  return changed;
}

function shortenedIn(value: Json): Json {
  if (Array.isArray(value)) return value.map((each) => (hasLong(each) ? shortenedIn(each) : each));
  return isObject(value) ? shortened(value) : value;
}
