import { isRecord } from '../record.ts';

/** Reads a JSON Schema for forms; everything of it may be missing or strange. */

export type FieldSchema = Readonly<Record<string, unknown>>;

export type Field = { name: string; schema: FieldSchema; required: boolean };

/** The fields of an object, required ones first, else as `x-order` or the schema has them. */
export function fieldsOf(schema: FieldSchema): Field[] {
  const { properties, required } = schema;
  const needed = new Set(Array.isArray(required) ? required.map(String) : []);
  const fields = Object.entries(isRecord(properties) ? properties : {}).map(([name, field]): Field => {
    return { name, schema: isRecord(field) ? field : {}, required: needed.has(name) };
  });
  const place = ({ schema: { 'x-order': order } }: Field) => (typeof order === 'number' ? order : 0);
  return fields.toSorted((a, b) => Number(b.required) - Number(a.required) || place(a) - place(b));
}

/** `type`, without the null of a field that may be empty. */
export function typeOf(schema: FieldSchema): string | undefined {
  const { type } = schema;
  const one: unknown = Array.isArray(type) ? type.find((each) => each !== 'null') : type;
  return typeof one === 'string' ? one : undefined;
}

export function textOf(schema: FieldSchema, name: string): string | undefined {
  const value = schema[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function numberOf(schema: FieldSchema, name: string): number | undefined {
  const value = schema[name];
  return typeof value === 'number' ? value : undefined;
}

/** `Aspect ratio`: what the schema calls a field, or its name in words. */
export function titleOf({ name, schema }: Pick<Field, 'name' | 'schema'>): string {
  const words = name.replaceAll(/[_-]+/g, ' ').trim();
  return textOf(schema, 'title') ?? words.slice(0, 1).toUpperCase() + words.slice(1);
}

export type MediaKind = 'image' | 'audio' | 'video';

/** Returns the kind of file that a field takes. */
export function mediaOf({ name, schema }: Pick<Field, 'name' | 'schema'>): MediaKind | undefined {
  const { 'x-media': kind, format, contentMediaType: content } = schema;
  if (kind === 'image' || kind === 'audio' || kind === 'video') return kind;
  if (typeOf(schema) !== 'string' || format !== 'uri') return undefined;
  const hint = `${typeof content === 'string' ? content : ''} ${name}`;
  return (['image', 'audio', 'video'] as const).find((each) => hint.includes(each));
}
