import { isObject, type Json, type JsonObject } from '../../catalog/model.ts';

/** Reading answers of upstreams, whose members may be missing, null, or anything else. */

/** The member if it is an object, else an empty one. */
export function objectIn(object: JsonObject, name: string): JsonObject {
  const value = object[name];
  return isObject(value) ? value : {};
}

/** The objects of the member if it is a list. */
export function objectsIn(object: JsonObject, name: string): JsonObject[] {
  const value = object[name];
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The member if it is a text that is not empty. */
export function textIn(object: JsonObject, name: string): string | undefined {
  const value = object[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** More than anything is counted in: an upstream that tells of more tells nothing. */
const count_max = 1_000_000_000_000;

/** The member if it is a whole number that can be a count. */
export function countIn(object: JsonObject, name: string): number | undefined {
  const value = object[name];
  const is_count = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= count_max;
  return is_count ? value : undefined;
}

/** The texts of a field that holds one or a list of them. */
export function textsOf(value: Json | undefined): string[] {
  return [value ?? []].flat().filter((item) => typeof item === 'string');
}

/** Counts the characters of a text that is paid by them: code points, whatever they take. */
export function charactersIn(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
