import type { Json, JsonObject } from '../../catalog/model.ts';
import { isObject, memberOf, mistake, needName, needText, wrongType } from '../fields.ts';
import { isReference } from './head.ts';

const roles: ReadonlySet<string> = new Set(['system', 'developer', 'user', 'assistant']);

/**
 * Reads items that are to be kept, without the ones that name others. Whether a model takes them is known when one is
 * asked. Throws ApiError 400 naming the field.
 */
export function readKeptItems(value: Json | undefined, at: string, items_max: number): JsonObject[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw wrongType(at, 'an array', value);
  if (value.length > items_max) throw mistake(at, `must not have more than ${items_max} items`);
  return value.map((item, index) => readItem(item, `${at}[${index}]`));
}

function readItem(item: Json, at: string): JsonObject {
  if (!isObject(item)) throw wrongType(at, 'an object', item);
  if (isReference(item)) throw mistake(at, 'must be the item itself, not its id', 'unsupported_field');
  const type = memberOf(item, 'type') ?? 'message';
  if (typeof type !== 'string') throw wrongType(`${at}.type`, 'a string', type);
  if (type !== 'message') return item;
  if (!roles.has(needText(item, 'role', `${at}.role`)))
    throw mistake(`${at}.role`, 'must be one of system, developer, user, assistant');
  const content = memberOf(item, 'content');
  if (content === undefined) throw mistake(`${at}.content`, 'is required');
  if (typeof content === 'string') return item;
  if (!Array.isArray(content)) throw wrongType(`${at}.content`, 'a string or an array of parts', content);
  for (const [index, part] of content.entries()) {
    const where = `${at}.content[${index}]`;
    if (!isObject(part)) throw wrongType(where, 'an object', part);
    needName(part, 'type', `${where}.type`);
  }
  return item;
}
