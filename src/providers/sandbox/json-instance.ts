/** A value that fits a JSON Schema, for answers and arguments that must: the same one for the same schema. */
import type { Json, JsonObject } from '../../catalog/model.ts';
import { fragmentAt } from '../../lib/json-pointer.ts';
import { LongInteger } from '../../lib/long-integers.ts';
import { rememberByObject } from '../../lib/remember.ts';
import { isObject } from '../../styles/fields.ts';
import { PatternTexts } from './pattern-text.ts';

/** Deeper than this only what is required is made: schemas may contain themselves. */
const generous_depth = 4;

const depth_max = 24;

/** A schema of a few lines may ask for millions of values. */
const values_max = 2_000;

const items_max = 64;

/**
 * Keywords and what they list, again with each use: a thousand references to a long schema took 14 s. Also the
 * characters of patterns and of the texts that are made: a pattern of 10 kB for 2,000 values took 94 s.
 */
const looked_at_max = 100_000;

/**
 * An instance of `schema`. Looks at types, properties, items, ranges, lengths, formats, simple patterns, enum,
 * const, allOf, anyOf, oneOf and $ref within the schema; `not`, `if` and the like are left out of account.
 */
export function instanceOf(schema: Json): Json {
  return typeof schema === 'object' && schema !== null ? rememberedInstance(schema) : makeInstance(schema);
}

/** Once for the several answers to one request. */
const rememberedInstance = rememberByObject((schema: Exclude<Json, null> & object) => makeInstance(schema));

function makeInstance(schema: Json): Json {
  return new InstanceMaker(schema).make(schema, 0, 'value', 0);
}

class InstanceMaker {
  readonly #root: Json;
  #values = 0;
  #looked_at = 0;
  readonly #patterns = new PatternTexts();

  constructor(root: Json) {
    this.#root = root;
  }

  /** `variant` makes the items of an array differ. */
  make(source: Json, depth: number, name: string, variant: number): Json {
    this.#values += 1;
    if (depth > depth_max || this.#values > values_max || this.#is_tired) return null;
    const schema = this.#resolve(source, depth);
    if ('const' in schema) return this.#repeat(schema['const'] ?? null);
    const choices = schema['enum'];
    if (Array.isArray(choices) && choices.length > 0) return this.#repeat(choices[variant % choices.length] ?? null);
    switch (typeOf(schema, depth)) {
      case 'object':
        return this.#object(schema, depth);
      case 'array':
        return this.#array(schema, depth, name);
      case 'integer':
        return numberIn(schema, 1, variant);
      case 'number':
        return numberIn(schema, 0.5, variant);
      case 'boolean':
        return variant % 2 === 0;
      case 'null':
        return null;
      default:
        return this.#text(schema, name, variant);
    }
  }

  get #is_tired(): boolean {
    return this.#looked_at > looked_at_max;
  }

