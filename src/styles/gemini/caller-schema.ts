import type { Json, JsonObject } from '../../catalog/model.ts';
import { isObject } from '../fields.ts';
import { camelCase } from './names.ts';

/** Deeper than bodies may be. */
const depth_max = 64;

/** Counts of the API's schemas, which are texts: protocol buffers have 64 bits. */
const counts: ReadonlySet<string> = new Set([
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'minProperties',
  'maxProperties',
]);

/**
 * A schema of Gemini's own kind (types in capitals, `nullable`) as JSON Schema. One that is JSON Schema already, as many
 * callers write it there, stays what it is.
 */
export function jsonSchemaOf(schema: JsonObject, depth = 0): JsonObject {
  const written: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    const name = camelCase(key);
    if (name !== 'nullable' && name !== 'propertyOrdering') Object.assign(written, member(name, value, depth));
  }
  return schema['nullable'] === true ? orNull(written) : written;
}

function member(name: string, value: Json | undefined, depth: number): JsonObject {
  if (value === undefined || value === null) return {};
  switch (name) {
    case 'type':
      if (typeof value !== 'string') return { type: value };
      return value === 'TYPE_UNSPECIFIED' ? {} : { type: value.toLowerCase() };
    case 'format':
      return value === 'enum' ? {} : { format: value };
    case 'example':
      return { examples: [value] };
    case 'items':
    case 'additionalProperties':
      return { [name]: inner(value, depth) };
    case 'anyOf':
    case 'prefixItems':
      return { [name]: Array.isArray(value) ? value.map((each) => inner(each, depth)) : value };
    case 'properties': {
      if (!isObject(value)) return { properties: value };
      const properties = Object.entries(value).map(([key, each]): [string, Json] => [key, inner(each ?? null, depth)]);
      return { properties: Object.fromEntries(properties) };
    }
    default:
      return { [name]: counts.has(name) && typeof value === 'string' ? Number(value) : value };
  }
}

function inner(value: Json, depth: number): Json {
  return isObject(value) && depth < depth_max ? jsonSchemaOf(value, depth + 1) : value;
}

function orNull(schema: JsonObject): JsonObject {
  const { type, anyOf, enum: values } = schema;
  return {
    ...schema,
    ...(typeof type === 'string' && { type: [type, 'null'] }),
    ...(Array.isArray(values) && { enum: [...values, null] }),
    ...(type === undefined && Array.isArray(anyOf) && { anyOf: [...anyOf, { type: 'null' }] }),
  };
}
