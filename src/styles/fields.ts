import type { Json, JsonObject } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { isRecord } from '../lib/is-record.ts';
import { LongInteger } from '../lib/long-integers.ts';
import { jsonType, showValue } from '../lib/show-value.ts';

/**
 * Reading fields of a chat body. Both styles take an explicit null as "not given": SDKs in Python send it
 * for everything that was left out. Each reader throws ApiError 400 naming the field.
 */

/** A 400 about one field, which `param` names. To be thrown. */
export function mistake(at: string, problem: string, code?: string): ApiError {
  return new ApiError('invalid_request', `${at} ${problem}.`, code === undefined ? { param: at } : { param: at, code });
}

/** The 400 for what the style of the chosen model's upstream has no place for. */
export function notCarried(at: string, what: string): ApiError {
  return mistake(at, `${what} cannot be given to this model`, 'unsupported_field');
}

export function isObject(value: unknown): value is JsonObject {
  return isRecord(value) && !(value instanceof LongInteger);
}

/** The value, with null as undefined. */
export function memberOf(object: JsonObject, key: string): Json | undefined {
  return object[key] ?? undefined;
}

export function readText(object: JsonObject, key: string, at: string): string | undefined {
  const value = memberOf(object, key);
  if (value === undefined || typeof value === 'string') return value;
  throw wrongType(at, 'a string', value);
}

export function needText(object: JsonObject, key: string, at: string): string {
  const text = readText(object, key, at);
  if (text === undefined) throw mistake(at, 'is required');
  return text;
}

/** Like `needText`, and not empty. */
export function needName(object: JsonObject, key: string, at: string): string {
  const text = needText(object, key, at);
  if (text === '') throw mistake(at, 'must not be empty');
  return text;
}

export function readBoolean(object: JsonObject, key: string, at: string): boolean | undefined {
  const value = memberOf(object, key);
  if (value === undefined || typeof value === 'boolean') return value;
  throw wrongType(at, 'true or false', value);
}

export function readNumber(object: JsonObject, key: string, at: string): number | undefined {
  const value = memberOf(object, key);
  if (value === undefined) return undefined;
  const number: unknown = value instanceof LongInteger ? value.valueOf() : value;
  if (typeof number === 'number' && Number.isFinite(number)) return number;
  throw wrongType(at, 'a number', value);
}

/** A whole number of at least `min`. Those that a double cannot hold exactly are refused. */
export function readCount(object: JsonObject, key: string, at: string, min: number): number | undefined {
  const value = readNumber(object, key, at);
  if (value === undefined) return undefined;
  if (!Number.isSafeInteger(value) || value < min) {
    throw mistake(at, `must be a whole number of at least ${min} (got ${showValue(value)})`);
  }
  return value;
}

export function readObject(object: JsonObject, key: string, at: string): JsonObject | undefined {
  const value = memberOf(object, key);
  if (value === undefined || isObject(value)) return value;
  throw wrongType(at, 'an object', value);
}

export function needObject(value: Json | undefined, at: string): JsonObject {
  if (isObject(value)) return value;
  throw wrongType(at, 'an object', value ?? null);
}

export function readList(object: JsonObject, key: string, at: string): Json[] | undefined {
  const value = memberOf(object, key);
  if (value === undefined || Array.isArray(value)) return value;
  throw wrongType(at, 'an array', value);
}

export function wrongType(at: string, expected: string, got: Json): ApiError {
  return mistake(at, `must be ${expected} (got ${jsonType(got)})`);
}

/** The words of a text, for lists of names. */
export function words(text: string): ReadonlySet<string> {
  return new Set(
    text
      .trim()
      .split(/\s+/)
      .filter((word) => word !== ''),
  );
}
