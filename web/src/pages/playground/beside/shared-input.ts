import type { ModelView } from '../../../../../src/dashboard/views/models.ts';
import { isRecord } from '../../../record.ts';
import { fieldsOf, mediaOf, numberOf, titleOf, typeOf, type Field, type FieldSchema } from '../../../ui/schema.ts';

/** One input for several models: the fields that all of them take, and how the models differ. */

type Input = Record<string, unknown>;

/** A model as far as its input goes. */
export type Formed = Pick<ModelView, 'display_name' | 'input_schema'>;

/** Models with something that the others do not have, such as their range of a field. */
export type OwnText = { models: string[]; text: string };

export type Difference =
  /** Fields that only some models have: they keep their defaults. */
  | { is: 'only'; models: string[]; fields: string[] }
  /** Fields that only some have and cannot do without: they are in the form for these. */
  | { is: 'needed'; models: string[]; fields: string[] }
  /** The form takes what all of them accept. */
  | { is: 'range'; field: string; ranges: OwnText[] }
  /** No value suits all: each keeps its default. */
  | { is: 'apart'; field: string }
  | { is: 'default'; field: string; defaults: OwnText[] };

export type SharedInput = { schema: FieldSchema; differences: Difference[] };

/** Returns the part of an input that this model has fields for. */
export function inputFor({ input_schema }: Pick<Formed, 'input_schema'>, input: Input): Input {
  const { properties } = input_schema;
  const fields = isRecord(properties) ? properties : {};
  return Object.fromEntries(Object.entries(input).filter(([name]) => Object.hasOwn(fields, name)));
}

/** Returns the schema of the fields that all models take, with those that one of them needs, and every difference. */
export function sharedInput(models: readonly Formed[]): SharedInput {
  const [first] = models;
  if (first === undefined || models.length === 1) return { schema: first?.input_schema ?? {}, differences: [] };
  const shared: Field[] = [];
  const differences: Difference[] = [];
  for (const [name, owned] of fieldsByName(models)) {
    const [any] = owned;
    if (any === undefined) continue;
    const is_needed = owned.some(({ field }) => field.required);
    const merged = mergedSchema(owned.map(({ field }) => field));
    const title = titleOf(any.field);
    if (merged === undefined) differences.push({ is: 'apart', field: title });
    else if (owned.length === models.length) {
      shared.push({ name, schema: merged, required: is_needed });
      differences.push(...rangesOf(title, owned), ...defaultsOf(title, owned));
    } else {
      if (is_needed) shared.push({ name, schema: merged, required: false }); // the others do without it
      const names = owned.map(({ model }) => model);
      differences.push({ is: is_needed ? 'needed' : 'only', models: names, fields: [title] });
    }
  }
  return { schema: schemaOf(shared), differences: together(differences) };
}

/** Tells whether two models make the same kind of thing from one input, such as a prompt. */
export function areComparable(one: ModelView, other: ModelView): boolean {
  if (one.modality !== other.modality) return false;
  if (!one.output_types.some((type) => other.output_types.includes(type))) return false;
  const fields = [...fieldsByName([one, other]).values()];
  const needed = fields.filter((owned) => owned.some(({ field }) => field.required));
  const can_merge = needed.every((owned) => mergedSchema(owned.map(({ field }) => field)) !== undefined);
  return can_merge && (needed.length === 0 || needed.some((owned) => owned.length === 2));
}

type Owned = { model: string; field: Field };

function fieldsByName(models: readonly Formed[]): Map<string, Owned[]> {
  const by_name = new Map<string, Owned[]>();
  for (const { display_name: model, input_schema } of models) {
    for (const field of fieldsOf(input_schema)) {
      by_name.set(field.name, [...(by_name.get(field.name) ?? []), { model, field }]);
    }
  }
  return by_name;
}

function schemaOf(fields: readonly Field[]): FieldSchema {
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map(({ name, schema }) => [name, schema])),
    required: fields.filter(({ required }) => required).map(({ name }) => name),
  };
}

/** Both ends of what a value may be. */
const ends = [
  ['minimum', 'maximum'],
  ['minLength', 'maxLength'],
  ['minItems', 'maxItems'],
] as const;

const described_by = ['title', 'description', 'examples', 'default', 'x-order'];

/** Members of a schema that may differ; all others have to be the same. */
const merged_apart = new Set([...described_by, ...ends.flat(), 'enum', 'type']);

