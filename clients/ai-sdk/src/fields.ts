import type { JSONObject, JSONValue, SharedV4Warning } from '@ai-sdk/provider';
import { isJsonObject } from './namespaces.ts';

type Json = JSONValue | undefined;

export type MediaKind = 'image' | 'video' | 'audio';

/** One field of a model's input, as far as its schema tells. */
export type Field = {
  name: string;
  types: readonly string[];
  /** The only values that it may have, if they are listed. */
  choices: readonly JSONValue[] | undefined;
  maximum: number | undefined;
  /** Takes files of this kind. */
  media: MediaKind | undefined;
  is_list: boolean;
};

export type Fields = ReadonlyMap<string, Field>;

const media_kinds: ReadonlySet<Json> = new Set(['image', 'video', 'audio']);

function isMediaKind(value: Json): value is MediaKind {
  return media_kinds.has(value);
}

/** Reads the fields of the input schema of a model. */
export function fieldsOf(schema: JSONObject): Fields {
  const fields = new Map<string, Field>();
  for (const part of reachable(schema, schema)) {
    for (const [name, value] of Object.entries(objectIn(part['properties']))) {
      if (isJsonObject(value) && !fields.has(name)) fields.set(name, fieldOf(name, reachable(value, schema), schema));
    }
  }
  return fields;
}

function fieldOf(name: string, parts: readonly JSONObject[], root: JSONObject): Field {
  const first = (keyword: string): Json => parts.map((part) => part[keyword]).find((value) => value !== undefined);
  const items = parts.flatMap(({ items: each }) => (isJsonObject(each) ? reachable(each, root) : []));
  const media = [...parts, ...items].map((part) => part['x-media']).find(isMediaKind);
  const types = [...new Set(parts.flatMap(({ type }) => textsIn(type)))];
  const [choices, only, maximum] = [first('enum'), first('const'), first('maximum')];
  return {
    name,
    types,
    choices: Array.isArray(choices) ? choices : only === undefined ? undefined : [only],
    maximum: typeof maximum === 'number' ? maximum : undefined,
    media,
    is_list: types.includes('array'),
  };
}

const joining_keywords = ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else'];

/** A schema and those that it may be made of. References that go in circles end. */
function reachable(schema: JSONObject, root: JSONObject): JSONObject[] {
  const reached = new Set([schema]);
  for (const part of reached) {
    for (const each of [...joining_keywords.map((keyword) => part[keyword]), referred(part, root)].flat())
      if (isJsonObject(each)) reached.add(each);
  }
  return [...reached];
}

function referred({ $ref }: JSONObject, root: JSONObject): Json {
  if (typeof $ref !== 'string' || !$ref.startsWith('#/')) return undefined;
  let value: Json = root;
  for (const key of $ref
    .slice(2)
    .split('/')
    .map((each) => each.replaceAll('~1', '/').replaceAll('~0', '~')))
    value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

function objectIn(value: Json): JSONObject {
  return isJsonObject(value) ? value : {};
}

function textsIn(value: Json): string[] {
  return [value].flat().filter((each) => typeof each === 'string');
}

/** The input of a task that is being made, and the warnings about what it has no place for. */
export class InputDraft {
  readonly input: JSONObject;
  readonly warnings: SharedV4Warning[] = [];
  readonly fields: Fields;
  readonly model: string;

  /** `own`: fields that the caller sets by themselves. They stay whatever the settings say. */
  constructor(model: string, fields: Fields, own: JSONObject = {}) {
    this.model = model;
    this.fields = fields;
    this.input = { ...own };
  }

  field(names: readonly string[]): Field | undefined {
    return names.map((name) => this.fields.get(name)).find((field) => field !== undefined);
  }

  set(name: string, value: JSONValue): void {
    if (Object.hasOwn(this.input, name)) return;
    // A schema may have a field `__proto__`.
    Object.defineProperty(this.input, name, { value, enumerable: true, writable: true, configurable: true });
  }

  /** Sets the first of these fields that the model has. Without one it warns, unless the value is what happens anyway. */
  put(setting: string, value: JSONValue | undefined, names: readonly string[], more: PutOptions = {}): void {
    if (value === undefined) return;
    const field = this.field(names);
    if (field) this.set(field.name, asField(field, value, more.synonyms));
    else if (!more.harmless?.includes(value)) this.warn(setting);
  }

  warn(feature: string, details?: string): void {
    const names = [...this.fields.keys()].join(', ');
    this.warnings.push({
      type: 'unsupported',
      feature,
      details: details ?? `${this.model} has no field for it. It has: ${names}. Set one by providerOptions.medley.`,
    });
  }
}

export type PutOptions = {
  /** Other words for the same value, best first. */
  synonyms?: readonly JSONValue[];
  /** Values that change nothing where there is no field. */
  harmless?: readonly JSONValue[];
};

/**
 * A value as the field has it: the choice that reads the same, a number where it wants one and got digits, and the
 * other way round. What fits nothing stays: the service refuses it and names the field, and nothing is paid.
 */
export function asField({ choices, types }: Field, value: JSONValue, synonyms: readonly JSONValue[] = []): JSONValue {
  const words = [value, ...synonyms];
  const choice = words.flatMap((word) => choices?.filter((each) => sameText(each, word)) ?? [])[0];
  if (choice !== undefined) return choice;
  const is_number = types.includes('number') || types.includes('integer');
  if (typeof value === 'string' && is_number && !types.includes('string') && /^-?\d{1,15}(\.\d{1,15})?$/.test(value))
    return Number(value);
  return typeof value === 'number' && types.length > 0 && types.every((type) => type === 'string')
    ? String(value)
    : value;
}

function sameText(a: JSONValue, b: JSONValue): boolean {
  return typeof a !== 'object' && typeof b !== 'object' && String(a) === String(b);
}
