import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { fragmentAt, pointerKeys, valueAt } from '../lib/json-pointer.ts';
import { validationMessage } from '../json-schema/validation-messages.ts';
import { isObject, type Json, type JsonObject } from './model.ts';
import type { Path } from './problem.ts';

/** A JSON Schema that operators bring along for a model's input: may it be used, and what are its fields? */

const size_bytes_max = 256 * 1024;
const depth_max = 32;

/** Longer patterns are where catastrophic backtracking hides. */
const pattern_length_max = 200;

const dialect = 'https://json-schema.org/draft/2020-12/schema';

export type SchemaMistake = { path: Path; message: string };

/** Lists the reasons why a schema cannot be used for inputs; empty if it can. */
export function schemaMistakes(schema: JsonObject): SchemaMistake[] {
  const unbearable = tooLarge(schema);
  if (unbearable) return [{ path: [], message: unbearable }];
  const mistakes = [...rootMistakes(schema), ...badPatterns(schema, [], false)];
  return mistakes.length > 0 ? mistakes : compileMistakes(schema);
}

/** Stops counting at the limit: aliases can make a schema that is small on paper and endless in memory. */
function tooLarge(schema: JsonObject): string | undefined {
  let size_bytes = 0;
  const measure = (value: Json, depth: number): string | undefined => {
    if (depth > depth_max) return `is nested more than ${depth_max} levels deep.`;
    if (typeof value !== 'object' || value === null) size_bytes += Buffer.byteLength(JSON.stringify(value)) + 1;
    else {
      size_bytes += 2;
      for (const [key, below] of Object.entries(value)) {
        if (!Array.isArray(value)) size_bytes += Buffer.byteLength(JSON.stringify(key)) + 1;
        const problem = measure(below, depth + 1);
        if (problem) return problem;
      }
    }
    return size_bytes > size_bytes_max ? `is larger than ${size_bytes_max / 1024} KB.` : undefined;
  };
  return measure(schema, 1);
}

function rootMistakes(schema: JsonObject): SchemaMistake[] {
  const mistakes: SchemaMistake[] = [];
  const declared = own(schema, '$schema');
  if (declared !== undefined && declared !== dialect && declared !== `${dialect}#`) {
    mistakes.push({ path: ['$schema'], message: `must be ${dialect}, or absent.` });
  }
  if (own(schema, '$async') !== undefined) mistakes.push({ path: ['$async'], message: 'is not allowed.' });
  if (own(schema, 'type') !== 'object') mistakes.push({ path: ['type'], message: 'must be "object".' });
  return mistakes;
}

/** Keywords whose members have names of the operator's choice. */
const naming_keywords = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);

/** Keywords that hold values and no schemas. */
const value_keywords = new Set(['default', 'const', 'enum', 'examples', 'required', 'dependentRequired']);

function badPatterns(node: Json, path: Path, named: boolean): SchemaMistake[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([key, below]): SchemaMistake[] => {
    const here = [...path, Array.isArray(node) ? Number(key) : key];
    if (!named && value_keywords.has(key)) return [];
    const is_pattern = named ? path.at(-1) === 'patternProperties' : key === 'pattern';
    const message = is_pattern ? patternMistake(named ? key : below) : undefined;
    const deeper = badPatterns(below, here, !named && naming_keywords.has(key));
    return message === undefined ? deeper : [{ path: here, message }, ...deeper];
  });
}

function patternMistake(pattern: Json): string | undefined {
  if (typeof pattern !== 'string') return undefined; // told by the meta-schema
  if (pattern.length > pattern_length_max) return `is longer than ${pattern_length_max} characters.`;
  try {
    RegExp(pattern, 'u');
    return undefined;
  } catch (error) {
    return `${error instanceof Error ? error.message : 'is no regular expression'}.`;
  }
}

function compileMistakes(schema: JsonObject): SchemaMistake[] {
  const ajv = ajvFor(schema, true);
  if (!ajv.validateSchema(schema)) return firstByPlace(schema, ajv.errors ?? []);
  try {
    compileSchema(schema, true);
    return [];
  } catch (error) {
    return [{ path: [], message: `does not compile: ${error instanceof Error ? error.message : String(error)}.` }];
  }
}

/** The meta-schema says several things about one place; the list of allowed values says most. */
function firstByPlace(schema: JsonObject, errors: readonly ErrorObject[]): SchemaMistake[] {
  const ordered = errors.toSorted((a, b) => Number(b.keyword === 'enum') - Number(a.keyword === 'enum'));
  const mistakes = new Map<string, SchemaMistake>();
  for (const error of ordered) {
    if (mistakes.has(error.instancePath)) continue;
    const keys = pointerKeys(error.instancePath);
    const message = validationMessage(error, valueAt(schema, keys), (key) => key, schema);
    mistakes.set(error.instancePath, { path: pathIn(schema, keys), message });
  }
  return [...mistakes.values()];
}

/** The keys of a JSON pointer with the positions in lists as numbers. */
export function pathIn(root: unknown, keys: readonly string[]): Path {
  return keys.map((key, index) => (Array.isArray(valueAt(root, keys.slice(0, index))) ? Number(key) : key));
}

type Compiled = { thorough?: ValidateFunction; quick?: ValidateFunction };

const compiled = new WeakMap<JsonObject, Compiled>();
const shared = { thorough: makeAjv(true), quick: makeAjv(false) };

