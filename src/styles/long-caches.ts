import type { Json, JsonObject } from '../catalog/model.ts';
import { isObject } from './fields.ts';

/**
 * Input that is to stay in an upstream's cache for an hour costs 2 times its price to write there, for five
 * minutes 1.25 times, and usage is priced as one kind of token: marks for longer become marks for five minutes.
 */

const long_ttl = '1h';

/** Where marks stand, and what holds blocks with marks. */
const holders = ['system', 'tools', 'messages', 'content'] as const;

/** The same object where there is nothing to change. */
export function withoutLongCaches(body: JsonObject): JsonObject {
  return hasLong(body) ? shortened(body) : body;
}

function hasLong(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.some(hasLong);
  if (!isObject(value)) return false;
  if (isLong(value['cache_control'])) return true;
  for (const holder of holders) if (hasLong(value[holder])) return true;
  return false;
}

function isLong(mark: Json | undefined): mark is JsonObject {
  return isObject(mark) && mark['ttl'] === long_ttl;
}

function shortened(holder: JsonObject): JsonObject {
  const changed: JsonObject = { ...holder };
  const mark = holder['cache_control'];
  if (isLong(mark)) {
    const { ttl: _, ...rest } = mark;
    changed['cache_control'] = rest;
  }
  for (const name of holders) {
    const value = holder[name];
    if (hasLong(value)) changed[name] = shortenedIn(value);
  }
  return changed;
}

function shortenedIn(value: Json | undefined): Json {
  if (Array.isArray(value)) return value.map((each) => (hasLong(each) ? shortenedIn(each) : each));
  return isObject(value) ? shortened(value) : (value ?? null);
}
