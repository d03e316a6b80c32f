import type { Json, JsonObject } from '../../catalog/model.ts';
import { LongInteger } from '../../lib/long-integers.ts';
import { isObject } from '../fields.ts';

/** Keywords of a JSON Schema that Gemini reads unchanged; some of the others are rewritten. */
const supported_keywords: ReadonlySet<string> = new Set([
  'type',
  'title',
  'description',
  'required',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
  'propertyOrdering',
]);

const dropped: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  '$anchor',
  '$comment',
  'deprecated',
  'readOnly',
  'writeOnly',
]);

const formats: readonly Json[] = ['date-time', 'date', 'time', 'int32', 'int64', 'float', 'double'];

/** Deeper than bodies may be. */
const depth_max = 64;

/**
 * `schema` as Gemini takes the schemas of tools and of answers: what it does not know is told in descriptions, and
 * nothing is left out but what no model reads.
 */
export function geminiSchema(schema: JsonObject): JsonObject {
  return shaped(schema, 0);
}

function shaped(source: JsonObject, depth: number): JsonObject {
  const { schema, notes } = flattened(source);
  const shape: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (dropped.has(key) || key === 'nullable') continue;
    const written = depth < depth_max ? keyword(key, value, depth + 1) : undefined;
    if (written?.[0] === '$defs') shape['$defs'] = { ...objectOr(shape['$defs']), ...objectOr(written[1]) };
    else if (written && shape[written[0]] === undefined) shape[written[0]] = written[1];
    else notes.push(`${key}: ${JSON.stringify(value)}`);
  }
  if (schema['nullable'] === true && typeof shape['type'] === 'string') shape['type'] = [shape['type'], 'null'];
  if (notes.length > 0) {
    const before = typeof shape['description'] === 'string' ? `${shape['description']}\n` : '';
    shape['description'] = `${before}{${notes.join(', ')}}`;
  }
  return referenceAlone(shape);
}

/** A keyword as Gemini has it; undefined if it has none for it. */
function keyword(key: string, value: Json, depth: number): [name: string, value: Json] | undefined {
  switch (key) {
    case 'items':
      return Array.isArray(value) ? ['prefixItems', below(value, depth)] : [key, below(value, depth)];
    case 'prefixItems':
    case 'anyOf':
      return [key, below(value, depth)];
    case 'oneOf':
      return ['anyOf', below(value, depth)];
    case 'additionalProperties':
      return [key, typeof value === 'boolean' ? value : below(value, depth)];
    case 'properties':
      return [key, members(value, depth)];
    case '$defs':
    case 'definitions':
      return ['$defs', members(value, depth)];
    case '$ref':
      return isDefinition(value) ? [key, value.replace('#/definitions/', '#/$defs/')] : undefined;
    case 'enum':
      return Array.isArray(value) && value.every(isPlain) ? [key, value] : undefined;
    case 'const':
      return isPlain(value) ? ['enum', [value]] : undefined;
    case 'format':
      return formats.includes(value) ? [key, value] : undefined;
    default:
      return supported_keywords.has(key) ? [key, value] : undefined;
  }
}

function below(value: Json, depth: number): Json {
  if (Array.isArray(value)) return value.map((each) => below(each, depth));
  if (typeof value === 'boolean') return {};
  return isObject(value) ? shaped(value, depth) : value;
}

function members(value: Json, depth: number): Json {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, below(member, depth)]));
}

/** Values of other types have no place in `enum` there. */
function isPlain(value: Json): boolean {
  return typeof value === 'string' || typeof value === 'number' || value instanceof LongInteger;
}

function isDefinition(value: Json): value is string {
  return typeof value === 'string' && /^#\/(\$defs|definitions)\/[^/]+$/.test(value);
}

/** Nothing may stand beside a reference. */
function referenceAlone(shape: JsonObject): JsonObject {
  const { $ref, $defs, ...rest } = shape;
  if ($ref === undefined || Object.keys(rest).length === 0) return shape;
  return { ...rest, anyOf: [{ $ref }], ...($defs !== undefined && { $defs }) };
}

type Flattened = { schema: JsonObject; /** The parts that do not fit, as text. */ notes: string[] };

/** `allOf` has no place there: its parts become one schema with what is beside them. */
function flattened(schema: JsonObject): Flattened {
  const all = partsOf(schema);
  const [first] = all;
  if (first && all.length === 1) return { schema: first, notes: [] };
  const whole: JsonObject = {};
  const notes: string[] = [];
  for (const [key, values] of membersOf(all)) {
    const [one, ...others] = values;
    if (others.length === 0) whole[key] = one ?? null;
    else if (key === 'required' && values.every((names) => Array.isArray(names))) whole[key] = united(values.flat());
    else if (key === 'description')
      whole[key] = united(values)
        .filter((each) => typeof each === 'string')
        .join('\n');
    else if (named.has(key) && values.every(isObject)) whole[key] = mergedMembers(values);
    else {
      const [kept_one = null, ...rest] = united(values);
      whole[key] = kept_one;
      for (const each of rest) notes.push(`${key}: ${JSON.stringify(each)}`);
    }
  }
  return { schema: whole, notes };
}

/** Keywords whose members are schemas by their names. */
const named: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);

/** Returns the members beside an `allOf`, then its parts and theirs. */
function partsOf(schema: JsonObject): JsonObject[] {
  const { allOf, ...rest } = schema;
  if (!Array.isArray(allOf) || !allOf.every(isObject)) return [schema];
  return [rest, ...allOf.flatMap(partsOf)];
}

/** The values of each name. In one go: two by two, ten thousand parts took 20 s. */
function membersOf(all: readonly JsonObject[]): Map<string, Json[]> {
  const by_name = new Map<string, Json[]>();
  for (const [key, value] of all.flatMap((each) => Object.entries(each))) {
    const values = by_name.get(key);
    if (values) values.push(value);
    else by_name.set(key, [value]);
  }
  return by_name;
}

/** A name that several have is what all of them say. */
function mergedMembers(all: readonly JsonObject[]): JsonObject {
  const merged = [...membersOf(all)].map(([name, values]): [string, Json] => {
    const [only = null, ...others] = united(values);
    return [name, others.length === 0 ? only : { allOf: [only, ...others] }];
  });
  return Object.fromEntries(merged);
}

/** Each of the values once. */
function united(values: readonly Json[]): Json[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

function objectOr(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}