/** Returns the schema of the values that all of these fields take; undefined if there is none. */
function mergedSchema(fields: readonly Field[]): FieldSchema | undefined {
  const [first] = fields;
  if (!first) return undefined;
  const schemas = fields.map(({ schema }) => schema);
  const rest = (schema: FieldSchema) =>
    JSON.stringify(Object.entries(schema).filter(([name]) => !merged_apart.has(name)));
  const type = typesTogether(schemas.map(typeOf));
  if (type === 'none' || new Set(fields.map(mediaOf)).size > 1 || new Set(schemas.map(rest)).size > 1) return undefined;
  const bounds = boundsOf(schemas);
  const choices = choicesOf(schemas, bounds);
  if (bounds === undefined || choices?.length === 0) return undefined;
  const { default: usual, ...described } = first.schema;
  const has_default = usual !== undefined && schemas.every((schema) => isSame(schema['default'], usual));
  return {
    ...described,
    ...bounds,
    ...(type !== undefined && { type }),
    ...(choices && { enum: choices }),
    ...(has_default && { default: usual }),
  };
}

function typesTogether(types: readonly (string | undefined)[]): string | undefined {
  const different = new Set(types);
  if (different.size === 1) return types[0];
  const are_numbers = types.every((type) => type === 'integer' || type === 'number');
  return are_numbers ? 'integer' : 'none';
}

type Bounds = Readonly<Record<string, number>>;

/** Returns the narrowest bounds; undefined if nothing is between them. */
function boundsOf(schemas: readonly FieldSchema[]): Bounds | undefined {
  const bounds: Record<string, number> = {};
  for (const [least, most] of ends) {
    const lows = schemas.flatMap((schema) => numberOf(schema, least) ?? []);
    const highs = schemas.flatMap((schema) => numberOf(schema, most) ?? []);
    if (lows.length > 0) bounds[least] = Math.max(...lows);
    if (highs.length > 0) bounds[most] = Math.min(...highs);
    if (lows.length > 0 && highs.length > 0 && Math.max(...lows) > Math.min(...highs)) return undefined;
  }
  return bounds;
}

/** Returns the choices that all of them have; undefined if there is nothing to choose from. */
function choicesOf(schemas: readonly FieldSchema[], bounds: Bounds | undefined): unknown[] | undefined {
  const lists = schemas.flatMap((schema) => (Array.isArray(schema['enum']) ? [schema['enum'] as unknown[]] : []));
  const [first, ...others] = lists;
  const { minimum = -Infinity, maximum = Infinity } = bounds ?? {};
  return first?.filter((choice) => {
    const fits = typeof choice !== 'number' || (choice >= minimum && choice <= maximum);
    return fits && others.every((list) => list.some((one) => isSame(one, choice)));
  });
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function rangesOf(field: string, owned: readonly Owned[]): Difference[] {
  const ranges = ownTexts(owned, rangeText);
  return ranges.length > 1 ? [{ is: 'range', field, ranges }] : [];
}

function rangeText(schema: FieldSchema): string {
  const choices: unknown = schema['enum'];
  if (Array.isArray(choices)) return choices.map(String).join(', ');
  const [low, high] = [numberOf(schema, 'minimum'), numberOf(schema, 'maximum')];
  if (low !== undefined && high !== undefined) return `${low} to ${high}`;
  if (low !== undefined) return `from ${low}`;
  if (high !== undefined) return `up to ${high}`;
  const characters = numberOf(schema, 'maxLength');
  if (characters !== undefined) return `up to ${characters} characters`;
  const items = numberOf(schema, 'maxItems');
  return items === undefined ? 'any value' : `up to ${items}`;
}

function defaultsOf(field: string, owned: readonly Owned[]): Difference[] {
  const defaults = ownTexts(owned, defaultText);
  const is_needed = owned.some((one) => one.field.required);
  return !is_needed && defaults.length > 1 ? [{ is: 'default', field, defaults }] : [];
}

function ownTexts(owned: readonly Owned[], textOf: (schema: FieldSchema) => string): OwnText[] {
  const by_text = new Map<string, string[]>();
  for (const { model, field } of owned) {
    const text = textOf(field.schema);
    by_text.set(text, [...(by_text.get(text) ?? []), model]);
  }
  return [...by_text].map(([text, models]) => ({ models, text }));
}

function defaultText({ default: usual }: FieldSchema): string {
  if (usual === undefined) return 'its own choice';
  return typeof usual === 'string' ? usual : JSON.stringify(usual);
}

/** Fields of the same models are one difference. */
function together(differences: readonly Difference[]): Difference[] {
  const list: Difference[] = [];
  for (const one of differences) {
    const at = list.findIndex((other) => isAlike(one, other));
    const before = list[at];
    if ((before?.is === 'only' || before?.is === 'needed') && (one.is === 'only' || one.is === 'needed')) {
      list[at] = { ...before, fields: [...before.fields, ...one.fields] };
    } else list.push(one);
  }
  return list;
}

function isAlike(one: Difference, other: Difference): boolean {
  if (one.is !== 'only' && one.is !== 'needed') return false;
  return one.is === other.is && isSame(one.models, other.models);
}
