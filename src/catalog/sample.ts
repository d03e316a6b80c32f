import { fieldsOf } from './input-schema.ts';
import { media_keyword } from './media-fields.ts';
import { isObject, type Json, type JsonObject, type MediaKind, type Model } from './model.ts';

/** A file for a field that takes one. */
export type SampleFile = (kind: MediaKind) => string;

/** An input that a model takes: what it requires, by its examples, defaults and lists; the rest is left to its defaults. */
export function sampleInput({ input_schema }: Pick<Model, 'input_schema'>, fileOf: SampleFile): JsonObject {
  const fields = fieldsOf(input_schema);
  const { required, properties } = input_schema;
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
  const members = isObject(properties) ? properties : {};
  return Object.fromEntries(
    names
      .filter((name) => fields.keyword(name, 'default') === undefined)
      .map((name): [string, Json] => [name, sampleValue(members[name] ?? {}, fileOf)]),
  );
}

function sampleValue(schema: Json, fileOf: SampleFile): Json {
  if (!isObject(schema)) return 'sample';
  const kind = schema[media_keyword];
  if (kind === 'image' || kind === 'audio' || kind === 'video') {
    return schema['type'] === 'array' ? [fileOf(kind)] : fileOf(kind);
  }
  for (const list of [schema['examples'], schema['enum'], [schema['const']]]) {
    const [first] = Array.isArray(list) ? list : [];
    if (first !== undefined) return first;
  }
  switch (schema['type']) {
    case 'integer':
    case 'number':
      return typeof schema['minimum'] === 'number' ? schema['minimum'] : 1;
    case 'boolean':
      return false;
    case 'array':
      return [sampleValue(schema['items'] ?? {}, fileOf)];
    case 'object':
      return sampleInput({ input_schema: schema }, fileOf);
    default:
      return 'A red bicycle against a white wall';
  }
}
