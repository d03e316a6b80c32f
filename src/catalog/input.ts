import { fieldErrors } from '../json-schema/sentences.ts';
import { compileSchema, fillDefaults } from './input-schema.ts';
import { isObject, type InputCheck, type Json, type JsonObject, type Route } from './model.ts';

/** Values in an input up to which all of its mistakes are told; of a larger one only the first. */
const values_shown_max = 2_000;

/** Checks `input` as it was given against a model's schema; fills in the defaults if it fits. */
export function checkInput(model_id: string, schema: JsonObject, input: unknown): InputCheck {
  const validate = compileSchema(schema, !hasMoreValues(input, values_shown_max));
  if (validate(input) && isObject(input)) return { ok: true, input: fillDefaults(schema, input) };
  const errors = fieldErrors(validate.errors ?? [], input, { prefix: 'input', owner: `model ${model_id}`, schema });
  return { ok: false, errors };
}

function hasMoreValues(input: unknown, limit: number): boolean {
  const waiting = [input];
  for (let seen = 0; waiting.length > 0; seen++) {
    if (seen + waiting.length > limit) return true;
    const value = waiting.pop();
    if (typeof value !== 'object' || value === null) continue;
    const below = Object.values(value);
    if (below.length > limit) return true;
    waiting.push(...below);
  }
  return false;
}

/** `$input.x`: the caller's field x, whatever stands after the first dot. */
export const field_reference = /^\$input\.(.+)$/s;

export const spread_key = '$spread';
export const whole_input = '$input';

/** `{ $lookup: $input.x, a: 1, b: 2 }`: what stands under the value of x; nothing for values that do not stand there. */
export const lookup_key = '$lookup';

/**
 * Returns the upstream's input: the caller's input as it is, or mapped by the route's `input`. A member that
 * refers to an absent field is left out. Values are copied, nothing is evaluated.
 */
export function mapInput(route: Pick<Route, 'input'>, input: JsonObject): JsonObject {
  return route.input === undefined ? { ...input } : mapObject(route.input, input);
}

function mapObject(mapping: JsonObject, input: JsonObject): JsonObject {
  const spread = Object.hasOwn(mapping, spread_key) ? Object.entries(input) : [];
  const members = Object.entries(mapping).flatMap(([name, value]): [string, Json][] => {
    const mapped = name === spread_key ? undefined : mapValue(value, input);
    return mapped === undefined ? [] : [[name, mapped]];
  });
  return Object.fromEntries([...spread, ...members]);
}

function mapValue(value: Json, input: JsonObject): Json | undefined {
  if (Array.isArray(value)) return value.map((item) => mapValue(item, input)).filter((item) => item !== undefined);
  if (isObject(value)) return Object.hasOwn(value, lookup_key) ? lookUp(value, input) : mapObject(value, input);
  const field = typeof value === 'string' ? field_reference.exec(value)?.[1] : undefined;
  if (field === undefined) return value;
  return Object.hasOwn(input, field) ? input[field] : undefined;
}

function lookUp(table: JsonObject, input: JsonObject): Json | undefined {
  const chosen = mapValue(table[lookup_key] ?? null, input);
  const choice = chosen === undefined || typeof chosen === 'object' ? '' : String(chosen);
  return choice !== lookup_key && Object.hasOwn(table, choice) ? mapValue(table[choice] ?? null, input) : undefined;
}
