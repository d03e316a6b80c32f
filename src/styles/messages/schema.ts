import type { Json, JsonObject } from '../../catalog/model.ts';
import { isObject } from '../fields.ts';

/** Keywords that constrained decoding knows; others are told to the model in the description. */
const supported_keywords: ReadonlySet<string> = new Set([
  'type',
  'properties',
  'required',
  'items',
  'enum',
  'const',
  'anyOf',
  'allOf',
  '$ref',
  '$defs',
  'definitions',
  'title',
  'description',
  'default',
]);

const dropped: ReadonlySet<string> = new Set(['$schema', '$id', '$comment', 'additionalProperties']);

const formats: readonly Json[] = [
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
];

/**
 * `schema` as upstreams of messages style take it for their own structured output: every object closed,
 * keywords they do not know as words in the description. Undefined for what cannot be said that way:
 * references that go in circles or elsewhere, and objects whose names are free.
 */
export function nativeSchema(schema: JsonObject): JsonObject | undefined {
  if (!canBeNative(schema) || !hasPlainReferences(schema)) return undefined;
  return shaped(schema);
}

/** Keywords that the schema of a tool may not have at its top: "does not support oneOf, allOf, or anyOf at the top level". */
const unions = ['allOf', 'anyOf', 'oneOf'] as const;

/**
 * The schema of a tool without a union at its top, which upstreams of messages style answer with a 400 for the whole
 * request (seen in 2025 and 2026). The members of all its branches become members of the schema. Required is what the
 * schema requires, all branches of `allOf`, and each branch of the others; the union itself stands in the description.
 */
export function withoutUnions(schema: JsonObject): JsonObject {
  if (unions.every((union) => schema[union] === undefined)) return schema;
  const flat: JsonObject = { ...schema };
  const forms: Forms = new Map();
  const required = new Set<Json>(listOf(schema['required']));
  const notes: string[] = [];
  for (const union of unions) {
    const value = flat[union];
    if (value === undefined) continue;
    delete flat[union];
    notes.push(`${union}: ${JSON.stringify(value)}`);
    const branches = listOf(value).filter(isObject);
    for (const branch of branches) addForms(forms, branch['properties']);
    const names = countNames(branches);
    for (const [name, count] of names) if (union === 'allOf' || count === branches.length) required.add(name);
  }
  addForms(forms, schema['properties']);
  const before = typeof schema['description'] === 'string' ? `${schema['description']}\n` : '';
  return {
    ...flat,
    description: `${before}{${notes.join(', ')}}`,
    properties: Object.fromEntries([...forms].map(([name, each]) => [name, unionOf([...each.values()])])),
    ...(required.size > 0 && { required: [...required] }),
  };
}

/** The forms of each member, by their JSON: thousands of branches may have one. */
type Forms = Map<string, Map<string, Json>>;

function addForms(forms: Forms, properties: Json | undefined): void {
  if (!isObject(properties)) return;
  for (const [name, form] of Object.entries(properties)) {
    const of_name = forms.get(name) ?? new Map<string, Json>();
    forms.set(name, of_name.set(JSON.stringify(form), form));
  }
}

/** Two forms of one member become a union, below the top. */
function unionOf(forms: readonly Json[]): Json {
  const [only = null, ...others] = forms;
  return others.length === 0 ? only : { anyOf: [...forms] };
}

/** Returns how many of the branches require each name. */
function countNames(branches: readonly JsonObject[]): Map<Json, number> {
  const counts = new Map<Json, number>();
  for (const branch of branches)
    for (const name of new Set(listOf(branch['required']))) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function listOf(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

function canBeNative(value: Json): boolean {
  if (Array.isArray(value)) return value.every(canBeNative);
  if (!isObject(value)) return true;
  if (isObject(value['additionalProperties']) || isObject(value['patternProperties'])) return false;
  return Object.values(value).every(canBeNative);
}

/** Returns true if every `$ref` names a definition at the top, and none leads back to itself. */
function hasPlainReferences(schema: JsonObject): boolean {
  const definitions = new Map<string, Json>();
  for (const holder of ['$defs', 'definitions']) {
    const held = schema[holder];
    if (!isObject(held)) continue;
    for (const [name, definition] of Object.entries(held)) definitions.set(`#/${holder}/${name}`, definition);
  }
  const open = new Set<string>();
  const done = new Set<string>();
  // Without recursion: the stack has no room for a chain of 5,000 definitions.
  const path = [{ from: '', ahead: referencesIn(schema) }];
  for (let last = path.at(-1); last; last = path.at(-1)) {
    const reference = last.ahead.pop();
    if (reference === undefined) {
      open.delete(last.from);
      done.add(last.from);
      path.pop();
    } else if (!done.has(reference)) {
      const definition = definitions.get(reference);
      if (definition === undefined || open.has(reference)) return false;
      open.add(reference);
      path.push({ from: reference, ahead: referencesIn(definition) });
    }
  }
  return true;
}

function referencesIn(value: Json, references: string[] = []): string[] {
  if (Array.isArray(value)) for (const each of value) referencesIn(each, references);
  else if (isObject(value)) {
    if (typeof value['$ref'] === 'string') references.push(value['$ref']);
    for (const each of Object.values(value)) referencesIn(each, references);
  }
  return references;
}

function shaped(schema: JsonObject): JsonObject {
  const shape: JsonObject = {};
  const notes: string[] = [];
  for (const [key, value] of Object.entries(schema)) {
    if (dropped.has(key)) continue;
    const holder = key === 'oneOf' ? 'anyOf' : key;
    if (shape[holder] !== undefined) notes.push(`${key}: ${JSON.stringify(value)}`);
    else if (key === 'oneOf') shape[holder] = shapedBelow(value);
    else if (key === 'format' && formats.includes(value)) shape[key] = value;
    else if (key === 'minItems' && (value === 0 || value === 1)) shape[key] = value;
    else if (!supported_keywords.has(key)) notes.push(`${key}: ${JSON.stringify(value)}`);
    else if (key === 'properties' || key === '$defs' || key === 'definitions') shape[key] = shapedMembers(value);
    else if (key === 'items' || key === 'anyOf' || key === 'allOf') shape[key] = shapedBelow(value);
    else shape[key] = value;
  }
  if (schema['type'] === 'object' || isObject(schema['properties'])) shape['additionalProperties'] = false;
  if (notes.length > 0) {
    const before = typeof shape['description'] === 'string' ? `${shape['description']}\n` : '';
    shape['description'] = `${before}{${notes.join(', ')}}`;
  }
  return shape;
}

function shapedMembers(value: Json): Json {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapedBelow(member)]));
}

function shapedBelow(value: Json): Json {
  if (Array.isArray(value)) return value.map(shapedBelow);
  return isObject(value) ? shaped(value) : value;
}