/**
 * The validating function of a schema, made once. `thorough` reports every error; that costs memory for
 * each of them, and keywords that are meant to stop the others (`maxItems` before `uniqueItems`) do not.
 * Throws if the schema does not compile; whether it makes sense is `schemaMistakes`' matter.
 */
export function compileSchema(schema: JsonObject, thorough: boolean): ValidateFunction {
  const forms = compiled.get(schema) ?? {};
  const form = thorough ? 'thorough' : 'quick';
  const existing = forms[form];
  if (existing) return existing;
  const ajv = ajvFor(schema, thorough);
  const validate = ajv.compile(schema);
  ajv.removeSchema(schema); // Ajv keeps all schemas that it ever saw; reloads would pile them up
  compiled.set(schema, { ...forms, [form]: validate });
  return validate;
}

/** Schemas with names of their own get an instance of their own, so that two models may use the same names. */
function ajvFor(schema: JsonObject, thorough: boolean): Ajv2020 {
  const has_names = /"\$(?:id|anchor|dynamicAnchor)":/.test(JSON.stringify(schema));
  return has_names ? makeAjv(thorough) : shared[thorough ? 'thorough' : 'quick'];
}

function makeAjv(thorough: boolean): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: thorough,
    verbose: true,
    strict: false, // providers' keywords (x-order, nullable) stay in imported schemas
    ownProperties: true, // `required: [constructor]` is not met by what every object inherits
    logger: false,
    validateSchema: false, // schemaMistakes does, once: here each instance would compile the meta-schema, in 0.1 s
  });
  addFormats.default(ajv);
  return ajv;
}

/** The top-level fields of an input, as far as its schema tells. */
export type InputFields = {
  readonly names: readonly string[];
  /** In every valid input after defaults are filled in. */
  certain(name: string): boolean;
  /** Returns the keyword's value for this field: its own, or that of a schema it refers to. */
  keyword(name: string, keyword: string): Json | undefined;
};

/** Reads the fields of a schema that has no mistakes. */
export function fieldsOf(schema: JsonObject): InputFields {
  const parts = certainParts(schema, schema);
  const possible = possibleParts(schema, schema);
  const keyword = (name: string, key: string) =>
    possible
      .flatMap((part) => objectsIn([own(own(part, 'properties'), name)]))
      .flatMap((field) => certainParts(field, schema))
      .map((part) => own(part, key))
      .find((value) => value !== undefined);
  const required = new Set(parts.flatMap((part) => listIn(own(part, 'required'))));
  return {
    names: [...new Set(possible.flatMap((part) => Object.keys(own(part, 'properties') ?? {})))],
    certain: (name) => required.has(name) || parts.some((part) => defaultOf(part, name, schema) !== undefined),
    keyword,
  };
}

/** The input with the schema's defaults for what is absent. Builds a new object, and sets no prototype. */
export function fillDefaults(schema: JsonObject, input: JsonObject): JsonObject {
  return filledObject(schema, schema, input);
}

function filledObject(schema: JsonObject, root: JsonObject, input: JsonObject): JsonObject {
  const fields = new Map(Object.entries(input));
  for (const part of certainParts(schema, root)) {
    for (const [name, field] of Object.entries(own(part, 'properties') ?? {})) {
      const present = fields.get(name);
      const value = present === undefined ? structuredClone(defaultOf(part, name, root)) : filled(field, root, present);
      if (value !== undefined) fields.set(name, value);
    }
  }
  return Object.fromEntries(fields);
}

function filled(schema: Json, root: JsonObject, value: Json): Json {
  if (!isObject(schema)) return value;
  if (isObject(value)) return filledObject(schema, root, value);
  if (!Array.isArray(value)) return value;
  const items = objectsIn(certainParts(schema, root).map((part) => own(part, 'items')))[0];
  return items ? value.map((item) => filled(items, root, item)) : value;
}

function defaultOf(part: JsonObject, name: string, root: JsonObject): Json | undefined {
  const field = own(own(part, 'properties'), name);
  if (!isObject(field)) return undefined;
  return certainParts(field, root)
    .map((one) => own(one, 'default'))
    .find((value) => value !== undefined);
}

/** A schema and those that hold whenever it does: `allOf` and local references. */
function certainParts(schema: JsonObject, root: JsonObject): JsonObject[] {
  return reachable(schema, (part) => [own(part, 'allOf'), referred(part, root)]);
}

/** A schema and those that it may be made of. */
function possibleParts(schema: JsonObject, root: JsonObject): JsonObject[] {
  const alternatives = ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else'];
  return reachable(schema, (part) => [...alternatives.map((keyword) => own(part, keyword)), referred(part, root)]);
}

function reachable(schema: JsonObject, next: (part: JsonObject) => (Json | undefined)[]): JsonObject[] {
  const reached = new Set([schema]);
  for (const part of reached) for (const each of objectsIn(next(part).flat())) reached.add(each);
  return [...reached];
}

function referred(part: JsonObject, root: JsonObject): Json | undefined {
  const reference = own(part, '$ref');
  const target = typeof reference === 'string' ? fragmentAt(root, reference) : undefined;
  return isObject(target) ? target : undefined;
}

function objectsIn(values: readonly unknown[]): JsonObject[] {
  return values.filter((value) => isObject(value));
}

function listIn(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the own value under `key`, never an inherited one. */
export function own(value: Json | undefined, key: string): Json | undefined {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}
