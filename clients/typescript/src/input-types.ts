import type { Model } from './types.ts';

/**
 * Types of the inputs of models, from their schemas. Everything in a schema is text of somebody else: here it becomes a
 * literal, a quoted name or a comment.
 */

const depth_max = 16;

/** A schema whose parts refer to each other may be small, and endless as a type. */
const types_max = 5_000;

/** Models of other kinds take no tasks. */
const task_modalities: readonly string[] = ['image', 'video', 'audio'];

const head = [
  '// Written by `npx @medley/client types`: write it again when models change.',
  "import type {} from '@medley/client';",
  '',
  "declare module '@medley/client' {",
];

type Fields = Readonly<Record<string, unknown>>;

/** Returns a `.d.ts` that fills `ModelInputs` with the models that take tasks. The same models make the same text. */
export function declarationsOf(models: readonly Model[], options: { closed?: boolean } = {}): string {
  const offered = models.filter(({ modality }) => task_modalities.includes(modality));
  offered.sort(byId);
  const ids = new Set(offered.map(({ id }) => id));
  const lines = offered.flatMap((model) => {
    const note = comment([`${model.display_name}: ${model.description}`], '    ');
    return [...note, `    ${literal(model.id)}: ${new Writer(model.input_schema).typeOf()};`];
  });
  const aliases = offered.flatMap(({ id, aliases: others }) => others.map((alias) => ({ id, alias })));
  aliases.sort(byAlias);
  for (const { id, alias } of aliases) {
    if (ids.has(alias)) continue;
    ids.add(alias);
    lines.push(`    ${literal(alias)}: ModelInputs[${literal(id)}];`);
  }
  const rules = options.closed ? ['  interface ModelRules {', '    closed: true;', '  }'] : [];
  return [...head, '  interface ModelInputs {', ...lines, '  }', ...rules, '}', ''].join('\n');
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : Number(a.id > b.id);
}

function byAlias(a: { alias: string }, b: { alias: string }): number {
  return a.alias < b.alias ? -1 : Number(a.alias > b.alias);
}

/** Writes the type of one schema. */
class Writer {
  readonly #root: Fields;
  #count = 0;

  constructor(schema: Fields) {
    this.#root = schema;
  }

  /** An input is an object, whatever else its schema says. */
  typeOf(): string {
    const type = this.#type(this.#root, 2, []);
    return type === 'unknown' ? 'Record<string, unknown>' : type;
  }