  #repeat(value: Json): Json {
    this.#looked_at += JSON.stringify(value).length;
    return value;
  }

  #text(schema: JsonObject, name: string, variant: number): string {
    const read_length = this.#patterns.read_length;
    const text = textIn(schema, this.#patterns, name, variant);
    this.#looked_at += text.length + this.#patterns.read_length - read_length;
    return text;
  }

  /** With what it refers to, all parts of allOf and one of each choice. */
  #resolve(source: Json, depth: number): JsonObject {
    let schema: JsonObject = isObject(source) ? source : {};
    for (let hops = 0; hops < 16 && !this.#is_tired; hops++) {
      this.#looked_at += sizeOf(schema);
      const { $ref, allOf, anyOf, oneOf, ...rest } = schema;
      if (typeof $ref === 'string') {
        const target = fragmentAt(this.#root, $ref);
        schema = merged({ ...rest, ...lists({ allOf, anyOf, oneOf }) }, isObject(target) ? target : {});
      } else if (Array.isArray(allOf)) {
        schema = this.#whole({ ...rest, ...lists({ anyOf, oneOf }) }, allOf.filter(isObject));
      } else if (Array.isArray(anyOf)) {
        schema = merged({ ...rest, ...lists({ oneOf }) }, this.#choose(anyOf, depth));
      } else if (Array.isArray(oneOf)) {
        schema = merged(rest, this.#choose(oneOf, depth));
      } else break;
    }
    return schema;
  }

  #whole(schema: JsonObject, parts: readonly JsonObject[]): JsonObject {
    let whole = schema;
    for (const part of parts) {
      this.#looked_at += sizeOf(whole);
      if (this.#is_tired) break;
      whole = merged(whole, part);
    }
    return whole;
  }

  /** Far down, whatever ends it: a choice that refers to nothing. */
  #choose(choices: readonly Json[], depth: number): JsonObject {
    const all = choices.filter(isObject);
    const end = depth < generous_depth ? undefined : all.find((choice) => !this.#refers(choice));
    return end ?? all[0] ?? {};
  }

  #refers(value: Json): boolean {
    this.#looked_at += 1;
    if (Array.isArray(value)) return value.some((each) => this.#refers(each));
    return isObject(value) && ('$ref' in value || Object.values(value).some((each) => this.#refers(each)));
  }

  #object(schema: JsonObject, depth: number): JsonObject {
    const properties = isObject(schema['properties']) ? schema['properties'] : {};
    const required = Array.isArray(schema['required'])
      ? schema['required'].filter((name) => typeof name === 'string')
      : [];
    const least = countOf(schema['minProperties']) ?? 0;
    const needed = new Set(required);
    const optional = Object.keys(properties).filter((name) => properties[name] !== false && !needed.has(name));
    const spare = Math.max(0, least - required.length);
    const most = countOf(schema['maxProperties']) ?? Infinity;
    const chosen = depth < generous_depth ? optional : optional.slice(0, spare);
    const names = [...required, ...chosen.slice(0, Math.max(0, most - required.length))];
    const others = schema['additionalProperties'] ?? {};
    for (let index = 1; names.length < least && index <= items_max; index++) names.push(`property_${index}`);
    return Object.fromEntries(
      names.map((name) => [
        name,
        this.make(Object.hasOwn(properties, name) ? (properties[name] ?? {}) : others, depth + 1, name, 0),
      ]),
    );
  }

  #array(schema: JsonObject, depth: number, name: string): Json[] {
    const first = Array.isArray(schema['prefixItems']) ? schema['prefixItems'] : [];
    const items = schema['items'] ?? {};
    const contains = schema['contains'];
    const least = countOf(schema['minItems']) ?? (contains === undefined ? 0 : 1);
    const usual = depth < generous_depth ? Math.max(first.length, items === false ? 0 : 1) : 0;
    const count = Math.min(Math.max(least, usual), countOf(schema['maxItems']) ?? Infinity, items_max);
    return Array.from({ length: count }, (_, index) => {
      const item =
        first[index] ??
        (contains !== undefined && index === first.length ? merged(asSchema(items), asSchema(contains)) : items);
      return this.make(item, depth + 1, name, index);
    });
  }
}

function asSchema(value: Json): JsonObject {
  return isObject(value) ? value : {};
}

function lists(all: Record<string, Json | undefined>): JsonObject {
  return Object.fromEntries(Object.entries(all).flatMap(([name, list]) => (list === undefined ? [] : [[name, list]])));
}

/** Its keywords with the items or members of each, and the letters of its reference. */
function sizeOf(schema: JsonObject): number {
  let size = typeof schema['$ref'] === 'string' ? schema['$ref'].length : 0;
  for (const value of Object.values(schema)) {
    if (Array.isArray(value)) size += value.length;
    else if (isObject(value)) size += Object.keys(value).length;
    size += 1;
  }
  return size;
}

/** Both at once, as far as that can be said by putting keywords side by side. */
function merged(one: JsonObject, two: JsonObject): JsonObject {
  const both: JsonObject = { ...one, ...two };
  for (const name of ['properties', '$defs'] as const) {
    const [a, b] = [one[name], two[name]];
    if (isObject(a) && isObject(b)) both[name] = { ...a, ...b };
  }
  const [a, b] = [one['required'], two['required']];
  if (Array.isArray(a) && Array.isArray(b)) both['required'] = [...new Set([...a, ...b])];
  for (const [keywords, pick] of [
    [least_keywords, Math.max],
    [most_keywords, Math.min],
  ] as const) {
    for (const keyword of keywords) {
      const [low, high] = [one[keyword], two[keyword]];
      if (typeof low === 'number' && typeof high === 'number') both[keyword] = pick(low, high);
    }
  }
  for (const keyword of ['allOf', 'anyOf', 'oneOf'] as const) {
    const [first, second] = [one[keyword], two[keyword]];
    if (keyword === 'allOf' && Array.isArray(first) && Array.isArray(second)) both[keyword] = [...first, ...second];
  }
  return both;
}

const least_keywords = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'] as const;
const most_keywords = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'] as const;

/** By its name, or by keywords that only one type has. Far down, null where that is allowed. */
function typeOf(schema: JsonObject, depth: number): string {
  const { type } = schema;
  if (typeof type === 'string') return type;
  if (Array.isArray(type)) {
    const chosen = depth >= generous_depth && type.includes('null') ? 'null' : type.find((each) => each !== 'null');
    return String(chosen ?? 'null');
  }
  const has = (...keywords: string[]) => keywords.some((keyword) => keyword in schema);
  if (has('properties', 'required', 'additionalProperties', 'minProperties')) return 'object';
  if (has('items', 'prefixItems', 'minItems', 'contains')) return 'array';
  if (has('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf')) return 'number';
  return 'string';
}

function countOf(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** The smallest number that is allowed, or 1; each variant is a step further, as long as there is room. */
function numberIn(schema: JsonObject, usual_step: number, variant: number): Json {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  if (minimum instanceof LongInteger) return minimum; // no double is next to it
  const step = typeof multipleOf === 'number' && multipleOf > 0 ? multipleOf : usual_step;
  const is_whole = usual_step === 1;
  const low = numbers(minimum, exclusiveMinimum).reduce((a, b) => Math.max(a, b), -Infinity);
  const high = numbers(maximum, exclusiveMaximum).reduce((a, b) => Math.min(a, b), Infinity);
  const fits = (value: number) =>
    value >= low &&
    value <= high &&
    value !== exclusiveMinimum &&
    value !== exclusiveMaximum &&
    (!is_whole || Number.isInteger(value));
  const start = low === -Infinity ? Math.min(1, high) : low;
  for (let steps = variant; steps >= 0; steps--) {
    const base = Math.ceil(start / step) * step;
    const value = [base, base + step, base - step, (low + high) / 2].map((one) => one + steps * step).find(fits);
    if (value !== undefined) return value;
  }
  return [(low + high) / 2, low, high].find(fits) ?? (is_whole ? 1 : 0.5);
}

function numbers(...values: (Json | undefined)[]): number[] {
  const all = values.map((value) => (value instanceof LongInteger ? value.valueOf() : value));
  return all.filter((value) => typeof value === 'number');
}

const formats: { readonly [format: string]: string } = {
  'date-time': '2026-01-01T12:00:00Z',
  date: '2026-01-01',
  time: '12:00:00Z',
  duration: 'P1D',
  email: 'sandbox@example.com',
  'idn-email': 'sandbox@example.com',
  hostname: 'example.com',
  'idn-hostname': 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/',
  'uri-reference': '/sandbox',
  iri: 'https://example.com/',
  'iri-reference': '/sandbox',
  uuid: '00000000-0000-4000-8000-000000000000',
  'uri-template': 'https://example.com/{id}',
  'json-pointer': '/sandbox',
  'relative-json-pointer': '1/sandbox',
  regex: '^sandbox$',
};

const text_length_max = 10_000;

function textIn(schema: JsonObject, patterns: PatternTexts, name: string, variant: number): string {
  const { format, pattern } = schema;
  const least = Math.min(countOf(schema['minLength']) ?? 0, text_length_max);
  const most = countOf(schema['maxLength']) ?? text_length_max;
  if (typeof pattern === 'string') {
    const text = patterns.textOf(pattern, least);
    if (text !== undefined) return text;
  }
  const sample = typeof format === 'string' && Object.hasOwn(formats, format) ? formats[format] : undefined;
  if (sample !== undefined) return sample;
  const text = `Sandbox ${name}${variant === 0 ? '' : ` ${variant + 1}`}`;
  const fitted = text.length >= least ? text : text.padEnd(least, '.');
  return variant > 0 && fitted.length > most
    ? String(variant).padStart(Math.min(most, least), '0').slice(0, most)
    : fitted.slice(0, most);
}
