import type { Json, JsonObject } from '../../../src/catalog/model.ts';
import { isObject } from '../../../src/styles/fields.ts';

/** A text of the caller's, and what it is. */
export type Mark = { text: string; place: string };

/** Between the marks of a text: what is awkward to write in JSON, in base64, or at all. */
const letters: readonly string[] = ['', 'a b', '\n', '"', '\\', '{', '[}', 'Łódź', '👩‍🚀', '\u2028', 'data:', '</tool>'];

/** Makes up a request by what was thrown: each of its texts is to be found again. */
export class Author {
  readonly marks: Mark[] = [];
  readonly #throws: Uint8Array;
  #at = 0;

  /** Begins with these throws; when all are used up, the plainest value is made. */
  constructor(throws: Uint8Array) {
    this.#throws = throws;
  }

  /** A text that stands nowhere else. Neither begins nor ends with white space, which some upstreams refuse. */
  text(place: string): string {
    const number = this.marks.length;
    return this.#note(`<${number}:${letters[this.#next(letters.length)] ?? ''}:${number}>`, place);
  }

  /** A name as all upstreams take it. */
  name(place: string): string {
    return this.#note(`name_${this.marks.length}_`, place);
  }

  /** A file's bytes in base64. */
  base64(place: string): string {
    return this.#note(Buffer.from(`file ${this.marks.length}.`.padEnd(12)).toString('base64'), place);
  }

  url(place: string): string {
    return this.#note(`https://files.example/${this.marks.length}.pdf`, place);
  }

  yes(): boolean {
    return this.#next(2) === 1;
  }

  /** One of these; made up only when it is chosen. */
  one<T>(...options: (() => T)[]): T {
    const chosen = options[this.#next(options.length)];
    if (!chosen) throw new Error('nothing to choose from');
    return chosen();
  }

  /** Up to two. */
  some<T>(make: () => T): T[] {
    return Array.from({ length: this.#next(3) }, make);
  }

  /** These members, or none of them. */
  maybe(make: () => JsonObject): JsonObject {
    return this.yes() ? make() : {};
  }

  #next(below: number): number {
    return (this.#throws[this.#at++] ?? 0) % below;
  }

  #note(text: string, place: string): string {
    this.marks.push({ text, place });
    return text;
  }
}

/** A schema with all that one may hold. */
export function schemaOf(author: Author, depth = 0): JsonObject {
  const below = (): JsonObject => (depth < 2 ? schemaOf(author, depth + 1) : { type: 'string' });
  const describedSchema = (): JsonObject => ({ description: author.text('schema description') });
  return {
    ...(depth === 0
      ? { type: 'object' }
      : author.one(
          () => ({ type: 'object' }),
          describedSchema,
          () => ({ type: 'string' }),
        )),
    ...author.maybe(() => ({ description: author.text('schema description') })),
    ...author.maybe(() => ({ title: author.text('schema title') })),
    ...author.maybe(() => ({ properties: { [author.name('schema property')]: below() } })),
    ...author.maybe(() => ({ enum: [author.text('schema enum'), 1, null] })),
    ...author.maybe(() => ({ const: author.text('schema const') })),
    ...author.maybe(() => ({ default: author.text('schema default') })),
    ...author.maybe(() => ({ examples: [author.text('schema examples')] })),
    ...author.maybe(() => ({ pattern: author.text('schema pattern') })),
    ...author.maybe(() => ({ format: author.text('schema format') })),
    ...author.maybe(() => ({ items: author.one<Json>(below, () => [below(), below()]) })),
    ...author.maybe(() => ({ anyOf: [below(), below()] })),
    ...author.maybe(() => ({ oneOf: [below(), below()] })),
    ...author.maybe(() => ({ allOf: [below(), below()] })),
    ...author.maybe(() => ({ not: below() })),
    ...author.maybe(() => ({ $defs: { [author.name('schema property')]: below() } })),
    ...author.maybe(() => ({ additionalProperties: author.one<Json>(below, () => false) })),
    ...author.maybe(() => ({ patternProperties: { [author.text('schema pattern')]: below() } })),
  };
}

/** All texts of a body, names too: those within JSON text and data URLs as well. */
export function textsOf(body: Json): string {
  const marks: string[] = [];
  collect(body, marks);
  return marks.join('\n');
}

function collect(value: Json, marks: string[]): void {
  if (typeof value === 'string') {
    marks.push(value);
    for (const json of value.match(/[{[].*[}\]]/s) ?? []) collectJson(json, marks);
  } else if (Array.isArray(value)) {
    for (const each of value) collect(each, marks);
  } else if (isObject(value)) {
    for (const [key, member] of Object.entries(value)) {
      marks.push(key);
      collect(member, marks);
    }
  }
}

function collectJson(text: string, marks: string[]): void {
  try {
    collect(JSON.parse(text) as Json, marks);
  } catch {
    // it is text
  }
}