  #type(value: unknown, depth: number, within: readonly unknown[]): string {
    const schema = fieldsOf(value);
    if (++this.#count > types_max || depth > depth_max || within.includes(value)) return 'unknown';
    const inner = [...within, value];
    const below = (each: unknown) => this.#type(each, depth, inner);
    if ('const' in schema) return literalOf(schema['const']);
    const { enum: choices, $ref, type } = schema;
    if (Array.isArray(choices)) return union(choices.map(literalOf));
    const types = [type].flat().filter((each) => typeof each === 'string');
    const own = Object.keys(fieldsOf(schema['properties'])).length > 0 && types.length === 0 ? ['object'] : types;
    const parts = [
      ...(own.length > 0 ? [union(own.map((each) => this.#named(each, schema, depth, inner)))] : []),
      ...(typeof $ref === 'string' ? [below(this.#referred($ref))] : []),
      ...listOf(schema['allOf']).map(below),
      ...['anyOf', 'oneOf'].map((name) => union(listOf(schema[name]).map(below))),
    ];
    return intersection(parts);
  }

  #named(type: string, schema: Fields, depth: number, within: readonly unknown[]): string {
    switch (type) {
      case 'string':
      case 'boolean':
      case 'null':
        return type;
      case 'number':
      case 'integer':
        return 'number';
      case 'array':
        return `Array<${this.#type(schema['items'], depth + 1, within)}>`;
      case 'object':
        return this.#object(schema, depth, within);
      default:
        return 'unknown';
    }
  }

  #object(schema: Fields, depth: number, within: readonly unknown[]): string {
    const properties = Object.entries(fieldsOf(schema['properties']));
    const indent = '  '.repeat(depth + 1);
    const required = listOf(schema['required']);
    const lines = properties.flatMap(([name, field]) => {
      const type = this.#type(field, depth + 1, within);
      const written = required.includes(name) ? `: ${type};` : `?: ${union([type, 'undefined'])};`;
      return [...comment(notesOf(field), indent), `${indent}${nameOf(name)}${written}`];
    });
    const is_open = schema['additionalProperties'] !== false;
    if (lines.length === 0) return is_open ? 'Record<string, unknown>' : 'Record<string, never>';
    return ['{', ...lines, ...(is_open ? [`${indent}[field: string]: unknown;`] : []), `${'  '.repeat(depth)}}`].join(
      '\n',
    );
  }

  #referred(reference: string): unknown {
    if (reference === '#') return this.#root;
    if (!reference.startsWith('#/')) return undefined;
    let value: unknown = this.#root;
    for (const key of reference.slice(2).split('/')) {
      const name = key.replaceAll('~1', '/').replaceAll('~0', '~');
      value = Object.hasOwn(fieldsOf(value), name) ? fieldsOf(value)[name] : undefined;
    }
    return value;
  }
}

function union(types: readonly string[]): string {
  const unique = [...new Set(types)];
  return unique.includes('unknown') || unique.length === 0 ? 'unknown' : unique.join(' | ');
}

/** What says nothing adds nothing. */
function intersection(types: readonly string[]): string {
  const unique = [...new Set(types)].filter((type) => type !== 'unknown');
  if (unique.length <= 1) return unique[0] ?? 'unknown';
  return unique.map((type) => (/^[\w<>]+$/.test(type) ? type : `(${type})`)).join(' & ');
}

function literalOf(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  return typeof value === 'string' ? literal(value) : 'unknown';
}

/** Characters that nobody sees, and those that turn the direction of a line around. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

function literal(text: string): string {
  const hex = (character: string) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  return JSON.stringify(text).replaceAll(unseen, hex);
}

function nameOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name);
}

const limits: Readonly<Record<string, string>> = {
  minimum: 'At least',
  maximum: 'At most',
  minLength: 'Least length',
  maxLength: 'Most characters:',
  minItems: 'Least items:',
  maxItems: 'Most items:',
};

function notesOf(value: unknown): string[] {
  const schema = fieldsOf(value);
  const texts = ['title', 'description'].map((name) => schema[name]).filter((text) => typeof text === 'string');
  const numbers = Object.entries(limits).flatMap(([name, words]) =>
    typeof schema[name] === 'number' ? [`${words} ${schema[name]}`] : [],
  );
  const { default: usual } = schema;
  const has_default = ['string', 'number', 'boolean'].includes(typeof usual);
  return [...texts, ...numbers, ...(has_default ? [`Default: ${JSON.stringify(usual)}`] : [])];
}

const line_length = 100;

/** Returns sentences as a comment, which no character of them ends. */
function comment(sentences: readonly string[], indent: string): string[] {
  const text = sentences
    .map((sentence) => sentence.replaceAll(unseen, ' ').replaceAll('*/', '* /').replaceAll(/\s+/g, ' ').trim())
    .filter((sentence) => sentence !== '')
    .map((sentence) => (/[.!?]$/.test(sentence) ? sentence : `${sentence}.`))
    .join(' ');
  if (text === '') return [];
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < line_length) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  // Words that meet must make no end of a comment.
  const safe = lines.map((line) => line.replaceAll('*/', '* /'));
  if (safe.length === 1) return [`${indent}/** ${safe[0]} */`];
  return [`${indent}/**`, ...safe.map((line) => `${indent} * ${line}`), `${indent} */`];
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
