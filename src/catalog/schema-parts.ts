import { Type, type Static, type TSchema } from 'typebox';
import type { JsonObject } from './model.ts';

/** Parts of the schema of `medley.yaml`. */

type Options = { description: string } & Record<string, unknown>;

export function section<Properties extends Record<string, TSchema>>(properties: Properties, options: Options) {
  return Type.Object(properties, { additionalProperties: false, ...options });
}

export function text(options: Options) {
  return Type.String({ minLength: 1, maxLength: 200, ...options });
}

export function mapOf<Value extends TSchema>(
  names: { pattern: string; errorMessage: string },
  value: Value,
  options: Options,
) {
  return Type.Unsafe<Record<string, Static<Value>>>({
    type: 'object',
    propertyNames: names,
    additionalProperties: value,
    ...options,
  });
}

/** Anything below it is free; semantic checks look at it where that makes sense. */
export function freeObject(options: Options) {
  return Type.Unsafe<JsonObject>({ type: 'object', ...options });
}

/** `maxDuration` is a keyword of our own. */
export function duration(maxDuration: string, options: Options) {
  return Type.String({
    pattern: '^(?!0+(?:\\.0+)?[a-z])[0-9]{1,9}(?:\\.[0-9]{1,3})?(?:ms|s|m|h|d)$',
    maxDuration,
    errorMessage: 'must be a duration such as 500ms, 10s, 1.5m, 2h or 7d',
    ...options,
  });
}

export function day(description: string) {
  return Type.String({ format: 'date', errorMessage: 'must be a date such as 2026-01-31', description });
}

export function decimal(options: Options) {
  return Type.String({
    pattern: '^[0-9]{1,9}(?:\\.[0-9]{1,12})?$',
    errorMessage: 'must be a decimal in quotes, such as "0.10"',
    ...options,
  });
}

export function rate(options: Options) {
  return decimal({
    errorMessage: 'must be a positive decimal in quotes, such as "3.65"',
    ...options,
    pattern: rate_pattern,
  });
}

export const margin_pattern = '^(?!0+(?:\\.0+)?$)[0-9]{1,3}(?:\\.[0-9]{1,4})?$';

const rate_pattern = '^(?!0+(?:\\.0+)?$)[0-9]{1,9}(?:\\.[0-9]{1,12})?$';

export function count(default_value: number, options: Options) {
  return Type.Integer({ minimum: 1, maximum: 1_000_000, default: default_value, ...options });
}

export function httpUrl(options: Options) {
  return Type.String({
    format: 'plain-http-url',
    errorMessage: 'must be an http(s) address without user name, query or fragment',
    ...options,
  });
}

export function addresses(options: Options) {
  const errorMessage = 'must be a range of addresses such as 10.0.0.0/8 or fd00::/8';
  return Type.Array(Type.String({ format: 'cidr', errorMessage }), options);
}

/** env:NAME or file:/path: secrets are never written in the file. */
export const secret_pattern = '^(?:env:[A-Za-z_][A-Za-z0-9_]*|file:(?:/|[A-Za-z]:[\\\\/]).+)$';

/** A secret, which is never written in the file itself. */
export function secretText(description: string) {
  return Type.String({
    pattern: secret_pattern,
    description,
    errorMessage: 'must be env:NAME or file:/path, since secrets are never written in this file',
    writeOnly: true,
  });
}

/** Names of models. */
export const model_name = {
  pattern: '^(?!.*(?:^|/)\\.{0,2}(?:/|$))[A-Za-z0-9._:/-]{1,128}$',
  errorMessage: 'must be 1 to 128 letters, digits or . _ - : /, without empty parts, "." or ".."',
};
