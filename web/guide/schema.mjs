// JSON Schemas of openapi.json → Markdown: a list of fields, and what a value may be. Plain JavaScript, which Vite reads.

/** Longer lists of values are for the document itself. */
const values_max = 40;

const formats = { 'date-time': 'time', uri: 'URL', binary: 'file', email: 'email address' };

/** Text of a description in Markdown: only its code spans and its links mean something. */
export function escapeText(text) {
  const parts = text.replaceAll(/\s+/g, ' ').split(/(`[^`]*`)/);
  return parts.map((part, index) => (index % 2 === 1 ? part : part.replaceAll(/[<*]/g, '\\$&'))).join('');
}

const code = (value) => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;

/**
 * Writes schemas of a document. `linkOf(name)` returns the address of the place where a named schema has its fields;
 * undefined where it has none of its own, and is written out.
 */
export class SchemaWriter {
  #schemas;
  #linkOf;

  constructor(schemas, linkOf) {
    this.#schemas = schemas;
    this.#linkOf = linkOf;
  }

  /** Returns the schema itself for a reference. */
  resolve(schema) {
    const name = nameOf(schema);
    return name === undefined ? schema : this.#schemas[name];
  }

  /**
   * Returns the lines of a list: each field with its type and its meaning, and below it the fields that it has. `is_sent`:
   * by a caller, who must know which ones are required.
   */
  fields(schema, { depth = 0, is_sent = false } = {}) {
    const { properties = {}, required = [] } = this.resolve(schema);
    return Object.entries(properties).flatMap(([name, field]) => [
      this.#line(name, [this.type(field)], field, { depth, is_required: is_sent && required.includes(name) }),
      ...this.nested(field, { depth: depth + 1, is_sent }),
    ]);
  }

  /** Returns the line of a parameter; `place` is `query`, `path` or `header`. */
  parameter({ name, in: place, required, schema, description, example }) {
    const described = { ...schema, description, ...(example !== undefined && { examples: [example] }) };
    const is_required = required && place !== 'path';
    return this.#line(name, [`in ${place}`, this.type(schema)], described, { depth: 0, is_required });
  }

  /** Returns the fields inside of a value: of an object, of items of a list, of the variants of either. */
  nested(schema, { depth, is_sent = false }) {
    if (this.#addressOf(schema) !== undefined) return [];
    const { properties, items, anyOf = [], oneOf = [] } = this.resolve(schema);
    if (properties) return this.fields(schema, { depth, is_sent });
    if (items) return this.nested(items, { depth, is_sent });
    return [...anyOf, ...oneOf].flatMap((variant) => this.nested(variant, { depth, is_sent }));
  }

  #line(name, types, field, { depth, is_required }) {
    const facts = [...types, ...limitsOf({ ...field.anyOf?.[0], ...field })].join(', ');
    const required = is_required ? ['**required**'] : [];
    const words = [`\`${name}\``, ...required, `*${facts}*`, escapeText(this.#descriptionOf(field))];
    return `${'  '.repeat(depth)}- ${words.filter(Boolean).join(' ')}`;
  }

  /** Returns the type of a value in words, with a link where the schema has a place of its own. */
  type(schema) {
    const address = this.#addressOf(schema);
    if (address !== undefined) return `[${nameOf(schema)}](${address})`;
    const { type, anyOf, oneOf, enum: values, items, const: only, patternProperties, format } = this.resolve(schema);
    const variants = anyOf ?? oneOf;
    if (variants) return [...new Set(variants.map((each) => this.type(each)))].join(' or ');
    if (only !== undefined) return code(only);
    if (values) return valuesOf(values);
    if (type === 'array') return items ? `list of ${this.type(items)}` : 'list';
    if (type === 'object' && patternProperties)
      return `object, each value ${this.type(Object.values(patternProperties)[0])}`;
    if (type === 'string') return formats[format] ?? type;
    return [type ?? 'any value'].flat().join(' or ');
  }

  #addressOf(schema) {
    const name = nameOf(schema);
    return name === undefined ? undefined : this.#linkOf(name);
  }

  /** The description of a value stands at itself, at the only variant that has one, or at its items. */
  #descriptionOf(schema) {
    if (this.#addressOf(schema) !== undefined) return '';
    const { description, anyOf = [], items } = this.resolve(schema);
    if (description !== undefined) return description;
    return [...anyOf, ...(items ? [items] : [])].map((each) => this.#descriptionOf(each)).find(Boolean) ?? '';
  }
}

/** Returns the name of the schema that is referred to; undefined for one that stands here. */
export function nameOf(schema) {
  return schema.$ref?.replace('#/components/schemas/', '');
}

function valuesOf(values) {
  const shown = values.slice(0, values_max).map(code).join(', ');
  const others = values.length > values_max ? ` and ${values.length - values_max} others` : '';
  return `${values.length === 1 ? '' : 'one of '}${shown}${others}`;
}

function limitsOf(schema) {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, default: usual, examples } = schema;
  const example = examples?.find((each) => typeof each !== 'object');
  return [
    spanOf(minimum, maximum, ''),
    spanOf(minLength, maxLength, ' characters'),
    spanOf(minItems, maxItems, ' items'),
    pattern === undefined ? '' : `pattern ${code(pattern)}`,
    usual === undefined ? '' : `default ${code(usual)}`,
    example === undefined ? '' : `for example ${code(example)}`,
  ].filter(Boolean);
}

function spanOf(least, most, unit) {
  if (least === undefined && most === undefined) return '';
  if (least === undefined) return `at most ${most}${unit}`;
  if (most === undefined) return `at least ${least}${unit}`;
  return least === most ? `${least}${unit}` : `${least} to ${most}${unit}`;
}
